"""A clean room that opens its device ahead, with real DALI."""

import pytest

from grader_service.grading import clean_room
from grader_service.host import usable_cpus
from grader_service.model.evidence import PodRole
from sandbox.api import PodSpec, SpaceLimits
from sandbox.guest.trusted import device_warm_up
from sandbox.process_runner import ProcessRunner

pytestmark = pytest.mark.lab


def test_a_batch_is_drawn_from_an_image_of_ours(lab_child, tmp_path):
    """The plan is one that the graph of ours can be built from: nothing is raised."""

    def warmed():
        device_warm_up.warm_up(str(tmp_path), "cpu")
        return sorted(path.name for path in tmp_path.iterdir())

    assert lab_child(warmed) == ["warm-up.jpg"]


def test_the_clean_room_goes_on_whatever_became_of_it(tmp_path):
    """A device that cannot be opened is not told there: the next request is answered as ever."""
    with ProcessRunner(tmp_path).open_run("warm", SpaceLimits(64, 1000, 64)) as space:
        cpus = usable_cpus(2)
        spec = PodSpec(role=PodRole.CLEAN_ROOM, program="trusted.clean_room", memory_mib=4096, pids=256, cpus=cpus)
        pod = space.start(spec)
        assert set(clean_room.warm_up(pod, "cuda")) >= {"dali", "torch"}  # there is no GPU here
        request = {"kind": "prepare", "files": [], "threads": 1, "device": "cpu"}
        answer = clean_room.ask(pod, request, b"no graph", timeout_s=60.0)
        assert answer.body["problem"] == "unreadable_graph"
