"""Builders of valid values; each test changes only what it is about."""

import base64
import math
from functools import partial
from typing import Any

from grader_service.measure.sequential_test import decide
from grader_service.model.discovery import Claim, Discovery, FirstBatch, LoaderFacts, PathClaim, PipelineFacts, TextList
from grader_service.model.evidence import (
    BatchFacts,
    CleanRoom,
    Ending,
    Evidence,
    GraphFacts,
    ImageSize,
    OperatorFacts,
    PodRecord,
    PodRole,
    RunRecord,
    Scan,
)
from grader_service.model.lab import LabRef, MeasurementPlan
from grader_service.model.measurement import (
    Arm,
    ArmReport,
    Block,
    ClaimBesideMeasurement,
    LoaderSettings,
    Measurement,
    Window,
)

A_LAB = LabRef(sha256="0" * 64, form="toml")
"""Of a plan, where nobody reads the lab."""

WINS = (
    "ImageNet training with few CPU cores per GPU: JPEG decoding in the workers starves the card.",
    "Video clips decoded on NVDEC, so that frames never pass through the CPU.",
    "Several GPUs on one host whose loader workers compete for the same cores.",
)
LOSES = (
    "BERT on pre-tokenised text: there is nothing to decode, so the loader was never the bottleneck.",
    "CIFAR-10, whose tiny images fit into memory and need no decoding at all.",
)

a_loader = partial(
    LoaderFacts,
    name="loader",
    batch_size=32,
    num_workers=2,
    pin_memory=True,
    persistent_workers=True,
    prefetch_factor=2,
    drop_last=False,
    dataset_type="ImageFolder",
    dataset_length=160,
)

a_pipeline = partial(
    PipelineFacts, name="dali_iter", iterator_type="DALIGenericIterator", batch_size=32, num_threads=4, graph=None
)

a_discovery = partial(
    Discovery,
    ran="completed",
    duration_s=12.0,
    dataset_dir=PathClaim(status="present", path="/workspace/data", shown="data"),
    pytorch_throughput=Claim(status="present", value=500.0, shown="500.0"),
    dali_throughput=Claim(status="present", value=900.0, shown="900.0"),
    where_dali_wins=TextList(status="present", items=WINS),
    where_dali_loses=TextList(status="present", items=LOSES),
    first_batch=FirstBatch(status="present", type="Tensor", shape=(32, 3, 224, 224), device="cuda:0"),
    loaders=(a_loader(),),
    pipelines=(a_pipeline(),),
)

a_scan = partial(
    Scan,
    root="/workspace/data",
    distinct=160,
    entries_seen=162,
    sizes=(ImageSize(width=500, height=375, size_bytes=60_000),),
)

a_graph = partial(
    GraphFacts,
    operators=(
        OperatorFacts(name="readers__File", device="cpu"),
        OperatorFacts(name="decoders__Image", device="mixed"),
    ),
    declared_batch_size=32,
    declared_threads=4,
    declared_prefetch=2,
    output_devices=("gpu", "gpu"),
    decoder_devices=("mixed",),
)

a_batch = partial(
    BatchFacts,
    output=0,
    shape=(32, 3, 224, 224),
    dtype="FLOAT",
    layout="NCHW",
    device="cuda",
    declared_device="gpu",
    finite=True,
    constant=False,
    low=-2.1,
    high=2.6,
)

a_clean_room = partial(CleanRoom, pipeline="dali_iter", graph=a_graph(), batch=a_batch())


def a_block(index: int, ratio: float, baseline_rate: float = 500.0, spoiled: str | None = None) -> Block:
    rates = {Arm.DALI: baseline_rate * ratio, Arm.LEARNER: baseline_rate, Arm.DECLARED: baseline_rate}
    return Block(
        index=index,
        order=tuple(rates),
        windows=tuple(Window(arm=arm, images=int(rate * 100), seconds=100.0) for arm, rate in rates.items()),
        log_ratio=math.log(ratio),
        baseline=Arm.LEARNER,
        spoiled=spoiled,
    )


def a_measurement(
    ratios: tuple[float, ...] = (1.9, 2.0, 2.1, 2.0), threshold: float = 1.1, **changes: Any
) -> Measurement:
    plan = MeasurementPlan()
    settings = LoaderSettings(batch_size=32, num_workers=2, pin_memory=True, persistent_workers=True, prefetch_factor=2)
    logs = [math.log(ratio) for ratio in ratios]
    values: dict[str, Any] = {
        "device": "cuda",
        "plan": plan,
        "images": 160,
        "image_sizes": "500-500 × 375-375 px",
        "arms": (
            ArmReport(arm=Arm.DALI, images_per_s=1000.0, low=950.0, high=1050.0),
            ArmReport(arm=Arm.LEARNER, images_per_s=500.0, low=480.0, high=520.0, settings=settings),
            ArmReport(arm=Arm.DECLARED, images_per_s=505.0, low=490.0, high=520.0, settings=settings),
        ),
        "blocks": tuple(a_block(i, ratio) for i, ratio in enumerate(ratios)),
        "decision": decide(logs, plan, threshold, last=True),
        "claims": (
            ClaimBesideMeasurement(name="pytorch_throughput", claimed=500.0, measured=500.0),
            ClaimBesideMeasurement(name="dali_throughput", claimed=1000.0, measured=1000.0),
        ),
        "measured_s": 14.0,
    }
    return Measurement(**(values | changes))


a_run = partial(
    RunRecord,
    run_id="0" * 32,
    device="cuda",
    sandbox="docker",
    isolated=True,
    entry_point="submission.ipynb",
    seed="ab" * 16,
    pods=(PodRecord(role=PodRole.LEARNER, ending=Ending.COMPLETED, exit_code=0, wall_s=20.0),),
)


def an_evidence(**changes: Any) -> Evidence:
    values: dict[str, Any] = {
        "run": a_run(),
        "discovery": a_discovery(),
        "scan": a_scan(),
        "clean_room": a_clean_room(),
        "measurement": a_measurement(),
    }
    return Evidence(**(values | changes))


def ended(ending: Ending, exit_code: int | None = 1) -> Evidence:
    """Evidence of a run whose learner's pod ended without a word."""
    record = PodRecord(role=PodRole.LEARNER, ending=ending, exit_code=exit_code, wall_s=3.0)
    return an_evidence(run=a_run(pods=(record,)), discovery=None, scan=None, clean_room=None, measurement=None)


class OpenGate:
    """A device without a steward; stands in for `DeviceGate`."""

    def open(self) -> bool:
        """Always."""
        return True

    def free(self) -> bool:
        """Always."""
        return True

    def release(self) -> None:
        """There is no GPU."""

    def examine(self) -> None:
        """There is no GPU."""


def message(submission_id: str, source: str, **more: object) -> dict[str, Any]:
    """What is posted for a submission of one file."""
    artifact = {"filename": "submission.py", "inline": base64.b64encode(source.encode()).decode()}
    return {"submission_id": submission_id, "lab": "dali-pipelines", "artifact": artifact, **more}
