"""What is measured when a graph cannot be carried: the learner's own code, by the content that it delivers.

Tier A was refused before this begins. B exchanges images under the running iterator, C builds it anew for every window,
and where neither shows new images the measurement says what was tried and has no decision.
"""

import math
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Literal

from pydantic import Field

from grader_service.held_out.plan import MAX_IMAGES
from grader_service.measure import arms, blocks
from grader_service.measure.baselines import measured, not_timed
from grader_service.measure.comparison import declared_settings, fair_settings, reference_settings
from grader_service.measure.gpu_use import Span
from grader_service.measure.interference import InterferenceMonitor
from grader_service.measure.proof import Tally
from grader_service.measure.proof_arm import HeldArm, ProofArm, ReferenceSender, hold_loader
from grader_service.measure.trial_shards import TrialShards
from grader_service.model.base import Device, ShortText, Wire
from grader_service.model.batch_geometry import height_width_channels
from grader_service.model.discovery import Discovery
from grader_service.model.evidence import CleanRoom, ServedBatch
from grader_service.model.lab import MeasurementPlan
from grader_service.model.measurement import (
    Arm,
    ContentProof,
    GpuUse,
    LoaderSettings,
    Measurement,
    TierRefused,
)
from grader_service.run.dialogue import Problem, Stopped, ask, awake, parse
from grader_service.run.pod_set import PodSet
from grader_service.run.session import Session
from sandbox.api import Pod

FACTORY = "build_dali_iterator"
_WRONG = frozenset({"ragged_batch", "no_image_output", "no_pipeline"})
"""What the clean room found to be wrong, not impossible to carry: nothing is left to prove."""
_BUILD_S = 180.0
_WINDOW_S = 120.0
_PROBES = 2
_IMAGES_PER_CORE_S = 250
"""A DataLoader's images per second and core, roughly: sizes a window without asking the learner's code."""
_FEWEST_IMAGES = 128
_BLOCKS = 8
"""Blocks that the colours suffice for at the least, where windows are as long as colours allow."""
_WATCH_S = 2.0
"""That code which would pass runs on after its trials, and then a loader of ours, for NVML to see what the GPU does:
windows are often shorter than one of its samples."""
_MOST_BATCH = 1024
_USUAL_BATCH = 32
_NO_DRIVER = re.compile(r"CUDA driver|CUDA-capable|NVIDIA driver|libcuda\.so")


class DaliReady(Wire):
    """The learner's factory delivered its first batch; a claim."""

    kind: Literal["dali_ready"]
    type: ShortText
    shape: Annotated[tuple[Annotated[int, Field(ge=1, le=1 << 20)], ...], Field(min_length=4, max_length=4)]
    dtype: ShortText
    device: Device


@dataclass(frozen=True)
class Proven:
    """What came of it."""

    room: CleanRoom
    """As it was, with the batch that was served beside it."""
    measurement: Measurement
    job: Mapping[str, object] = field(default_factory=dict)
    """Of the references; empty where nothing was served."""
    references: Sequence[arms.TimedArm] = ()
    """Those that were timed, without the transfer that delivering costs."""


def worth_trying(room: CleanRoom) -> bool:
    """Whether a graph that the clean room did not run leaves something to measure."""
    return room.problem is not None and room.problem not in _WRONG


