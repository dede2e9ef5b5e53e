"""A Job and its one pod: started, watched and taken away, whatever the cluster says meanwhile."""

import contextlib
import time
from collections.abc import Callable

from grader_service.errors import SandboxUnavailable
from sandbox.kubernetes.cluster import Cluster, Document
from sandbox.kubernetes.failure import container_state, container_status, never_starts, taken_away, why_pending
from sandbox.kubernetes.manifests import GRACE_S, POD_LABEL
from sandbox.kubernetes.pod_cgroup import PodCgroup
from sandbox.pod import ContainerEnd

START_S = 120.0
"""Longest wait for a pod to run: the pull of an image is no part of it where the node has the image."""
_REPORT_S = 15.0
"""The kubelet tells how a container ended a moment after it did."""
_GONE_S = 60.0
_SHORTEST_S = 0.05
_LONGEST_S = 0.5


def wait_for_start(cluster: Cluster, name: str) -> Document:
    """The pod of Job `name` as soon as its container runs or has run.

    Raises:
        SandboxUnavailable: it never will, or did not in time; the cluster's reason is named.
    """
    seen: list[Document] = []

    def started() -> bool:
        seen[:] = cluster.pods(f"{POD_LABEL}={name}")
        for pod in seen:
            if problem := never_starts(pod):
                raise SandboxUnavailable(f"pod {name} cannot start: {problem}")
        return any(container_state(pod, "running") or container_state(pod, "terminated") for pod in seen)

    if not _wait(started, START_S):
        why = why_pending(seen[0] if seen else None)
        raise SandboxUnavailable(f"expected pod {name} to run within {START_S:g} s, and it does not: {why}")
    return seen[0]


def remove_job(cluster: Cluster, name: str, before_wait: Callable[[], None] = lambda: None) -> None:
    """Deletes a Job and its pods; returns when the node has ended them.

    Args:
        before_wait: called when the cluster has been told.

    Raises:
        SandboxUnavailable: a pod may still run.
    """

    def gone() -> bool:
        left = cluster.pods(f"{POD_LABEL}={name}")
        for pod in left:
            if not pod["metadata"].get("deletionTimestamp"):
                cluster.delete_pod(pod["metadata"]["name"], GRACE_S)
        return not left and not cluster.jobs(f"{POD_LABEL}={name}")

    try:
        cluster.delete_job(name)  # first, or it would start another pod
        done = gone()
    finally:
        before_wait()
    if not done and not _wait(gone, _GONE_S):
        raise SandboxUnavailable(
            f"pod {name} was deleted and is still there after {_GONE_S:g} s: its node does not answer; look at the "
            "node, and force the deletion only when it is off"
        )


class JobHandle:
    """A Job's pod as `sandbox.pod.ContainerHandle`."""

    def __init__(self, cluster: Cluster, job: str, pod: str, cgroup: PodCgroup) -> None:
        self._cluster = cluster
        self._job = job
        self._pod = pod
        self._cgroup = cgroup

    def alive(self) -> bool:
        """See `ContainerHandle.alive`."""
        pod = self._cluster.pod(self._pod)
        return pod is not None and container_state(pod, "running") is not None

    def pause(self) -> None:
        """See `ContainerHandle.pause`."""
        if not self._cgroup.empty():
            self._cgroup.freeze()

    def resume(self) -> None:
        """See `ContainerHandle.resume`."""
        self._cgroup.thaw()

    def output(self) -> str:
        """See `ContainerHandle.output`."""
        return self._cluster.log_tail(self._pod, hurried=True)

    def destroy(self) -> ContainerEnd:
        """See `ContainerHandle.destroy`.

        Raises:
            SandboxUnavailable: the pod may still run, or the cluster took it away before its time.
        """
        ended = self._cgroup.kill()  # first: a deadline holds while no API server answers, too
        end = ContainerEnd(None, oom_killed=False, log_tail="(the cluster could not tell how the pod ended)")
        lost = ""
        with contextlib.suppress(SandboxUnavailable):
            seen = self._reported(_REPORT_S if ended else 0.0)
            lost = "somebody else removed it" if seen is None else taken_away(seen)
            end = self._end(seen or {})
        remove_job(self._cluster, self._job, self._cgroup.thaw)
        if lost:
            raise SandboxUnavailable(f"the cluster took pod {self._job} away: {lost}")
        return end

    def _reported(self, patience_s: float) -> Document | None:
        """The pod as soon as the kubelet says that its container has ended, or when patience does; None where gone."""
        seen: list[Document | None] = [None]

        def told() -> bool:
            seen[0] = self._cluster.pod(self._pod)
            return seen[0] is None or container_state(seen[0], "terminated") is not None

        _wait(told, patience_s)
        return seen[0]

    def _end(self, pod: Document) -> ContainerEnd:
        state = container_state(pod, "terminated") or {}
        log_tail = "(the cluster could not tell what the pod wrote)"
        with contextlib.suppress(SandboxUnavailable):
            log_tail = self._cluster.log_tail(self._pod)
        code = state.get("exitCode")
        return ContainerEnd(None if code is None else int(code), state.get("reason") == "OOMKilled", log_tail)


def container_id(pod: Document) -> str:
    """Of the pod's container, without the engine's name before it; empty before it has one."""
    return str(container_status(pod).get("containerID") or "").rpartition("://")[2]


def _wait(condition: Callable[[], bool], seconds: float) -> bool:
    """Whether it came true within so long; asked at once, then less and less often."""
    deadline = time.monotonic() + seconds
    pause = _SHORTEST_S
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(pause)
        pause = min(1.5 * pause, _LONGEST_S)
    return True
