"""The likely causes of what was measured: why a claim differs, why a baseline is slow, what holds a graph back.

Each cause cites the fact that it was derived from. None of them decides anything, and all of them may be wrong: they
say what to look at first. They are partial on purpose; where no fact points anywhere, nothing is said.
"""

import math
from collections.abc import Iterator
from typing import Literal, NamedTuple

from checks.dali_operators import RANDOM_RESIZED_CROP, RESIZE, row_of
from checks.diagnosis.silent import IN_MEMORY
from checks.observations.context import Context
from grader_service.model.batch_geometry import geometry_difference
from grader_service.model.evidence import GraphFacts
from grader_service.model.measurement import REFERENCES, Arm, ClaimBesideMeasurement, Decision, Measurement

FAR_OFF = 1.5
"""A claim this many times above or below the measurement is worth an explanation."""
CLEARLY_SLOWER = 0.9
"""A learner's loader at less than this share of the reference is worth a word; less than that is noise."""
_COSTLY_ITEMS = 0.75
"""Where settings explain nothing: a correct loader that does a little more to each image than ours is no mistake."""
_SHORT_BIAS = 1.25
"""A queue that makes an epoch look this many times faster than it is explains something."""
_PADDED = 1.1
"""Padding that makes an epoch look this many times larger than it is, is worth a word."""
_FEW_IMAGES = 16
"""In a batch of a DataLoader; below that, a fair one has more."""
_NO_IMAGE = 256
"""Numbers of an item; what has less, and neither height nor width, is no image that was flattened."""
_SHORT_EPOCH = 30
"""Batches; below that, starting up takes a good part of the time."""

About = Literal["dali_throughput", "pytorch_throughput", "baseline", "graph", "batch"]


class Cause(NamedTuple):
    """One likely cause."""

    about: About
    """What it explains: a claim by its name, the baseline, the speed of the graph, or the batch."""
    code: str
    """Stable word, such as `epoch_in_queue`."""
    text: str
    """For the learner: what was seen."""
    action: str
    """What to do about it."""
    fact: str
    """What was seen, for staff."""


_Causes = Iterator[tuple[str, str, str, str]]
"""Code, text, action and fact of each."""


def likely_causes(measurement: Measurement, decision: Decision, context: Context) -> list[Cause]:
    """All likely causes, the most telling first.

    A baseline without images comes first; what holds the graph back comes next when the ratio was not reached, and is
    left out when it was.
    """
    times = {claim.name: found for claim in measurement.claims if (found := times_of(claim)) is not None}
    groups: list[tuple[About, _Causes]] = [
        ("baseline", _numbers(context)),
        ("graph", _graph(context.graph if decision.outcome != "passed" else None)),
        ("baseline", _baseline(measurement)),
        ("batch", _batch(context)),
        ("dali_throughput", _dali_claim(context, times.get("dali_throughput", 1.0))),
        ("pytorch_throughput", _pytorch_claim(context, times.get("pytorch_throughput", 1.0), measurement.device)),
    ]
    return [Cause(about, *cause) for about, causes in groups for cause in causes]


def times_of(claim: ClaimBesideMeasurement) -> float | None:
    """How many times the measurement a claim is; None when either is missing."""
    return claim.claimed / claim.measured if claim.claimed and claim.claimed > 0 and claim.measured else None


def _numbers(context: Context) -> _Causes:
    loader, shape = context.loader, context.loader_shape
    if shape is not None and len(shape) < 3 and math.prod(shape[1:]) < _NO_IMAGE:
        fact = f"batches of shape {list(shape)}"
        told = f"Your DataLoader delivers {fact}, which are no images"
    elif loader is not None and loader.dataset_type in IN_MEMORY:
        fact = f"data set {loader.dataset_type}"
        told = f"The data set of your DataLoader is a {loader.dataset_type}, which reads no JPEG files"
    else:
        return
    yield (
        "baseline_without_files",
        f"{told}, so the two sides do different work.",
        "Use datasets.ImageFolder(dataset_dir, transform) over the files that DALI reads.",
        fact,
    )


