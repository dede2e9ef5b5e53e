"""What the submissions of a stored cohort found: evidence whose verdicts are known at two thresholds of the ratio."""

import json
import math
import random
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

from checks.reflections.check import reflections
from grader_service.measure.sequential_test import replay
from grader_service.model.evidence import Ending, Evidence, ImageSize, OperatorFacts, PodRecord, PodRole
from grader_service.model.measurement import (
    Arm,
    Block,
    ClaimBesideMeasurement,
    ContentKind,
    ContentProof,
    HostBlock,
    HostEffect,
    Measurement,
)
from grader_service.model.verdict import Outcome
from tests.factories import (
    a_batch,
    a_clean_room,
    a_discovery,
    a_graph,
    a_loader,
    a_pipeline,
    a_run,
    a_scan,
    an_evidence,
)
from tests.report import factories

OLD_THRESHOLD, NEW_THRESHOLD = 1.1, 1.3
_KINDS = {
    "above": (44, "passed", "passed"),
    "between": (20, "passed", "failed"),
    "near": (4, "passed", "inconclusive"),
    "border": (4, "inconclusive", "failed"),
    "below": (14, "failed", "failed"),
    "few_images": (5, "failed", "failed"),
    "thin_reflection": (4, "failed", "failed"),
    "stopped": (2, "failed", "failed"),
    "rejected": (3, "rejected", "rejected"),
}
"""Kind to its share, per cent, and to its status at the old threshold and at the new one."""
MIX = {kind: share for kind, (share, *_) in _KINDS.items()}
TRANSITIONS = {kind: (old, new) for kind, (_, old, new) in _KINDS.items()}
MEASURED = frozenset({"above", "between", "near", "border", "below", "few_images", "thin_reflection"})
"""Kinds in which the ratio was put to the test: an attempt of the learner."""
DIGESTS = (f"sha256:{'1d' * 32}", f"sha256:{'2e' * 32}")
"""Of the lab images that runs used."""
_RATIOS = {
    "above": (1.60, 2.60, 0.03),
    "between": (1.17, 1.21, 0.02),
    "near": (1.27, 1.29, 0.05),
    "border": (1.10, 1.14, 0.05),
    "below": (0.55, 0.95, 0.03),
    "few_images": (1.70, 2.20, 0.03),
    "thin_reflection": (1.70, 2.20, 0.03),
}
"""Kind to the range of its true ratios, and the SD of `ln(ratio)` per block."""
_TRIES = 2000
_LABELLED = Path(__file__).parents[1] / "checks" / "reflections" / "labelled" / "train" / "writer_01.jsonl"
_OPERATORS = (
    ("readers__File", "cpu"),
    ("decoders__ImageRandomCrop", "mixed"),
    ("Resize", "gpu"),
    ("random__CoinFlip", "cpu"),
    ("ColorTwist", "gpu"),
    ("CropMirrorNormalize", "gpu"),
)


def kinds(count: int) -> list[str]:
    """The kind of each submission: the exact shares of `MIX`, shuffled."""
    exact = {kind: count * share / 100 for kind, share in MIX.items()}
    whole = {kind: math.floor(number) for kind, number in exact.items()}
    by_rest = sorted(MIX, key=lambda kind: whole[kind] - exact[kind])
    for kind in by_rest[: count - sum(whole.values())]:
        whole[kind] += 1
    found = [kind for kind, number in whole.items() for _ in range(number)]
    random.Random(1).shuffle(found)
    return found


def transitions(count: int) -> Counter[tuple[str, str]]:
    """How many of so many submissions go from which status to which when the threshold moves from 1.1 to 1.3."""
    return Counter(TRANSITIONS[kind] for kind in kinds(count))


def evidence_of(kind: str | float, attempt: int, run_id: str, draw: random.Random) -> Evidence:
    """Evidence of one run of this kind, or of one that is good in every way and has this ratio.

    There is none for `rejected`, which was never run.
    """
    wins, loses = draw.choice(_reflections())
    images = draw.randint(20, 95) if kind == "few_images" else draw.randint(120, 512)
    run = _run(run_id, draw)
    if kind == "stopped":
        record = PodRecord(role=PodRole.LEARNER, ending=Ending.TIMED_OUT, exit_code=None, wall_s=900.0)
        run = run.model_copy(update={"pods": (record,)})
        return an_evidence(run=run, discovery=None, scan=None, clean_room=None, measurement=None)
    rates = {Arm.LEARNER: draw.uniform(400, 800)}
    measurement = measured(kind, attempt, rates[Arm.LEARNER], draw)
    claimed = rates[Arm.LEARNER] * draw.uniform(0.9, 1.2)
    discovery = a_discovery(
        pytorch_throughput={"status": "present", "value": claimed, "shown": f"{claimed:.1f}"},
        where_dali_wins={"status": "present", "items": wins},
        where_dali_loses={"status": "present", "items": ("text",) if kind == "thin_reflection" else loses},
        loaders=(a_loader(dataset_length=images),),
        pipelines=(a_pipeline(),),
    )
    sizes = tuple(
        ImageSize(width=500, height=draw.randint(330, 500), size_bytes=draw.randint(30_000, 90_000))
        for _ in range(images)
    )
    scan = a_scan(distinct=images, entries_seen=images + 2, sizes=sizes)
    graph = a_graph(operators=tuple(OperatorFacts(name=name, device=device) for name, device in _OPERATORS))
    batch = a_batch(low=-draw.uniform(1.5, 2.1), high=draw.uniform(2.0, 2.6))
    room = a_clean_room(graph=graph, batch=batch)
    return an_evidence(run=run, discovery=discovery, scan=scan, clean_room=room, measurement=measurement)


