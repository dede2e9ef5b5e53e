"""A worker as it is by default, on a GPU, for as long as wanted, with faults: each submission ends as it must.

    python bench/gpu_soak.py [--minutes 25] [--seed 1] [--save soak.json] [--device cuda]

Runs are prepared ahead and our reference is kept, as in any worker. Submissions of other learners come one after the
other, some at once and some after a pause: the reference in most of them, others that fail or take less, one whose
kernel breaks its own CUDA context. Meanwhile pods of ours are killed, some that wait and some at work. Printed: each
grading; then by kind how it ended and how long it held the GPU, in the first half and in the second; memory of this
process and of the GPU; what is left.

Exit status 1 when an honest submission did not pass or another one did, when a run needed attention or the device was
quarantined, or when a container or a run folder is left.
"""

import argparse
import base64
import json
import random
import statistics
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import docker
import docker.errors
import psutil
from gpu_service import BAD_KERNEL
from reference_latency import gate, held_s

from checks.registry import Registry
from grader_service import wiring
from grader_service.host.gpu.nvml import NvmlGpu
from grader_service.judging.process import JudgeProcess
from grader_service.measure.kept_references import KeptReferences
from grader_service.measure.reference_run import time_reference
from grader_service.model.verdict import Verdict
from grader_service.service.intake import IntakeDeps, receive_all
from grader_service.service.judge import JudgeDeps, judge_next
from grader_service.service.pipeline import StageEnd
from grader_service.service.reference_keeping import ReferenceKeeping
from grader_service.settings import Settings
from grader_service.signer.signatures import Signer
from grader_service.store import devices
from sandbox.docker.options import STATE_LABEL
from sandbox.warm.pool import WarmPool
from sandbox.warm.runner import WarmRunner

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
Facts = dict[str, Any]
_PATIENCE_S = 240.0
_AT_WORK = ("scanner", "reference")
"""A clean room that is killed while it has a graph cannot be told from one that the graph crashed: unverified."""


@dataclass(frozen=True)
class Kind:
    """One of the submissions, and how often it comes."""

    name: str
    filename: str
    data: bytes
    steps: tuple[str, ...]
    passes: bool
    share: int


def kinds() -> list[Kind]:
    """All of them."""

    def example(path: str, share: int, *steps: str, passes: bool) -> Kind:
        file = EXAMPLES / path
        return Kind(file.stem, file.name, file.read_bytes(), steps, passes, share)

    return [
        example("reference_submission.ipynb", 10, passes=True),
        example("first_step.py", 2, "baseline", passes=True),
        example("failing/too_few_jpegs.py", 1, passes=False),
        example("failing/batch_of_eight.py", 1, passes=False),
        example("failing/vague_reflections.py", 1, passes=False),
        Kind("bad_kernel", "s.py", BAD_KERNEL.encode(), ("pipeline", "reflection"), passes=False, share=1),
    ]


class Killer:
    """Kills pods of ours: of those that wait before a run, or of one at work some seconds later."""

    def __init__(self, state_dir: Path, draw: random.Random) -> None:
        self.done: Counter[str] = Counter()
        self._engine = docker.from_env()
        self._mine = {"label": f"{STATE_LABEL}={state_dir.resolve()}"}
        self._draw = draw

    def left(self) -> list[str]:
        """Names of the containers that are there."""
        return [str(one.name) for one in self._engine.containers.list(all=True, filters=self._mine)]

    def strike(self) -> str:
        """One fault in three runs; returns which."""
        fault = self._draw.choice(["", "", "", "", "a pod that waits", "a pod at work"])
        if fault == "a pod that waits":
            self._kill(fault, (*_AT_WORK, "clean-room"))
        elif fault:
            threading.Timer(self._draw.uniform(0.5, 10.0), self._kill, [fault, _AT_WORK]).start()
        return fault

    def _kill(self, fault: str, roles: tuple[str, ...]) -> None:
        with suppress(docker.errors.APIError):  # it has ended meanwhile
            pods = [one for one in self._engine.containers.list(filters=self._mine) if one.name.endswith(roles)]
            if pods:
                self._draw.choice(pods).kill()
                self.done[fault] += 1


