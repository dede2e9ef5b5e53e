"""What a pod starts stands still with it, on every runner."""

import time

from grader_service.host.facts import usable_cpus
from sandbox.api import PodRole, Scratch
from tests.sandbox.owner import LIMITS, ask, drill
from tests.waiting import wait_for


def test_helpers_stand_still_with_their_pod(runner):
    """An orphan in a session of its own is frozen and thawed with its pod, and has no more cores than it."""
    cpus = usable_cpus(1)
    with runner.open_run("helpers", LIMITS) as space:
        heartbeat = f"{space.paths.workspace}/heartbeat"
        reader = space.start(drill(PodRole.SCANNER, cpus=cpus, scratch=Scratch.READ_ONLY))

        def beats() -> int:
            return max(0, ask(reader, kind="size", path=heartbeat).body["value"])

        pod = space.start(drill(cpus=cpus))
        assert ask(pod, kind="facts").body["cpus"] == list(cpus)
        ask(pod, kind="daemon", path=heartbeat)
        wait_for(beats, 15.0)
        pod.pause()
        before = beats()
        time.sleep(0.3)
        assert beats() == before
        pod.resume()
        wait_for(lambda: beats() > before, 15.0)