def measure_by_content(
    session: Session, interference: InterferenceMonitor, room: CleanRoom, files: Sequence[str]
) -> Proven:
    """Tries tier B, then C; what neither can measure has no decision and says why.

    Args:
        session: of the run; the learner's pod is frozen, the reference's is ready.
        files: held-out images that stay as they are, for loaders of PyTorch; paths as pods see them.

    Raises:
        SandboxUnavailable: the reference's pod ended.
        OSError: images could not be written.
    """
    pod_set, discovery, plan = session.pod_set, session.found.discovery, session.pod_set.lab.measurement
    refused = [TierRefused(tier="A", problem=room.problem or "unknown", text=room.problem_text)]
    if FACTORY not in discovery.factories:
        text = f"No function `{FACTORY}(dataset_dir, batch_size)` is defined, so nothing could be run on other images."
        refused += [TierRefused(tier=tier, problem="no_factory", text=text) for tier in ("B", "C")]
        return Proven(room, _nothing(session, refused))
    batch_size = _wanted_batch(discovery)
    per_part = _images_per_window(plan, len(pod_set.cpus), batch_size)
    parts = 1 + 2 * _PROBES + plan.looks[-1] + 4
    own = _own_loader(pod_set, discovery, batch_size)
    with TrialShards(session.seed, session.sizes, per_part, parts, pod_set.space.shards_dir) as shards:
        shards.make_next()
        live = f"{pod_set.space.paths.shards}/{shards.show()}"
        ready = _build(pod_set.learner, live, batch_size, 2 + per_part // batch_size)
        if isinstance(ready, str):
            needs_gpu = pod_set.device == "cpu" and _NO_DRIVER.search(ready) is not None
            problem = "needs_gpu" if needs_gpu else "factory_failed"
            refused += [TierRefused(tier=tier, problem=problem, text=ready) for tier in ("B", "C")]
            told = room if needs_gpu else room.model_copy(update={"factory_problem": ready})
            return Proven(told, _nothing(session, refused))
        dali = ProofArm(pod_set.learner, shards, pod_set.space.paths.shards, ready.shape, first_look=plan.looks[0])
        tier, tally = _probe(dali, refused)
        job, references = _job(ready), []
        if tier is None or pod_set.reference is None:
            content = dali.ledger.conclude() if dali.ledger.total.delivered else None
            measurement = _nothing(session, refused, content=content)
        else:
            fair = fair_settings(plan, len(pod_set.cpus), ready.shape[0])
            references = [
                ReferenceSender.prepare(pod_set.reference, arm, settings, files, job, pod_set.device)
                for arm, settings in reference_settings(own.settings or fair, fair).items()
            ]
            measurement = _measure(session, interference, shards, dali, own, ready, references).model_copy(
                update={"tier": tier, "refused": tuple(refused)}
            )
        # The size of a batch is what all windows held to: the first batch alone may be a show.
        distinct = min(tally.fresh, ready.shape[0], dali.least_batch)
        served = ServedBatch(
            shape=ready.shape,
            dtype=ready.dtype,
            device=ready.device,
            distinct=distinct,
            tier="C" if measurement.tier == "C" else "B",
        )
        plain = [arms.ReferenceArm(one.pod, one.arm, one.settings, one.queue_depth) for one in references]
        return Proven(room.model_copy(update={"served": served}), measurement, job, plain)


def _wanted_batch(discovery: Discovery) -> int:
    sizes = [pipeline.batch_size for pipeline in discovery.pipelines if pipeline.batch_size]
    sizes += [loader.batch_size for loader in discovery.loaders if loader.batch_size]
    return min(max(sizes[0] if sizes else _USUAL_BATCH, 1), _MOST_BATCH)


def _images_per_window(plan: MeasurementPlan, cpus: int, batch_size: int) -> int:
    """Whole batches that take a DataLoader about two windows; no more than leaves room for several looks.

    On a host with many cores it is the number of colours that ends a measurement: a first look alone is seldom enough.
    """
    wanted = max(_FEWEST_IMAGES, 2 * _IMAGES_PER_CORE_S * cpus * plan.block_s)
    most = MAX_IMAGES // (1 + _PROBES + max(_BLOCKS, plan.looks[0]))
    return max(1, math.floor(min(wanted, most) / batch_size)) * batch_size


def _own_loader(pod_set: PodSet, discovery: Discovery, batch_size: int) -> "_OwnLoader":
    """Times the learner's DataLoader before the first trial."""
    if pod_set.reference is None:
        return _OwnLoader(None, None, "not timed")
    pod, block_s = pod_set.learner, pod_set.lab.measurement.block_s
    with awake(pod):
        ready = arms.prepare_learner_arm(pod, discovery, pod_set.space.paths.shards, batch_size)
        if isinstance(ready, arms.ArmLost):
            return _OwnLoader(None, None, f"could not be re-measured: {ready.reason}"[:200])
        settings = declared_settings(ready.facts.loader, batch_size)
        held = hold_loader(pod, settings, ready.facts.queue_depth, block_s, timeout_s=_WINDOW_S)
    if isinstance(held, arms.ArmLost):
        return _OwnLoader(None, settings, f"could not be re-measured: {held.reason}"[:200])
    note = f"{ready.facts.loader.name}: held-out images {ready.facts.content}, timed before the blocks"
    return _OwnLoader(held, settings, note[:200])


@dataclass(frozen=True)
class _OwnLoader:
    arm: HeldArm | None
    settings: LoaderSettings | None
    note: str


def _build(pod: Pod, live: str, batch_size: int, drain: int) -> DaliReady | str:
    """Calls the learner's factory; why it did not work, for the learner, if it did not."""
    request = {"kind": "prepare_dali", "folder": live, "batch_size": batch_size, "drain": drain}
    with awake(pod):
        answer = parse(pod, ask(pod, request, timeout_s=_BUILD_S), DaliReady, Problem)
    if isinstance(answer, DaliReady):
        return answer
    if isinstance(answer, Problem):
        return f"`{FACTORY}` did not work on other images: {answer.text}"[:2000]
    assert isinstance(answer, Stopped)  # noqa: S101 - the only other type
    return f"`{FACTORY}` did not deliver a batch: the process ended ({answer.ending.value.replace('_', ' ')})."


def _probe(dali: ProofArm, refused: list[TierRefused]) -> tuple[Literal["B", "C"] | None, Tally]:
    """Whether new images come out of the running iterator, or at least out of one that is built anew."""
    tally = Tally()
    for tier, cold in (("B", False), ("C", True)):
        for _ in range(_PROBES):
            outcome = dali.probe(cold=cold, timeout_s=_WINDOW_S)
            if isinstance(outcome, arms.ArmLost):
                refused.append(TierRefused(tier=tier, problem="stopped", text=outcome.reason[:2000]))  # type: ignore[arg-type]
                return None, tally
            tally = outcome
        # What delivers a few new images and then old ones again is tier B's to judge: it did look.
        if tally.fresh:
            return tier, tally  # type: ignore[return-value]
        if tally.delivered and tally.unknown == tally.delivered:
            break
        text = (
            f"After the images had been exchanged the iterator delivered {tally.delivered} images in one window and "
            f"none of them was new: {tally.stale} from before, {tally.repeated} repeated, {tally.unknown} unknown."
        )
        refused.append(TierRefused(tier=tier, problem="nothing_new", text=text))  # type: ignore[arg-type]
    if tally.unknown and not tally.fresh:
        text = f"None of {tally.delivered} images could be recognised as one of the held-out ones."
        refused.append(TierRefused(tier="B", problem="not_identified", text=text))
    return None, tally


def watch(interference: InterferenceMonitor, dali: ProofArm, reference: arms.TimedArm) -> tuple[GpuUse, ...]:
    """What the GPU does while the learner's code runs, and while a loader of ours does."""
    learners = dali.go_on(_WATCH_S, timeout_s=_WINDOW_S)
    start = time.monotonic()
    reference.window(reference.batches_for(_WATCH_S), timeout_s=_WINDOW_S)
    return interference.uses([learners, Span(reference.arm, start, time.monotonic())])


def _measure(
    session: Session,
    interference: InterferenceMonitor,
    shards: TrialShards,
    dali: ProofArm,
    own: _OwnLoader,
    ready: DaliReady,
    references: Sequence[ReferenceSender],
) -> Measurement:
    timed_arms: list[arms.TimedArm] = [*([own.arm] if own.arm is not None else []), *references]
    # Queued images are charged to the blocks of the first look (`Spread`), so nothing may end before it.
    plan = session.pod_set.lab.measurement.model_copy(update={"glaring": None})
    timed = blocks.measure(
        dali,
        timed_arms,
        plan,
        session.threshold,
        session.clock.progress,
        attempt=session.attempt,
        interference=interference,
    )
    uses = timed.uses
    if uses and timed.decision is not None and timed.decision.outcome == "passed":
        watched = watch(interference, dali, timed_arms[-1])
        uses = tuple({use.arm: use for use in (*uses, *watched)}.values())
    tier = "C" if dali.cold else "B"
    notes = {Arm.LEARNER: [own.note], Arm.DALI: [f"{FACTORY}, tier {tier}: images that were proved to be new"]}
    used = {reference.arm: reference.settings for reference in references}
    if own.settings is not None:
        used[Arm.LEARNER] = own.settings
    reports = blocks.reports(timed, used, notes)
    # Without a graph nobody knows where the learner's code decodes.
    made = measured(session, timed, reports, shards.plan, uses, decodes_on_gpu=False)
    settings = {"batch_size": ready.shape[0], "shape": list(ready.shape), "source": ready.type}
    told = {"plan": plan, "images": shards.per_part, "dali_settings": settings, "content": dali.ledger.conclude()}
    return made.model_copy(update=told)


def _job(ready: DaliReady) -> dict[str, object]:
    """Decode and resize to the same output: the least that the learner's code can be doing."""
    height, width, channels = height_width_channels(ready.shape[1:])
    return {
        "steps": [],
        "interpolation": "bilinear",
        "size": [height, width],
        "mirror": False,
        "colour": 0.0,
        "turn": 0.0,
        "blur": 0.0,
        "floats": ready.dtype != "uint8",
        "channels": 1 if channels == 1 else 3,
        "grey": channels == 1,
    }


def _nothing(session: Session, refused: Sequence[TierRefused], content: ContentProof | None = None) -> Measurement:
    """A measurement without a decision: what was tried."""
    tier = "C" if any(entry.tier == "C" for entry in refused) else "B"
    told = {"refused": tuple(refused), "content": content, "tier": tier}
    return not_timed(session, refused[-1].text).model_copy(update=told)
