"""The reference submission, accepted to verdict: by a worker that prepares nothing, runs, or runs and the reference.

    python bench/reference_latency.py [--rounds 3] [--device cuda] [--save FILE] [--then FILE ...]

Each round grades it once in each way, through intake, runner and judge with the GPU's steward between, in an order
that changes: `cold`; `prepared`, from a full pool, as on a host whose queue is empty; `kept`, where beside that our
reference was measured beforehand. Each file of `--then` is graded afterwards until its own job has a kept reference,
and once more beside that: what must not pass must not pass then, either; `--rounds 0` does only this. Needs the lab
image; uses an embedded database.
"""

import argparse
import base64
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from checks.registry import Registry
from grader_service import wiring
from grader_service.host.facts import Gpu
from grader_service.host.gpu.nvml import NvmlGpu
from grader_service.host.gpu.steward import Steward
from grader_service.judging.process import JudgeProcess
from grader_service.measure.kept_references import LEAST_LEARNERS, KeptReferences
from grader_service.measure.reference_run import time_reference
from grader_service.model.verdict import Provenance
from grader_service.service.gate import DeviceGate
from grader_service.service.intake import IntakeDeps, receive_all
from grader_service.service.judge import JudgeDeps, judge_next
from grader_service.service.pipeline import StageEnd
from grader_service.service.reference_keeping import ReferenceKeeping
from grader_service.service.runner import RunnerDeps, removal, run_next
from grader_service.settings import Settings
from grader_service.signer.signatures import Signer
from grader_service.store import devices
from grader_service.store.engine import Store
from sandbox.warm.pool import WarmPool
from sandbox.warm.runner import WarmRunner

SUBMISSION = Path(__file__).resolve().parents[1] / "examples" / "reference_submission.ipynb"
_NOT_HELD = ("unpack", "start")
"""Stages before the learner's first line; for rehearsals, which hold no GPU."""
_FULL_S = 180.0
_IDLE_S = 20.0
"""How long imports of pods that were prepared may still take once the pool is full."""