def _graph(graph: GraphFacts | None) -> _Causes:
    if graph is None:
        return
    if graph.decoder_devices and all(device == "cpu" for device in graph.decoder_devices):
        yield (
            "decoder_on_cpu",
            "Your graph decodes on the CPU.",
            "Write fn.decoders.image(..., device='mixed'), so that the GPU does what takes most of the time.",
            f"decoder devices: {', '.join(graph.decoder_devices[:4])}",
        )
    late = [operator for operator in graph.operators if operator.device == "cpu" and row_of(operator.name).slow_on_cpu]
    if late and "mixed" in graph.decoder_devices:
        line = f" (line {late[0].line})" if late[0].line else ""
        yield (
            "cpu_after_decode",
            f"Images are decoded on the GPU, and then {late[0].name} runs on the CPU{line}, so they travel back.",
            "Leave out device='cpu' there, and let it follow on the GPU.",
            f"{late[0].name} on cpu after a mixed decoder",
        )
    if graph.declared_threads == 1:
        yield (
            "one_thread",
            "Your pipeline has num_threads=1, and reading and parsing JPEGs is CPU work in any decoder.",
            "Give it as many threads as your DataLoader has workers.",
            "num_threads 1",
        )
    names = [operator.name for operator in graph.operators]
    if RESIZE in names and RANDOM_RESIZED_CROP in names[names.index(RESIZE) :]:
        yield (
            "two_resizes",
            "Every image is resized, and then resized again by fn.random_resized_crop.",
            "Leave the first resize out, or use fn.decoders.image_random_crop with one fn.resize.",
            "Resize before RandomResizedCrop",
        )
    if graph.declared_prefetch == 1:
        yield (
            "no_overlap",
            "With prefetch_queue_depth=1 no batch is decoded while another one is used.",
            "Leave it at 2 or more.",
            "prefetch_queue_depth 1",
        )
    if 0 < graph.declared_batch_size < 32:
        yield (
            "small_batches",
            f"Batches of {graph.declared_batch_size} leave a GPU idle between them.",
            "Try a batch size of 64 to 256.",
            f"batch size {graph.declared_batch_size}",
        )


def _baseline(measurement: Measurement) -> _Causes:
    arms = {report.arm: report for report in measurement.arms}
    own = arms.get(Arm.LEARNER)
    references = [arms[arm] for arm in REFERENCES if arm in arms and arms[arm].images_per_s]
    if own is None or not own.images_per_s or own.settings is None or not references:
        return
    best = max(references, key=lambda report: report.images_per_s or 0.0)
    share = own.images_per_s / (best.images_per_s or 1.0)
    if share >= CLEARLY_SLOWER:
        return
    workers = own.settings.num_workers
    theirs = best.settings.num_workers if best.settings is not None else 0
    reached = f"{share:.0%} of the reference"
    if workers == 0:
        yield (
            "no_workers",
            "Your DataLoader runs with num_workers=0, so the training process itself decodes the images.",
            "Set num_workers to len(os.sched_getaffinity(0)).",
            f"num_workers=0, {reached}",
        )
    elif workers < theirs:
        yield (
            "few_workers",
            f"Your DataLoader has {workers} workers; the reference at fair settings has {theirs}.",
            f"Set num_workers={theirs}.",
            f"num_workers {workers} against {theirs}, {reached}",
        )
    elif own.settings.batch_size < _FEW_IMAGES:
        yield (
            "few_images",
            f"Your DataLoader has batches of {own.settings.batch_size}, so handing them over costs a lot.",
            "Use a batch size of 32 or more.",
            f"batch size {own.settings.batch_size}, {reached}",
        )
    elif share < _COSTLY_ITEMS:
        yield (
            "slow_items",
            "Your DataLoader has as many workers as our reference, and each item takes it much longer.",
            "Look for transforms at full size before a resize, an image opened twice, or waiting in __getitem__.",
            f"num_workers {workers}, {reached}",
        )


def _batch(context: Context) -> _Causes:
    batch, shape = context.batch, context.loader_shape
    if batch is None or shape is None:
        return
    if (difference := geometry_difference(batch.shape, shape)) is not None:
        yield (
            "unequal_output",
            f"The two sides do not deliver the same: {difference}.",
            "Use the same output size on both, or the comparison means little.",
            f"DALI {list(batch.shape)}, DataLoader {list(shape)}",
        )