def main() -> int:
    """Prints what was found."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--minutes", type=float, default=25.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--save", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="grader-soak-") as folder:
        settings = Settings(state_dir=Path(folder), learner_per_hour=10_000, retry_delay_s=0.5)
        if options.device == "cpu":
            settings = settings.model_copy(update={"gpu": "none"})
        return soak(settings, options.minutes, options.seed, options.save)


def soak(settings: Settings, minutes: float, seed: int, save: Path | None) -> int:
    """One grading after the other until the time is up."""
    gpu = wiring.chosen_gpu(settings)
    store = wiring.ready_store(settings)
    device = wiring.device_id(gpu)
    bare = settings.model_copy(update={"warm_runs": 0, "reference_minutes": 0.0})
    cold = wiring.runner_deps(bare, store, gpu, "bench/run", gate(store, device, gpu))
    pool = WarmPool(settings.warm_runs)  # as the worker makes them, but closed in the end
    fresh_s = 60 * settings.reference_minutes
    references = KeptReferences(
        lambda task: time_reference(cold.sandbox, task, cold.device, gpu), fresh_s=fresh_s, quiet=pool.quiet
    )
    deps = replace(cold, sandbox=WarmRunner(cold.sandbox, pool), references=references)
    registry, signer = Registry(), Signer.from_folder(settings.key_dir)
    intake = IntakeDeps(store, wiring.open_artifacts(settings), registry, signer)
    judge = JudgeDeps(store, registry, signer, "bench/judge", judging=JudgeProcess())
    runner = ReferenceKeeping(deps)
    draw = random.Random(seed)
    killer = Killer(settings.state_dir, draw)
    found: list[Facts] = []
    every = kinds()
    since = time.monotonic()
    while (at := time.monotonic() - since) < 60 * minutes:
        kind = draw.choices(every, [one.share for one in every])[0]
        message = {
            "submission_id": f"soak:{len(found)}",
            "lab": "dali-pipelines",
            "learner": f"l{len(found)}",
            "artifact": {"filename": kind.filename, "inline": base64.b64encode(kind.data).decode()},
            "steps": list(kind.steps),
        }
        assert receive_all(intake, [(message, None)], "live")[0].kind == "accepted"
        fault = killer.strike()
        verdict, ends = until_judged(runner, judge)
        found.append(
            {
                "at_s": at,
                "kind": kind.name,
                "fault": fault,
                "ends": [end.value for end in ends],
                "right": verdict is not None and (verdict.status.value == "passed") is kind.passes,
                "own_mib": psutil.Process().memory_info().rss / (1 << 20),
                **facts(verdict),
            }
        )
        print(json.dumps({name: value for name, value in found[-1].items() if name != "stages"}), flush=True)
        if save is not None:
            save.write_text(json.dumps(found))
        time.sleep(draw.choice([0.0, 0.0, 2.0, 15.0]))
    pool.close()
    tell(found, killer)
    quarantined = [one.device_id for one in devices.devices(store) if one.state != "ready"]
    left = [*killer.left(), *(str(path) for path in settings.state_dir.glob("runs/*/"))]
    if gpu is not None:
        print("GPU:", NvmlGpu(gpu.uuid).snapshot())
    print(f"quarantined: {quarantined or 'no'}; left: {left or 'nothing'}")
    store.close()
    return int(bool(left or quarantined or not all(one["right"] for one in found)))


def until_judged(runner: ReferenceKeeping, judge: JudgeDeps) -> tuple[Verdict | None, list[StageEnd]]:
    """The verdict, and how each of its runs ended; None when there is none in time."""
    ends: list[StageEnd] = []
    deadline = time.monotonic() + _PATIENCE_S
    while time.monotonic() < deadline:
        end = runner.run_next(lambda _: None)
        if end is StageEnd.NOTHING:
            time.sleep(0.2)
            continue
        ends.append(end)
        if end is StageEnd.STORED:
            return judge_next(judge), ends
    return None, ends


def facts(verdict: Verdict | None) -> Facts:
    """What is kept of a verdict."""
    if verdict is None or verdict.provenance is None:
        return {"status": "none"}
    measured = verdict.measurement
    decision = measured.decision if measured else None
    return {
        "status": verdict.status.value,
        "codes": [check.code for check in verdict.checks if check.outcome.value != "passed"],
        "held_s": held_s(verdict.provenance),
        "ratio": decision.ratio if decision else None,
        "kept": measured is not None and measured.kept_reference is not None,
        "stages": dict(verdict.provenance.timings_s),
    }


def tell(found: list[Facts], killer: Killer) -> None:
    """Prints the table."""
    middle = found[-1]["at_s"] / 2
    print(f"{len(found)} gradings in {found[-1]['at_s'] / 60:.1f} min; killed: {dict(killer.done)}")
    for name in sorted({one["kind"] for one in found}):
        mine = [one for one in found if one["kind"] == name]
        halves = [[one for one in mine if (one["at_s"] >= middle) is later] for later in (False, True)]
        ended = Counter(one["status"] for one in mine)
        print(f"{name}: {dict(ended)}, held {' then '.join(spread(half) for half in halves)}")
    kept = [one for one in found if one.get("kept") and one["ends"] == ["stored"]]
    print(f"beside a kept reference: {len(kept)}, held {spread(kept)}")
    print(f"tried again: {sum(len(one['ends']) > 1 for one in found)}, wrong: {[o for o in found if not o['right']]}")
    print(f"memory of this process: {found[len(found) // 4]['own_mib']:.0f} to {found[-1]['own_mib']:.0f} MiB")


def spread(found: list[Facts]) -> str:
    """Median and range of the seconds on the GPU."""
    held = [one["held_s"] for one in found if "held_s" in one]
    return f"{statistics.median(held):.1f} s ({min(held):.1f} to {max(held):.1f}, {len(held)})" if held else "-"


if __name__ == "__main__":
    sys.exit(main())
