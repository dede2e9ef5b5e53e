"""Graphs and the clean room that should take them."""

import pytest

from grader_service.errors import SandboxUnavailable
from grader_service.measure.clean_room import carry
from grader_service.model.evidence import Ending, PodRecord, PodRole


class DeadPod:
    """Its process was killed while it waited; what it had said before can still be heard."""

    def alive(self):
        return False

    def end(self):
        return PodRecord(role=PodRole.CLEAN_ROOM, ending=Ending.EXITED, exit_code=137, wall_s=5.0)


def test_a_clean_room_that_ended_before_it_got_a_graph_is_ours():
    """Nothing of the learner's was in it, so that the run is tried again."""
    with pytest.raises(SandboxUnavailable, match=r"clean_room pod ended \(exited, exit code 137\)"):
        carry(DeadPod(), None, [], 1, "cpu", experiments=True)
