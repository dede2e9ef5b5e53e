"""A node: runs the fake server's pods as real containers of the local engine, and gives them nothing more.

Whatever a pod's manifest says and this node does not understand is an error, so that no part of the policy is lost in
translation. What a manifest cannot say (a number of processes, a set of CPUs) a container does not get here either.
"""

import contextlib
import json
import threading
import time

from docker.errors import APIError, DockerException, ImageNotFound, NotFound

from sandbox.kubernetes.runner import denies_all

KNOWN_POD = {
    "activeDeadlineSeconds",
    "automountServiceAccountToken",
    "containers",
    "dnsConfig",
    "dnsPolicy",
    "enableServiceLinks",
    "hostIPC",
    "hostNetwork",
    "hostPID",
    "hostname",
    "nodeName",
    "priorityClassName",
    "restartPolicy",
    "runtimeClassName",
    "securityContext",
    "shareProcessNamespace",
    "terminationGracePeriodSeconds",
    "volumes",
}
KNOWN_CONTAINER = {
    "command",
    "env",
    "image",
    "imagePullPolicy",
    "name",
    "resources",
    "securityContext",
    "volumeMounts",
    "workingDir",
}
LABEL = "org.grader.test-node"
SYNC_S = 0.05
FORGOTTEN_S = 4.0
"""A pod whose object is gone is still ended, but later."""


class Kubelet:
    """One node's agent, in a thread of its own."""

    def __init__(self, objects, engine, node, seccomp_root):
        self.objects = objects
        self.node = node
        self.deaf = False
        """Starts nothing and says nothing, as a kubelet that hangs."""
        self._engine = engine
        self._seccomp_root = seccomp_root
        self._containers = {}
        self._forgotten = {}
        self._refused = set()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self):
        """Ends the thread and every container that it started."""
        self._stopped.set()
        self._thread.join()
        for container in self._containers.values():
            _remove(container)

    def log(self, uid, tail_lines, limit_bytes):
        """What a pod's container wrote."""
        container = self._containers.get(uid)
        return container.logs(tail=tail_lines)[:limit_bytes] if container is not None else b""

    def evict(self, pod, reason, message):
        """Ends a pod for a reason of the node's."""
        with contextlib.suppress(DockerException):
            self._containers[pod["metadata"]["uid"]].kill()
        self.objects.change_status(pod, phase="Failed", reason=reason, message=message)

    def _run(self):
        while not self._stopped.wait(SYNC_S):
            if not self.deaf:
                with contextlib.suppress(DockerException, OSError):
                    self._sync()

    def _sync(self):
        pods = {
            pod["metadata"]["uid"]: pod for pod in self.objects.find("pods") if pod["spec"]["nodeName"] == self.node
        }
        for uid, pod in pods.items():
            if pod["metadata"].get("deletionTimestamp"):
                if uid not in self._containers or _remove(self._containers[uid]):
                    self._containers.pop(uid, None)
                    self.objects.ended(pod)
            elif uid in self._containers:
                self._report(uid, pod)
            elif uid not in self._refused:
                self._start(uid, pod)
        for uid in self._containers.keys() - pods.keys():
            since = self._forgotten.setdefault(uid, time.monotonic())
            if time.monotonic() - since > FORGOTTEN_S and _remove(self._containers[uid]):
                del self._containers[uid]

    def _start(self, uid, pod):
        namespace = pod["metadata"]["namespace"]
        image = pod["spec"]["containers"][0]["image"]
        try:
            # In place of the plugin that enforces policies.
            options = self._options(pod, any(map(denies_all, self.objects.find("networkpolicies", namespace))))
            container = self._engine.containers.create(**options)
        except ImageNotFound as error:
            self._refuse(pod, "ErrImagePull", f"failed to pull {image!r}: {error.explanation}")
        except (OSError, KeyError, ValueError, APIError) as error:
            self._refuse(pod, "CreateContainerError", str(error))
        else:
            self._containers[uid] = container
            try:
                container.start()
            except APIError as error:
                self._refuse(pod, "RunContainerError", str(error))
            else:
                self._report(uid, pod)

    def _refuse(self, pod, reason, message):
        """Says why a pod waits, and tries no more."""
        self._refused.add(pod["metadata"]["uid"])
        state = {"waiting": {"reason": reason, "message": message}}
        self.objects.change_status(pod, containerStatuses=[self._status(pod, state, None)])

    def _report(self, uid, pod):
        if pod["status"]["phase"] in {"Failed", "Succeeded", "Unknown"} or uid in self._refused:
            return
        container = self._containers[uid]
        try:
            container.reload()
        except NotFound:
            return
        found = container.attrs["State"]
        if found["Status"] in {"running", "paused"}:
            phase, state = "Running", {"running": {"startedAt": found["StartedAt"]}}
        elif found["Status"] in {"exited", "dead"}:
            code = found["ExitCode"]
            reason = "OOMKilled" if found["OOMKilled"] else "Completed" if code == 0 else "Error"
            phase = "Succeeded" if code == 0 else "Failed"
            state = {"terminated": {"exitCode": code, "reason": reason, "finishedAt": found["FinishedAt"]}}
        else:
            return
        self.objects.change_status(pod, phase=phase, containerStatuses=[self._status(pod, state, container)])

    def _status(self, pod, state, container):
        guest = pod["spec"]["containers"][0]
        return {
            "name": guest["name"],
            "image": guest["image"],
            "imageID": f"docker-pullable://{guest['image']}@{container.image.id}" if container else "",
            "containerID": f"docker://{container.id}" if container else "",
            "ready": "running" in state,
            "restartCount": 0,
            "state": state,
        }

    def _options(self, pod, offline):
        """Arguments of the engine's create call, from the manifest alone."""
        spec = pod["spec"]
        (guest,) = spec["containers"]
        _known(spec, KNOWN_POD)
        _known(guest, KNOWN_CONTAINER)
        if spec["hostNetwork"] or spec["hostPID"] or spec["hostIPC"] or spec["shareProcessNamespace"]:
            raise ValueError("this node gives no pod a namespace of the host's")
        own, outer = guest["securityContext"], spec["securityContext"]
        if outer["runAsNonRoot"] and not outer["runAsUser"]:
            raise ValueError("runAsNonRoot, and the user is root")
        security = [] if own["allowPrivilegeEscalation"] else ["no-new-privileges:true"]
        profile = outer["seccompProfile"]
        if profile["type"] == "Localhost":
            text = (self._seccomp_root / profile["localhostProfile"]).read_text()
            security.append(f"seccomp={json.dumps(json.loads(text))}")
        elif profile["type"] == "Unconfined":
            security.append("seccomp=unconfined")
        memory = _bytes(guest["resources"]["limits"]["memory"])
        mounts, tmpfs = _mounts(spec, guest)
        return {
            "image": guest["image"],
            "entrypoint": [],
            "command": guest["command"],
            "environment": {one["name"]: one["value"] for one in guest["env"]},
            "working_dir": guest["workingDir"],
            "hostname": spec["hostname"],
            "labels": {LABEL: self.node},
            "user": f"{outer['runAsUser']}:{outer['runAsGroup']}",
            "privileged": own["privileged"],
            "read_only": own["readOnlyRootFilesystem"],
            "cap_drop": own["capabilities"]["drop"],
            "cap_add": own["capabilities"].get("add", []),
            "security_opt": security,
            "network_mode": "none" if offline else "bridge",
            "mem_limit": memory,
            "memswap_limit": memory,
            "mounts": mounts,
            "tmpfs": tmpfs,
            "log_config": {"Type": "json-file", "Config": {"max-size": "10m", "max-file": "1"}},
        }


