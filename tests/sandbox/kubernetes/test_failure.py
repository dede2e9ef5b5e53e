"""What answers and statuses mean; statuses are those that the Kubernetes documentation shows."""

import pytest

from sandbox.kubernetes.failure import hint, may_pass, never_starts, taken_away, why_pending


def pod(state=None, **status):
    """A pod whose container is in this state."""
    found = [{"name": "guest", "state": state}] if state else []
    return {"metadata": {}, "status": {"phase": "Pending", "containerStatuses": found, **status}}


@pytest.mark.parametrize(
    "reason",
    [
        "ErrImagePull",
        "ImagePullBackOff",
        "ErrImageNeverPull",
        "InvalidImageName",
        "CreateContainerConfigError",
        "CreateContainerError",
        "RunContainerError",
    ],
)
def test_a_container_that_never_starts(reason):
    """The reason, the node's words and what to do."""
    told = never_starts(pod({"waiting": {"reason": reason, "message": "the node's words"}}))
    assert told.startswith(f"{reason}: the node's words (")


@pytest.mark.parametrize("reason", ["ContainerCreating", "PodInitializing"])
def test_a_container_that_may_start(reason):
    """Is waited for."""
    assert never_starts(pod({"waiting": {"reason": reason}})) == ""
    assert never_starts(pod()) == ""


def test_a_pod_that_its_node_refuses():
    """Says so before there is a container."""
    status = {"phase": "Failed", "reason": "OutOfmemory", "message": "Node didn't have enough resource: memory"}
    assert never_starts(pod(**status)) == "OutOfmemory: Node didn't have enough resource: memory"


@pytest.mark.parametrize(
    ("exit_code", "reason"), [(0, "Completed"), (1, "Error"), (137, "OOMKilled"), (139, "Error"), (137, "Error")]
)
def test_an_end_of_its_own(exit_code, reason):
    """Is no fault of the cluster's, and a pod that ran did start."""
    ended = pod({"terminated": {"exitCode": exit_code, "reason": reason}}, phase="Failed")
    assert taken_away(ended) == ""
    assert never_starts(ended) == ""


@pytest.mark.parametrize(
    ("status", "told"),
    [
        ({"reason": "Evicted", "message": "low on memory"}, "Evicted: low on memory"),
        ({"reason": "NodeLost"}, "NodeLost: no message"),
        ({"phase": "Unknown"}, "the node does not answer"),
        (
            {"conditions": [{"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}]},
            "PreemptionByScheduler: no message",
        ),
    ],
)
def test_an_end_by_the_cluster(status, told):
    """Is ours: also where the container was killed by it and looks as if it had failed."""
    assert taken_away(pod({"terminated": {"exitCode": 137, "reason": "Error"}}, **status)) == told


def test_other_conditions_are_no_end():
    """A pod that is ready, or was never to be disrupted, runs on."""
    conditions = [{"type": "Ready", "status": "True"}, {"type": "DisruptionTarget", "status": "False"}]
    assert taken_away(pod({"running": {}}, conditions=conditions, phase="Running")) == ""


def test_why_a_pod_is_pending():
    """The best that the cluster has said."""
    assert "quota" in why_pending(None)
    assert why_pending(pod({"waiting": {"reason": "ContainerCreating", "message": "mounting"}})).endswith("mounting")
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes"}
    assert why_pending(pod(conditions=[condition])) == "Unschedulable: 0/3 nodes"
    assert "kubelet" in why_pending(pod())


@pytest.mark.parametrize(
    ("statuses", "tried_again"), [((410, 429, 500, 503, 504), True), ((400, 401, 403, 404, 409, 422), False)]
)
def test_what_may_pass_is_tried_again_and_the_rest_is_said_at_once(statuses, tried_again):
    """Either way there is advice, for what stays."""
    for status in statuses:
        assert may_pass(status) is tried_again, status
        assert hint(status), status