def measured(kind: str | float, attempt: int, baseline: float, draw: random.Random) -> Measurement:
    """A measurement that ended where the sequential test ended it, and that both thresholds decide as the kind says."""
    if not isinstance(kind, str):
        return measured_at(
            [math.log(kind) + draw.gauss(0.0, 0.02) for _ in range(factories.PLAN.most_blocks)], attempt, baseline, draw
        )
    low, high, sd = _RATIOS[kind]
    goal = TRANSITIONS[kind] if kind not in {"few_images", "thin_reflection"} else ("passed", "passed")
    for _ in range(_TRIES):
        ratio = draw.uniform(low, high)
        logs = [math.log(ratio) + draw.gauss(0.0, sd) for _ in range(factories.PLAN.most_blocks)]
        found = measured_at(logs, attempt, baseline, draw)
        again = replay([block.log_ratio for block in found.blocks], factories.PLAN, NEW_THRESHOLD, attempt=attempt)
        if found.decision is not None and again is not None and (found.decision.outcome, again.outcome) == goal:
            return found
    raise AssertionError(f"no noise makes a measurement of the kind {kind!r} in attempt {attempt}")


def measured_at(logs: list[float], attempt: int, baseline: float, draw: random.Random) -> Measurement:
    """The measurement with as many of these blocks as the old threshold needs."""
    decision = replay(logs, factories.PLAN, OLD_THRESHOLD, attempt=attempt)
    assert decision is not None
    rates = {Arm.LEARNER: baseline, Arm.DECLARED: baseline * 0.98, Arm.FAIR: baseline * 0.95}
    blocks = tuple(_block(index, log, rates, draw) for index, log in enumerate(logs[: decision.blocks_used]))
    host = HostEffect(ratio=2.2, blocks=(HostBlock(dali=baseline * 2.2, pytorch=baseline),))
    arms = []
    for arm in Arm:
        seen = sorted(window.images_per_s for block in blocks for window in block.windows if window.arm is arm)
        arms.append(factories.arm(arm, images_per_s=seen[len(seen) // 2], low=seen[0], high=seen[-1]))
    return factories.measurement(
        blocks=blocks,
        arms=tuple(arms),
        decision=decision,
        claims=(ClaimBesideMeasurement(name="dali_throughput", claimed=9000.0, measured=arms[0].images_per_s),),
        measured_s=4.0 * len(blocks),
        content=ContentProof(
            delivered=8000, identified=8000, distinct=160, audited=60, texture=0.99, area=0.44, expected_area=0.43,
            kind=ContentKind.FULL,
        ),
        attempt=attempt,
        host=None if decision.outcome == "passed" else host,
    )  # fmt: skip


def _block(index: int, log_ratio: float, rates: dict[Arm, float], draw: random.Random) -> Block:
    drift = draw.uniform(0.97, 1.03)
    rates = {Arm.DALI: rates[Arm.LEARNER] * math.exp(log_ratio), **rates}
    drifted = {arm: rate * drift for arm, rate in rates.items()}
    return factories.block(index, rates=drifted, log_ratio=log_ratio)


def _run(run_id: str, draw: random.Random) -> Any:
    learner_s, measure_s = draw.uniform(10.0, 60.0), draw.uniform(8.0, 25.0)
    return a_run(
        run_id=run_id,
        image="grader-lab",
        image_digest=draw.choice(DIGESTS),
        engine="docker 27.1",
        host={"cpu": "AMD EPYC 9654", "cores": 16, "memory_mib": 131072},
        gpu={"model": draw.choice(("NVIDIA H100 80GB HBM3", "NVIDIA H200")), "uuid": "GPU-1234", "driver": "580.159"},
        seed=f"{draw.getrandbits(128):032x}",
        versions={"torch": "2.11.0", "torchvision": "0.26.0", "dali": "2.4.0"},
        timings_s={"unpack": 0.6, "start": 0.5, "learner": learner_s, "scan": 0.7, "measure": measure_s, "end": 0.1},
    )


@cache
def _reflections() -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Lists that people wrote and that the check accepts."""
    rows = map(json.loads, _LABELLED.read_text(encoding="utf-8").splitlines())
    written = ((tuple(row["where_dali_wins"]), tuple(row["where_dali_loses"])) for row in rows)
    return [(wins, loses) for wins, loses in written if reflections(wins, loses, ()).outcome is Outcome.PASSED]
