"""Builders of verdicts and what is in them; each test changes only what it is about."""

import math
from datetime import UTC, datetime
from functools import partial

from grader_service.model.feedback import Advice, Feedback, NextStep, Severity
from grader_service.model.lab import MeasurementPlan
from grader_service.model.measurement import (
    Arm,
    ArmReport,
    Block,
    ClaimBesideMeasurement,
    ContentKind,
    ContentProof,
    Corroboration,
    Decision,
    GpuUse,
    GraphProof,
    Interval,
    LoaderSettings,
    Measurement,
    Window,
)
from grader_service.model.place import Place
from grader_service.model.run_report import RunEnding, RunException, RunReport
from grader_service.model.verdict import (
    CheckVerdict,
    Mode,
    Outcome,
    Provenance,
    Signature,
    Status,
    StepVerdict,
    Tier,
    Verdict,
)

RATES = {Arm.DALI: 820.0, Arm.LEARNER: 570.0, Arm.DECLARED: 600.0, Arm.FAIR: 640.0}
SETTINGS = LoaderSettings(batch_size=32, num_workers=2, pin_memory=True, persistent_workers=False, prefetch_factor=2)
PLAN = MeasurementPlan()


provenance = partial(
    Provenance,
    submission_sha256="ab" * 32,
    filename="submission.ipynb",
    entry_point="submission.ipynb",
    lab_version="1.0.0",
    grader_version="0.1.0",
    check_versions={"throughput_ratio": "1.0.0 (grader-service 0.1.0)"},
    sandbox="docker",
    isolated=True,
    image="grader-lab",
    image_digest=f"sha256:{'cd' * 32}",
    engine="docker 27.1",
    host={"cpu": "AMD EPYC 9654", "cores": 16, "memory_mib": 131072, "gpu_access": None},
    gpu={"model": "NVIDIA H200", "uuid": "GPU-1234", "driver": "570.86", "memory_mib": 143771},
    versions={"torch": "2.11.0", "torchvision": "0.26.0", "dali": "2.4.0"},
    seed="30a5c63f5584221617bb05df0b1998dd",
    timings_s={"unpack": 0.006, "learner": 61.5, "measure": 23.958, "tidy_up": 0.4},
)


def check(check_id="jpeg_dataset", step="baseline", outcome=Outcome.PASSED, **changes):
    earned = {Outcome.PASSED: 25.0, Outcome.FAILED: 0.0}
    return CheckVerdict(
        **{
            "id": check_id,
            "version": "1.0.0",
            "step": step,
            "outcome": outcome,
            "code": f"{check_id.split('_')[0]}.{outcome.value}",
            "score": earned.get(outcome),
            "max_score": 25.0,
            "feedback": f"What `{check_id}` saw, what it wanted, and what to do next.",
            "details": {"seen": 3, "names": ["a", "b"]},
        }
        | changes
    )


place = partial(
    Place,
    file="s.ipynb",
    line=2,
    cell=3,
    source="x = y",
    context=("import os", "x = y", "print('<i>')"),
    context_from=1,
)
PRINTED = "epoch 1 of 3\n</pre> <b>loss 0.7</b>"
stopped_run = partial(
    RunReport,
    state=RunEnding.RAISED,
    code="run.raised",
    outcome="Your code stopped at cell 3, line 2 (NameError): `y` was never set.",
    place=place(),
    exception=RunException(type="NameError", message="name 'y' is not defined"),
    cause="`y` was never set.",
    remedy="Set `y` in a cell above.",
    output_tail=PRINTED,
    traceback="Traceback (most recent call last):\n  Cell 3, line 2\n    x = y\nNameError: name 'y' is not defined",
    seconds=3.5,
    limit_s=900.0,
)
"""A run that ended in its third cell."""
parts = partial(
    Feedback,
    outcome="`dataset_dir` is not defined.",
    seen="There is `data_root`, a folder with 128 JPEGs: you may mean that.",
    wanted="It should hold the folder with your <JPEG> files.",
    next=NextStep(text="Add this line:", code="dataset_dir = data_root", place=place()),
    advice=(
        Advice(code="advice.loud", text="Images are not normalised.", next="Divide by 255.", place=place()),
        Advice(code="advice.soft", severity=Severity.NOTE, text="A batch of 24 is odd."),
    ),
    numbers={"images": 128},
)
"""Every part that feedback can have."""


def told_check(*names, **changes):
    """A check that failed and says so in parts."""
    said = parts()
    return check(*names, **{"outcome": Outcome.FAILED, "parts": said, "feedback": said.text} | changes)


def unreached(check_id="jpeg_dataset", step_id="baseline", **changes):
    """A check that could not look because the run ended before."""
    said = Feedback(outcome="Not reached.")
    given = {"code": "run.not_reached", "score": 0.0, "parts": said, "feedback": said.text, "details": {}}
    return check(check_id, step_id, Outcome.SKIPPED, **given | changes)


