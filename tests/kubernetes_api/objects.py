"""What the fake API server keeps: strict about manifests, and about who may delete what when."""

import copy
import datetime as dt
import threading
import uuid

import kubernetes_validate

VERSION = "1.37"


class Refused(Exception):
    """An answer other than success."""

    def __init__(self, status, reason, message):
        super().__init__(message)
        self.status = status
        self.reason = reason


def validate(document):
    """Refuses whatever the published schemas of this version do not know, unknown fields included."""
    try:
        kubernetes_validate.validate(document, VERSION, strict=True)
    except kubernetes_validate.ValidationError as error:
        path = ".".join(map(str, error.path))
        raise Refused(422, "Invalid", f"{path}: {error.message[:300]}") from error
    _beyond_the_schemas(document)


def _beyond_the_schemas(document):
    """Rules of the API server that no schema can say."""
    name = document["metadata"]["name"]
    if len(name) > 63 or not all(part.isalnum() for part in name.split("-")) or name != name.lower():
        raise Refused(422, "Invalid", f"metadata.name: {name!r} is no DNS label")
    template = document["spec"].get("template", {})
    for where in (document["metadata"], template.get("metadata", {})):
        for key, value in where.get("labels", {}).items():
            if len(value) > 63 or not all(letter.isalnum() or letter in "-_." for letter in value):
                raise Refused(422, "Invalid", f"metadata.labels.{key}: {value!r} is no label value")
    pod = template.get("spec", {})
    volumes = {volume["name"] for volume in pod.get("volumes", ())}
    for container in pod.get("containers", ()):
        places = [mount["mountPath"] for mount in container.get("volumeMounts", ())]
        if len(places) != len(set(places)):
            raise Refused(422, "Invalid", "volumeMounts: a path is mounted twice")
        for mount in container.get("volumeMounts", ()):
            if mount["name"] not in volumes:
                raise Refused(422, "Invalid", f"volumeMounts: no volume {mount['name']!r}")
    if pod and pod.get("restartPolicy") not in {"Never", "OnFailure"}:
        raise Refused(422, "Invalid", "spec.template.spec.restartPolicy: a Job needs Never or OnFailure")
    if pod.get("dnsPolicy") == "None" and not pod.get("dnsConfig", {}).get("nameservers"):
        raise Refused(422, "Invalid", "dnsConfig.nameservers: dnsPolicy None needs one")


def selected(document, selector):
    """Whether a document's labels match `a=b,c=d`."""
    labels = document["metadata"].get("labels", {})
    wanted = [term.split("=", 1) for term in selector.split(",") if term]
    return all(labels.get(key) == value for key, value in wanted)


class Objects:
    """Jobs, pods and network policies of every namespace, with a controller that makes one pod for each Job."""

    def __init__(self):
        self.lock = threading.RLock()
        self.quota_refuses = False
        self._kinds = {"jobs": {}, "pods": {}, "networkpolicies": {}}

    def create(self, kind, namespace, document):
        """Validates and keeps it."""
        document = copy.deepcopy(document)
        validate(document)
        if document["metadata"].get("namespace", namespace) != namespace:
            raise Refused(400, "BadRequest", "the namespace of the object and of the request differ")
        name = document["metadata"]["name"]
        with self.lock:
            if (namespace, name) in self._kinds[kind]:
                raise Refused(409, "AlreadyExists", f"{kind} {name!r} already exists")
            document["metadata"] |= {"namespace": namespace, "uid": str(uuid.uuid4()), "creationTimestamp": _now()}
            self._kinds[kind][namespace, name] = document
            if kind == "jobs" and not self.quota_refuses:
                self._start(document)
            return copy.deepcopy(document)

    def get(self, kind, namespace, name):
        """A copy."""
        with self.lock:
            return copy.deepcopy(self._found(kind, namespace, name))

    def find(self, kind, namespace=None, selector=""):
        """Copies of those that match."""
        with self.lock:
            return [
                copy.deepcopy(one)
                for (where, _), one in self._kinds[kind].items()
                if namespace in {None, where} and selected(one, selector)
            ]

    def delete(self, kind, namespace, name, options):
        """As asked: a Job at once and its pods after it, a pod when its node has ended it, or at once with grace 0."""
        with self.lock:
            document = self._found(kind, namespace, name)
            if kind == "jobs":
                del self._kinds[kind][namespace, name]
                policy = options.get("propagationPolicy")
                if policy not in {"Background", "Foreground", "Orphan"}:
                    raise Refused(422, "Invalid", f"propagationPolicy: {policy!r}")
                if policy != "Orphan":
                    for pod in self._owned(document):
                        self._delete_pod(pod, None)
            else:
                self._delete_pod(document, options.get("gracePeriodSeconds"))
            return copy.deepcopy(document)

    def change_status(self, pod, **fields):
        """What a kubelet or a controller says of a pod; nothing where there is no such pod any more."""
        with self.lock:
            if (kept := self._kinds["pods"].get(_key(pod))) is not None:
                kept["status"] |= fields

    def ended(self, pod):
        """The kubelet has ended a pod that is to be deleted: now it goes."""
        with self.lock:
            self._kinds["pods"].pop(_key(pod), None)

    def _found(self, kind, namespace, name):
        if (namespace, name) not in self._kinds[kind]:
            raise Refused(404, "NotFound", f"{kind} {name!r} not found")
        return self._kinds[kind][namespace, name]

    def _start(self, job):
        """The Job controller, for one completion."""
        namespace, name = job["metadata"]["namespace"], f"{job['metadata']['name']}-{uuid.uuid4().hex[:5]}"
        template = job["spec"]["template"]
        metadata = copy.deepcopy(template["metadata"])
        metadata |= {"name": name, "namespace": namespace, "uid": str(uuid.uuid4()), "creationTimestamp": _now()}
        metadata["labels"] = {**metadata.get("labels", {}), "batch.kubernetes.io/job-name": job["metadata"]["name"]}
        owner = {key: job["metadata"][key] for key in ("name", "uid")}
        metadata["ownerReferences"] = [{"apiVersion": "batch/v1", "kind": "Job", **owner}]
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": copy.deepcopy(template["spec"])}
        kubernetes_validate.validate(pod, VERSION, strict=True)
        pod["status"] = {"phase": "Pending", "conditions": [], "containerStatuses": []}
        self._kinds["pods"][namespace, name] = pod

    def _owned(self, job):
        return [
            pod
            for pod in self._kinds["pods"].values()
            if any(owner["uid"] == job["metadata"]["uid"] for owner in pod["metadata"].get("ownerReferences", ()))
        ]

    def _delete_pod(self, pod, grace_s):
        if grace_s == 0:
            # What a real server does: the object goes, whatever the node does about its processes, and when.
            del self._kinds["pods"][_key(pod)]
        else:
            pod["metadata"].setdefault("deletionTimestamp", _now())


def _key(document):
    return document["metadata"]["namespace"], document["metadata"]["name"]


def _now():
    return dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
