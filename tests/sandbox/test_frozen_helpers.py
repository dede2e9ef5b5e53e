"""What a pod starts stands still with it, on every runner."""

import time

from grader_service.host import usable_cpus
from grader_service.model.evidence import PodRole
from sandbox.api import Ending, PodSpec, Scratch, SpaceLimits


def test_helpers_stand_still_with_their_pod(runner):
    """An orphan in a session of its own is frozen and thawed with its pod, and has no more cores than it."""
    cpus = usable_cpus(1)
    with runner.open_run("helpers", SpaceLimits(64, 1000, 64)) as space:
        heartbeat = f"{space.paths.workspace}/heartbeat"
        reader = space.start(
            PodSpec(
                role=PodRole.SCANNER, program="drill", memory_mib=256, pids=64, cpus=cpus, scratch=Scratch.READ_ONLY
            )
        )

        def beats() -> int:
            return int(_ask(reader, {"kind": "size", "path": heartbeat}).body["value"])

        def wait_for_more(than: int) -> None:
            deadline = time.monotonic() + 60.0
            while beats() <= than:
                assert time.monotonic() < deadline, "the helper does not run"

        pod = space.start(
            PodSpec(
                role=PodRole.LEARNER, program="drill", memory_mib=256, pids=64, cpus=cpus, scratch=Scratch.READ_WRITE
            )
        )
        assert _ask(pod, {"kind": "facts"}).body["cpus"] == list(cpus)
        _ask(pod, {"kind": "daemon", "path": heartbeat})
        wait_for_more(than=0)
        pod.pause()
        before = beats()
        time.sleep(0.3)
        assert beats() == before
        pod.resume()
        wait_for_more(than=before)


def _ask(pod, request):
    assert pod.send(request) is None
    answer = pod.receive(60.0)
    assert not isinstance(answer, Ending), answer
    return answer