def _mounts(spec, guest):
    sources = {volume["name"]: volume for volume in spec["volumes"]}
    mounts, tmpfs = [], {}
    for mount in guest["volumeMounts"]:
        source = sources[mount["name"]]
        if "hostPath" in source:
            path = source["hostPath"]
            if path["type"] != "Directory":
                raise ValueError(f"hostPath of type {path['type']}")
            # As the API's readOnly does: mounts below the folder come along.
            bind = {"Type": "bind", "Source": path["path"], "Target": mount["mountPath"], "ReadOnly": mount["readOnly"]}
            mounts.append(bind)
        elif source["emptyDir"]["medium"] == "Memory" and not mount["readOnly"]:
            # No inode cap, and files may be run: what an emptyDir offers.
            tmpfs[mount["mountPath"]] = f"rw,exec,size={_bytes(source['emptyDir']['sizeLimit'])},mode=1777"
        else:
            raise ValueError(f"volume {source}")
    return mounts, tmpfs


def _known(document, names):
    if unknown := document.keys() - names:
        raise ValueError(f"this node does not know {', '.join(sorted(unknown))}")


def _bytes(quantity):
    number, unit = quantity[:-2], quantity[-2:]
    return int(number) << {"Mi": 20, "Gi": 30}[unit]


def _remove(container):
    """Whether it is gone; a busy engine may need to be asked again."""
    try:
        container.remove(force=True, v=True)
    except NotFound:
        return True
    except (DockerException, OSError):
        return False
    return True