def step(step_id="baseline", outcome=Outcome.PASSED, score=25.0):
    return StepVerdict(id=step_id, outcome=outcome, score=score, max_score=25.0)


def block(index=0, ratio=1.4, rates=None, **changes):
    rates = RATES if rates is None else rates
    order = tuple(rates) if index % 2 == 0 else tuple(rates)[::-1]
    windows = tuple(Window(arm=arm, images=round(rates[arm]), seconds=round(rates[arm]) / rates[arm]) for arm in order)
    return Block(
        **{"index": index, "order": order, "windows": windows, "log_ratio": math.log(ratio), "baseline": Arm.LEARNER}
        | changes
    )


def decision(ratio=1.39, low=1.32, high=1.46, outcome="passed", **changes):
    return Decision(
        **{
            "outcome": outcome,
            "threshold": 1.1,
            "ratio": ratio,
            "interval": Interval(low=low, high=high, confidence=0.95),
            "blocks_used": 6,
            "look": 2,
            "rule": "group-sequential t-test on ln(ratio) per block",
        }
        | changes
    )


def arm(which, **changes):
    rate = RATES[which]
    return ArmReport(
        **{
            "arm": which,
            "images_per_s": rate,
            "low": rate * 0.95,
            "high": rate * 1.04,
            "settings": None if which is Arm.DALI else SETTINGS,
        }
        | changes
    )


def measurement(ratios=(1.30, 1.41, 1.48, 1.40, 1.34, 1.40), **changes):
    return Measurement(
        **{
            "device": "cuda",
            "plan": PLAN,
            "images": 160,
            "image_sizes": "500-500 × 375-375 px",
            "arms": tuple(arm(which) for which in Arm),
            "blocks": tuple(block(index, ratio) for index, ratio in enumerate(ratios)),
            "decision": decision(blocks_used=len(ratios)),
            "dali_settings": {"batch_size": 32, "num_threads": 2, "prefetch_queue_depth": [2, 2]},
            "claims": (ClaimBesideMeasurement(name="dali_throughput", claimed=9000.0, measured=820.0),),
            "measured_s": 23.9,
        }
        | changes
    )


verdict = partial(
    Verdict,
    verdict_id="1df2cd055cce491a933aabe4d1d28a34",
    submission_id="platform:4711",
    run_id="1a9bc8bc98cf94220958eb77180f8bc0",
    lab="dali-pipelines",
    learner="learner-17",
    cohort="2026-fall",
    mode=Mode.OFFICIAL,
    status=Status.PASSED,
    code="grade.passed",
    feedback="Every step passed.",
    score=50.0,
    max_score=50.0,
    created_at=datetime(2026, 11, 21, 3, 39, 48, tzinfo=UTC),
    steps=(step("baseline"), step("benchmark")),
    checks=(check(), check("throughput_ratio", "benchmark", tier=Tier.GRAPH)),
    measurement=measurement(),
    provenance=provenance(),
    signature=Signature(key_id="6b36f696cfb5fcab", public_key="c4" * 32, value="23" * 64),
)
"""An official pass of two steps, with a measurement and a signature."""


content = partial(
    ContentProof,
    delivered=12288,
    identified=12288,
    distinct=12160,
    stale=96,
    repeated=32,
    audited=64,
    failed_audits=1,
    texture=0.973,
    area=0.4912,
    expected_area=0.5034,
    low=0.875,
    expected_low=0.892,
    kind=ContentKind.FULL,
    note="64 full; texture 0.94 to 1.00, worst block 0.81",
)


graph_proof = partial(
    GraphProof,
    samples=64,
    alike=64,
    own=63,
    on_gpu=64,
    windows=192,
    area=0.5034,
    standard_area=0.5121,
    low=0.7344,
    standard_low=0.7512,
    scant=0.0156,
    credits={"colour": 1.0, "turn": 0.5},
    seconds=2.25,
)


corroboration = partial(
    Corroboration,
    uses=(
        GpuUse(arm=Arm.DALI, samples=61, sm_percent=28.6, jpg_percent=57.2, memory_mib=3120.4, processes=3),
        GpuUse(arm=Arm.LEARNER, samples=58, sm_percent=0.42, jpg_percent=0.0, memory_mib=3118.0, processes=3),
        GpuUse(arm=Arm.DECLARED, samples=60, sm_percent=0.5, memory_mib=3118.0, processes=3),
        GpuUse(arm=Arm.FAIR, samples=0),
    ),
    flags=(
        "the GPU was busy (31 % SM) in the windows of reference_fair, which only copies batches to it",
        "in a block: Xid 43, which a program caused",
    ),
)
