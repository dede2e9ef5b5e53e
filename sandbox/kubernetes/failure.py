"""What the API server's answers and a pod's status mean: pure.

Only reasons that Kubernetes documents stand here. Whatever is not the guest's own end is ours: nobody loses an attempt
because a node was drained.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from sandbox.kubernetes.manifests import CONTAINER

_HINTS: Mapping[int, str] = {
    400: "the API server does not understand the request: its version may be too old",
    401: "the runner's token is not accepted: give its pod a ServiceAccount, and mount its token",
    403: "the runner's ServiceAccount may not do this, or the namespace's quota or policy refuses it: "
    "apply deploy/kubernetes again",
    404: "the namespace or the object is missing: apply deploy/kubernetes again",
    409: "another object has this name, or was changed meanwhile",
    410: "the API server has forgotten what was asked for: try again",
    422: "the cluster refuses the manifest: a field is not allowed by its version or by a policy",
    429: "the API server is overloaded: look at its load",
}
_NEVER_STARTS = {
    "ErrImagePull": "the node cannot pull the image: push it, or correct the registry's secret",
    "ImagePullBackOff": "the node cannot pull the image: push it, or correct the registry's secret",
    "ErrImageNeverPull": "the image is not on the node",
    "InvalidImageName": "correct GRADER_LAB_IMAGE or the lab's image",
    "ImageInspectError": "look at the node's container engine",
    "CreateContainerConfigError": "look at the pod's events",
    "CreateContainerError": "the node cannot make the container: the seccomp profile or a host folder may be missing",
    "RunContainerError": "the node cannot start the container: look at its container engine",
    "StartError": "the node cannot start the container: look at its container engine",
    "ContainerCannotRun": "the node cannot start the container: look at its container engine",
}
_TAKEN_AWAY = {"DisruptionTarget"}
_RETRIED = {408, 410, 429, 500, 502, 503, 504}


def hint(status: int) -> str:
    """What an operator should do about an answer with this HTTP status; empty when nobody can tell."""
    if status in _HINTS:
        return _HINTS[status]
    return "the API server or what stands before it failed: look at its log" if status >= 500 else ""


def may_pass(status: int) -> bool:
    """Whether the same request may be answered otherwise in a moment."""
    return status in _RETRIED


def container_state(pod: Mapping[str, Any], kind: str) -> Mapping[str, Any] | None:
    """The guest container's state of this kind (`waiting`, `running`, `terminated`), or None."""
    state = container_status(pod).get("state") or {}
    found = state.get(kind)
    return found if isinstance(found, Mapping) else None


def container_status(pod: Mapping[str, Any]) -> Mapping[str, Any]:
    """What the kubelet says of the guest container; empty before it says anything."""
    statuses: Sequence[Mapping[str, Any]] = (pod.get("status") or {}).get("containerStatuses") or ()
    return next((one for one in statuses if one.get("name") == CONTAINER), {})


def never_starts(pod: Mapping[str, Any]) -> str:
    """Why waiting for this pod to run is useless; empty while it is not."""
    for kind in ("waiting", "terminated"):
        state = container_state(pod, kind) or {}
        reason = str(state.get("reason") or "")
        if reason in _NEVER_STARTS:
            return f"{reason}: {state.get('message') or 'no message'} ({_NEVER_STARTS[reason]})"
    if (pod.get("status") or {}).get("phase") == "Failed" and container_state(pod, "terminated") is None:
        return taken_away(pod) or "the pod failed before its container ran"
    return ""


def taken_away(pod: Mapping[str, Any]) -> str:
    """Why the cluster, and not the guest, ended this pod; empty where it did not."""
    status = pod.get("status") or {}
    if status.get("reason"):  # Evicted, NodeLost, Shutdown, OutOfmemory, UnexpectedAdmissionError, DeadlineExceeded …
        return f"{status['reason']}: {status.get('message') or 'no message'}"
    for condition in status.get("conditions") or ():
        if condition.get("type") in _TAKEN_AWAY and condition.get("status") == "True":
            return f"{condition.get('reason')}: {condition.get('message') or 'no message'}"
    if (container_state(pod, "terminated") or {}).get("reason") == "ContainerStatusUnknown":
        return "ContainerStatusUnknown: the node could not tell what became of the container"
    if (pod.get("metadata") or {}).get("deletionTimestamp"):
        return "somebody else deleted the pod"
    if status.get("phase") == "Unknown":
        return "the node does not answer"
    return ""


def why_pending(pod: Mapping[str, Any] | None) -> str:
    """The last thing that the cluster said about a pod that does not run."""
    if pod is None:
        return "its Job made no pod: a quota or a policy may refuse it, see the Job's events"
    waiting = container_state(pod, "waiting") or {}
    if waiting:
        return f"{waiting.get('reason')}: {waiting.get('message') or 'no message'}"
    for condition in (pod.get("status") or {}).get("conditions") or ():
        if condition.get("status") == "False" and condition.get("message"):
            return f"{condition.get('reason')}: {condition['message']}"
    return f"phase {(pod.get('status') or {}).get('phase')}, no reason given; is the kubelet of its node alive?"
