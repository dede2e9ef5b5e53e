"""What the pod broker adds to a pod and to a grading, beside the engine asked directly.

    python bench/pod_broker.py [--rounds 30]

Each round does everything both ways, one after the other, in an order that changes: the machine's noise meets both
alike. What counts are the medians, and the median of the differences within a round. Needs the lab image.
"""

import argparse
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from trivial import Lane

from grader_service.errors import SandboxUnavailable
from grader_service.host.facts import usable_cpus
from grader_service.host.sandboxes import open_runner
from grader_service.settings import Settings
from sandbox.api import Ending, PodRole, PodSpec, SandboxRunner, SpaceLimits
from sandbox.broker import wire
from sandbox.broker.client import Line

IMAGE = os.environ.get("GRADER_LAB_IMAGE", "grader-lab")
LIMITS = SpaceLimits(workspace_mib=64, workspace_inodes=1000, shm_mib=16)
SPEC = PodSpec(PodRole.LEARNER, "drill", memory_mib=256, pids=64, cpus=usable_cpus(64))


def main() -> None:
    """Prints a line for each step."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=30)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:
        folder = Path(name)
        path = folder / "pods" / "broker.sock"
        environment = {"GRADER_STATE_DIR": str(path.parent), "GRADER_POD_BROKER": str(path), "GRADER_GPU": "none"}
        command = [Path(sys.executable).with_name("grader"), "pods"]
        with subprocess.Popen(command, env={**os.environ, **environment}) as broker:
            try:
                until_it_answers(path)
                tell(measured(folder, path, options.rounds))
            finally:
                broker.terminate()


def until_it_answers(path: Path) -> None:
    """Blocks."""
    for _ in range(600):
        try:
            with Line(path) as line:
                line.call(wire.Look(), wire.Done)
        except SandboxUnavailable:
            time.sleep(0.1)
        else:
            return
    raise SystemExit("the pod broker did not start")


def measured(folder: Path, path: Path, rounds: int) -> Mapping[str, list[tuple[float, float]]]:
    """Seconds of each step, directly and through the broker, round by round."""
    ways = {"engine": None, "broker": path}
    runners, lanes = {}, {}
    for way, socket in ways.items():
        (folder / way).mkdir()
        settings = Settings(state_dir=folder / way / "runner", pod_broker=socket)
        runners[way] = open_runner("docker", IMAGE, settings, None)
        lanes[way] = Lane(folder / way, 0, socket)
        lanes[way].grade()  # what is opened once
    taken: dict[str, list[tuple[float, float]]] = {}
    try:
        for number in range(rounds):
            found: dict[str, dict[str, float]] = {}
            for way in random.Random(number).sample(sorted(ways), len(ways)):
                found[way] = steps(runners[way], f"bench-{way}-{number}")
                found[way]["a trivial grading, cold"] = lanes[way].grade().wall_s
            for step in found["engine"]:
                taken.setdefault(step, []).append((found["engine"][step], found["broker"][step]))
            sys.stderr.write(f"\rround {number + 1} of {rounds}")
        sys.stderr.write("\n")
    finally:
        for lane in lanes.values():
            lane.close()
    return taken


def steps(runner: SandboxRunner, run_id: str) -> dict[str, float]:
    """What a pod goes through, one after the other."""
    took: dict[str, float] = {}

    def timed(step: str, work: Callable[[], object]) -> object:
        since = time.monotonic()
        result = work()
        took[step] = time.monotonic() - since
        return result

    space = runner.open_run(run_id, LIMITS)
    timed("a run space is opened", space.__enter__)
    try:

        def first_word() -> object:
            pod = space.start(SPEC)
            assert pod.send({"kind": "echo", "value": 1}) is None
            assert not isinstance(pod.receive(60.0), Ending)
            return pod

        pod = timed("a pod is started, until its first answer", first_word)
        timed("it is looked at, 20 times", lambda: [pod.alive() for _ in range(20)])
        timed("it is frozen and thawed", lambda: (pod.pause(), pod.resume()))
        timed("it is ended", pod.end)
    finally:
        timed("the run space is removed", lambda: space.__exit__(None, None, None))
    return took


def tell(taken: Mapping[str, list[tuple[float, float]]]) -> None:
    """Medians, milliseconds."""
    print(f"{'':<42}{'engine':>10}{'broker':>10}{'more':>10}   quartiles of it")
    for step, pairs in taken.items():
        engine, broker = (statistics.median(way) * 1000 for way in zip(*pairs, strict=True))
        low, middle, high = (value * 1000 for value in statistics.quantiles((b - a for a, b in pairs), n=4))
        print(f"{step:<42}{engine:>7.1f} ms{broker:>7.1f} ms{middle:>+7.1f} ms   {low:+.1f} to {high:+.1f}")


if __name__ == "__main__":
    main()