def main() -> int:
    """Prints each grading, then the medians; exit status 1 when one did not pass."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--save", type=Path)
    parser.add_argument("--then", type=Path, nargs="*", default=[])
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="grader-latency-") as folder:
        settings = Settings(state_dir=Path(folder), learner_per_hour=10_000)
        if options.device == "cpu":
            settings = settings.model_copy(update={"gpu": "none"})
        found = compare(settings, options.rounds, options.then)
    for way, records in found.items():
        if not records:
            continue
        walls, held = [one["wall_s"] for one in records], [one["held_s"] for one in records]
        print(
            f"{way}: accepted to verdict p50 {statistics.median(walls):.1f} s ({min(walls):.1f} to {max(walls):.1f}), "
            f"held p50 {statistics.median(held):.1f} s ({min(held):.1f} to {max(held):.1f})"
        )
        stages = {
            stage: statistics.median(one["stages"].get(stage, 0.0) for one in records) for stage in records[0]["stages"]
        }
        print("  " + ", ".join(f"{stage} {seconds:.1f}" for stage, seconds in stages.items()))
    if options.save is not None:
        options.save.write_text(json.dumps(found, indent=1))
    return 0 if all(one["status"] == "passed" for records in found.values() for one in records) else 1


def compare(settings: Settings, rounds: int, then: Sequence[Path]) -> dict[str, list[dict]]:
    """What each way took, round by round; the first grading of each is not counted. Then those other files."""
    gpu = wiring.chosen_gpu(settings)
    store = wiring.ready_store(settings)
    device = wiring.device_id(gpu)
    cold = wiring.runner_deps(settings, store, gpu, "bench/run", gate(store, device, gpu))
    pool = WarmPool(1)
    prepared = replace(cold, sandbox=WarmRunner(cold.sandbox, pool))
    references = KeptReferences(
        lambda task: time_reference(cold.sandbox, task, cold.device, gpu), fresh_s=3600.0, quiet=pool.quiet
    )
    deps = {"cold": cold, "prepared": prepared, "kept": replace(prepared, references=references)}
    registry, signer = Registry(), Signer.from_folder(settings.key_dir)
    intake = IntakeDeps(store, wiring.open_artifacts(settings), registry, signer)
    judge = JudgeDeps(store, registry, signer, "bench/judge", judging=JudgeProcess())
    found: dict[str, list[dict]] = {way: [] for way in deps}
    try:
        for number in range(rounds + 1 if rounds else 0):
            for way in list(deps)[:: 1 if number % 2 else -1]:
                if way != "cold" and number:
                    assert pool.waits(_FULL_S), "the pool did not fill"
                    time.sleep(_IDLE_S)
                # The first round is not counted; in it the kept way shows its job often enough to have it measured.
                for _ in range(LEAST_LEARNERS if way == "kept" and not number else 1):
                    record = grade(intake, deps[way], judge, f"{way}:{number}")
                    print(f"{way} {number}: {line(record)}", flush=True)
                if way == "kept" and not number:
                    since = time.monotonic()
                    assert ReferenceKeeping(deps[way]).refresh(), "the reference was not measured"
                    print(f"the reference took {time.monotonic() - since:.1f} s")
                if number:
                    found[way].append(record)
        for path in then:
            deps = replace(cold, references=references)
            for number in range(LEAST_LEARNERS):
                print(f"{path.name} {number}: {line(grade(intake, deps, judge, path.stem, path))}", flush=True)
            print(f"the reference for its job was measured: {ReferenceKeeping(deps).refresh()}")
            print(f"{path.name} once more: {line(grade(intake, deps, judge, path.stem, path))}", flush=True)
    finally:
        pool.close()
        store.close()
    return found


def line(record: dict) -> str:
    """What is shown of one grading."""
    return (
        f"{record['status']}, {record['wall_s']:.1f} s, held {record['held_s']:.1f} s, ratio {record['ratio']}, "
        f"blocks {record['blocks']}, screened {record['screened']}, reference kept: {record['kept']}"
    )


def grade(intake: IntakeDeps, runner: RunnerDeps, judge: JudgeDeps, name: str, path: Path = SUBMISSION) -> dict:
    """One grading through all halves of the service, of a learner of its own."""
    message = {
        "submission_id": f"latency:{name}:{time.monotonic_ns()}",
        "lab": "dali-pipelines",
        "artifact": {"filename": path.name, "inline": base64.b64encode(path.read_bytes()).decode()},
    }
    assert receive_all(intake, [(message, None)], "live")[0].kind == "accepted"
    since = time.monotonic()
    with removal() as afterwards:
        assert run_next(runner, afterwards) is StageEnd.STORED
        verdict = judge_next(judge)
        wall_s = time.monotonic() - since
    assert verdict is not None
    stages = dict(verdict.provenance.timings_s)
    decision = verdict.measurement.decision if verdict.measurement else None
    if verdict.status.value != "passed":
        print([(check.id, check.code, check.feedback[:200]) for check in verdict.checks if check.outcome != "passed"])
    return {
        "status": verdict.status.value,
        "wall_s": wall_s,
        "held_s": held_s(verdict.provenance),
        "ratio": round(decision.ratio, 2) if decision else None,
        "stages": stages,
        "blocks": len(verdict.measurement.blocks) if verdict.measurement else 0,
        "screened": len(verdict.measurement.screened) if verdict.measurement else 0,
        "kept": verdict.measurement.kept_reference.images_per_s
        if verdict.measurement and verdict.measurement.kept_reference
        else None,
    }


def held_s(run: Provenance) -> float:
    """Seconds for which a run held its GPU, or would have held one."""
    return run.gpu_held_s or sum(seconds for stage, seconds in run.timings_s.items() if stage not in _NOT_HELD)


def gate(store: Store, device: str, gpu: Gpu | None) -> DeviceGate:
    """With the GPU's steward where there is a GPU."""
    if gpu is None:
        return DeviceGate(store, device, "bench", "CPU", None)
    steward = Steward(NvmlGpu(gpu.uuid), lambda reason: devices.quarantine(store, device, reason, "bench"))
    return DeviceGate(store, device, "bench", gpu.model, steward)


if __name__ == "__main__":
    sys.exit(main())
