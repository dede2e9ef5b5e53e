"""What a pod starts stands still with it, on every runner."""

import time

from grader_service.host import usable_cpus
from sandbox.api import PodRole, Scratch
from tests.sandbox.owner import LIMITS, ask, drill


def test_helpers_stand_still_with_their_pod(runner):
    """An orphan in a session of its own is frozen and thawed with its pod, and has no more cores than it."""
    cpus = usable_cpus(1)
    with runner.open_run("helpers", LIMITS) as space:
        heartbeat = f"{space.paths.workspace}/heartbeat"
        reader = space.start(drill(PodRole.SCANNER, cpus=cpus, scratch=Scratch.READ_ONLY))

        def beats() -> int:
            return int(ask(reader, kind="size", path=heartbeat).body["value"])

        def wait_for_more(than: int) -> None:
            deadline = time.monotonic() + 60.0
            while beats() <= than:
                assert time.monotonic() < deadline, "the helper does not run"

        pod = space.start(drill(cpus=cpus))
        assert ask(pod, kind="facts").body["cpus"] == list(cpus)
        ask(pod, kind="daemon", path=heartbeat)
        wait_for_more(than=0)
        pod.pause()
        before = beats()
        time.sleep(0.3)
        assert beats() == before
        pod.resume()
        wait_for_more(than=before)