def _dali_claim(context: Context, times: float) -> _Causes:
    graph, images, size = context.graph, context.dataset_images, context.dali_batch_size
    if graph is None:
        return
    epoch, ready = context.epoch_batches(size), graph.declared_prefetch + 1
    if times > FAR_OFF:
        if cache := _changed(graph, "decoder cache"):
            yield (
                "decoder_cache",
                "Your decoder kept decoded images in a cache, so later epochs decoded nothing; the grader took it out.",
                "Leave cache_size out of the decoder.",
                cache,
            )
        if epoch > 0 and ready * _SHORT_BIAS >= epoch * (_SHORT_BIAS - 1):
            yield (
                "epoch_in_queue",
                f"Your epoch has {epoch} batches, and up to {min(ready, epoch)} of them are decoded before your clock "
                "starts.",
                "Time a hundred batches or more, after a warm-up.",
                f"prefetch_queue_depth {graph.declared_prefetch} and the first batch, {epoch} batches per epoch",
            )
        if clamped := _changed(graph, "num_threads"):
            yield (
                "threads_clamped",
                "Your pipeline asks for more threads than there are processors, so the grader gave it those.",
                "Set num_threads to len(os.sched_getaffinity(0)).",
                clamped,
            )
    if times < 1 / FAR_OFF and 0 < epoch < _SHORT_EPOCH:
        yield (
            "no_warm_up",
            f"Your epoch has {epoch} batches, so the first ones, in which DALI starts up, weigh a lot.",
            "Run one epoch before the clock starts, then time a hundred batches.",
            f"{epoch} batches per epoch, claim {times:.2f} times the measurement",
        )
    full = epoch * size
    padding = full / max(1, images)
    # A claim that is much further off has other causes.
    if context.last_batch == "FILL" and epoch > 0 and padding >= _PADDED and _PADDED <= times <= FAR_OFF * padding:
        yield (
            "padding_counted",
            f"{images} images in batches of {size} end with a batch that DALI fills up with repeats "
            f"(LastBatchPolicy.FILL), and {epoch} full batches would count {full} images.",
            "Use LastBatchPolicy.PARTIAL in the iterator, or count the images of your data set.",
            f"{images} images, {epoch} x {size} = {full}, LastBatchPolicy.FILL",
        )


def _changed(graph: GraphFacts, words: str) -> str:
    """The first entry of what the grader changed in the graph that has these words; empty where none has."""
    return next((text for text in graph.changed if words in text), "")


def _pytorch_claim(context: Context, times: float, device: str) -> _Causes:
    loader = context.loader
    if loader is None:
        return
    workers, queued = loader.num_workers, loader.num_workers * (loader.prefetch_factor or 0)
    epoch = context.epoch_batches(loader.batch_size)
    if times > FAR_OFF and 0 < epoch <= queued:
        yield (
            "epoch_in_loader_queue",
            f"Your workers queue {queued} batches as soon as the iterator exists, and your epoch has only {epoch}: a "
            "clock that starts after that times no work.",
            "Start the clock before iter(loader), or time more batches.",
            f"{workers} workers x prefetch_factor {loader.prefetch_factor}, {epoch} batches per epoch",
        )
    if times > FAR_OFF and device == "cuda":
        yield (
            "no_synchronize",
            "Our measurement copies every batch to the GPU and waits for it; yours may stop its clock before.",
            "Copy each batch, and call torch.cuda.synchronize() before you read the clock.",
            f"claim {times:.2f} times the measurement on {device}",
        )
    if times < 1 / FAR_OFF and workers > 0 and not loader.persistent_workers and 0 < epoch < _SHORT_EPOCH:
        yield (
            "workers_start",
            f"Your epoch has {epoch} batches, so starting {workers} workers anew in every epoch takes a good part of "
            "the time.",
            "Use persistent_workers=True, and run one epoch before the clock starts.",
            f"{workers} workers, persistent_workers=False, {epoch} batches per epoch",
        )
