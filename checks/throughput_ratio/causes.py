"""The likely causes of what was measured: why a claim differs, why a baseline is slow, what holds a graph back.

Each cause cites the fact that it was derived from. None of them decides anything, and all of them may be wrong: they
say what to look at first. They are partial on purpose; where no fact points anywhere, nothing is said.
"""

import math
from collections.abc import Iterator
from typing import Literal, NamedTuple

from checks.diagnosis.silent import IN_MEMORY
from checks.throughput_ratio.context import Context
from grader_service.batch_geometry import geometry_difference
from grader_service.model.measurement import REFERENCES, Arm, ArmReport, Decision, Measurement

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
_RESIZES = ("Resize", "RandomResizedCrop", "CropMirrorNormalize", "ResizeCropMirror", "experimental__Resize")

About = Literal["dali_throughput", "pytorch_throughput", "baseline", "graph", "batch"]


class Cause(NamedTuple):
    """One likely cause."""

    code: str
    """Stable word, such as `epoch_in_queue`."""
    about: About
    """What it explains: a claim by its name, the baseline, the speed of the graph, or the batch."""
    text: str
    """For the learner: what was seen."""
    action: str
    """What to do about it."""
    fact: str
    """What was seen, for staff."""


class _Seen(NamedTuple):
    measurement: Measurement
    context: Context
    outcome: str

    def arm(self, arm: Arm) -> ArmReport | None:
        return next((report for report in self.measurement.arms if report.arm is arm), None)

    def factor(self, name: str) -> float:
        """How many times the measurement a claim is; 1 when either is missing."""
        for claim in self.measurement.claims:
            if claim.name == name and claim.claimed and claim.measured and claim.claimed > 0:
                return claim.claimed / claim.measured
        return 1.0

    def changed(self, words: str) -> str | None:
        """The first entry of what the grader changed in the graph that has these words."""
        graph = self.context.graph
        return next((text for text in graph.changed if words in text), None) if graph is not None else None


def likely_causes(measurement: Measurement, decision: Decision, context: Context | None) -> list[Cause]:
    """All likely causes, the most telling first.

    A baseline without images comes first; what holds the graph back comes next when the ratio was not reached, and is
    left out when it was.

    Args:
        measurement: arms and claims.
        decision: its outcome sets the order.
        context: what else was found; None for evidence that has nothing else.
    """
    seen = _Seen(measurement, context or Context(), decision.outcome)
    groups = [_baseline, _batch, _dali_claim, _pytorch_claim]
    groups = groups if decision.outcome == "passed" else [_graph, *groups]
    return [cause for group in (_numbers, *groups) for cause in group(seen)]


def _dali_claim(seen: _Seen) -> Iterator[Cause]:
    factor = seen.factor("dali_throughput")
    graph, context = seen.context.graph, seen.context
    if graph is None:
        return
    epoch = context.epoch_batches(context.dali_batch_size)
    ready = graph.declared_prefetch + 1
    if factor > FAR_OFF:
        if (cache := seen.changed("decoder cache")) is not None:
            yield Cause(
                "decoder_cache",
                "dali_throughput",
                "Your decoder kept decoded images in a cache, so later epochs decoded nothing; the grader took it out.",
                "Leave cache_size out of the decoder.",
                cache,
            )
        if epoch > 0 and ready * _SHORT_BIAS >= epoch * (_SHORT_BIAS - 1):
            yield Cause(
                "epoch_in_queue",
                "dali_throughput",
                f"Your epoch has {epoch} batches, and up to {min(ready, epoch)} of them are decoded before your clock "
                "starts.",
                "Time a hundred batches or more, after a warm-up.",
                f"prefetch_queue_depth {graph.declared_prefetch} and the first batch, {epoch} batches per epoch",
            )
        if (clamped := seen.changed("num_threads")) is not None:
            yield Cause(
                "threads_clamped",
                "dali_throughput",
                "Your pipeline asks for more threads than there are processors, so the grader gave it those.",
                "Set num_threads to len(os.sched_getaffinity(0)).",
                clamped,
            )
    elif factor < 1 / FAR_OFF and 0 < epoch < _SHORT_EPOCH:
        yield Cause(
            "no_warm_up",
            "dali_throughput",
            f"Your epoch has {epoch} batches, so the first ones, in which DALI starts up, weigh a lot.",
            "Run one epoch before the clock starts, then time a hundred batches.",
            f"{epoch} batches per epoch, claim {factor:.2f} times the measurement",
        )
    full = epoch * context.dali_batch_size
    padding = full / max(1, context.dataset_images)
    # A claim that is much further off has other causes.
    if context.last_batch == "FILL" and epoch > 0 and padding >= _PADDED and _PADDED <= factor <= FAR_OFF * padding:
        yield Cause(
            "padding_counted",
            "dali_throughput",
            f"{context.dataset_images} images in batches of {context.dali_batch_size} end with a batch that DALI fills "
            f"up with repeats (LastBatchPolicy.FILL), and {epoch} full batches would count {full} images.",
            "Use LastBatchPolicy.PARTIAL in the iterator, or count the images of your data set.",
            f"{context.dataset_images} images, {epoch} x {context.dali_batch_size} = {full}, LastBatchPolicy.FILL",
        )


def _pytorch_claim(seen: _Seen) -> Iterator[Cause]:
    factor, loader = seen.factor("pytorch_throughput"), seen.context.loader
    if loader is None:
        return
    queued = loader.num_workers * (loader.prefetch_factor or 0)
    epoch = seen.context.epoch_batches(loader.batch_size)
    if factor > FAR_OFF and 0 < epoch <= queued:
        yield Cause(
            "epoch_in_loader_queue",
            "pytorch_throughput",
            f"Your workers queue {queued} batches as soon as the iterator exists, and your epoch has only {epoch}: a "
            "clock that starts after that times no work.",
            "Start the clock before iter(loader), or time more batches.",
            f"{loader.num_workers} workers x prefetch_factor {loader.prefetch_factor}, {epoch} batches per epoch",
        )
    if factor > FAR_OFF and seen.measurement.device == "cuda":
        yield Cause(
            "no_synchronize",
            "pytorch_throughput",
            "Our measurement copies every batch to the GPU and waits for it; yours may stop its clock before.",
            "Copy each batch, and call torch.cuda.synchronize() before you read the clock.",
            f"claim {factor:.2f} times the measurement on {seen.measurement.device}",
        )
    starting = loader.num_workers > 0 and not loader.persistent_workers
    if factor < 1 / FAR_OFF and starting and 0 < epoch < _SHORT_EPOCH:
        yield Cause(
            "workers_start",
            "pytorch_throughput",
            f"Your epoch has {epoch} batches, so starting {loader.num_workers} workers anew in every epoch takes a "
            "good part of the time.",
            "Use persistent_workers=True, and run one epoch before the clock starts.",
            f"{loader.num_workers} workers, persistent_workers=False, {epoch} batches per epoch",
        )


def _numbers(seen: _Seen) -> Iterator[Cause]:
    loader, shape = seen.context.loader, seen.context.loader_shape
    if shape is not None and len(shape) < 3 and math.prod(shape[1:]) < _NO_IMAGE:
        fact = f"batches of shape {list(shape)}"
        told = f"Your DataLoader delivers {fact}, which are no images"
    elif loader is not None and loader.dataset_type in IN_MEMORY:
        fact = f"data set {loader.dataset_type}"
        told = f"The data set of your DataLoader is a {loader.dataset_type}, which reads no JPEG files"
    else:
        return
    yield Cause(
        "baseline_without_files",
        "baseline",
        f"{told}, so the two sides do different work.",
        "Use datasets.ImageFolder(dataset_dir, transform) over the files that DALI reads.",
        fact,
    )


def _baseline(seen: _Seen) -> Iterator[Cause]:
    own = seen.arm(Arm.LEARNER)
    references = [report for arm in REFERENCES if (report := seen.arm(arm)) is not None and report.images_per_s]
    if own is None or not own.images_per_s or own.settings is None or not references:
        return
    best = max(references, key=lambda report: report.images_per_s or 0.0)
    share = own.images_per_s / (best.images_per_s or 1.0)
    if share >= CLEARLY_SLOWER:
        return
    workers = best.settings.num_workers if best.settings is not None else None
    if own.settings.num_workers == 0:
        yield Cause(
            "no_workers",
            "baseline",
            "Your DataLoader runs with num_workers=0, so the training process itself decodes the images.",
            "Set num_workers to len(os.sched_getaffinity(0)).",
            f"num_workers=0, {share:.0%} of the reference",
        )
    elif workers is not None and own.settings.num_workers < workers:
        yield Cause(
            "few_workers",
            "baseline",
            f"Your DataLoader has {own.settings.num_workers} workers; the reference at fair settings has {workers}.",
            f"Set num_workers={workers}.",
            f"num_workers {own.settings.num_workers} against {workers}, {share:.0%} of the reference",
        )
    elif own.settings.batch_size < _FEW_IMAGES:
        yield Cause(
            "few_images",
            "baseline",
            f"Your DataLoader has batches of {own.settings.batch_size}, so handing them over costs a lot.",
            "Use a batch size of 32 or more.",
            f"batch size {own.settings.batch_size}, {share:.0%} of the reference",
        )
    elif share < _COSTLY_ITEMS:
        yield Cause(
            "slow_items",
            "baseline",
            "Your DataLoader has as many workers as our reference, and each item takes it much longer.",
            "Look for transforms at full size before a resize, an image opened twice, or waiting in __getitem__.",
            f"num_workers {own.settings.num_workers}, {share:.0%} of the reference",
        )


def _graph(seen: _Seen) -> Iterator[Cause]:
    graph = seen.context.graph
    if graph is None:
        return
    if graph.decoder_devices and all(device == "cpu" for device in graph.decoder_devices):
        yield Cause(
            "decoder_on_cpu",
            "graph",
            "Your graph decodes on the CPU.",
            "Write fn.decoders.image(..., device='mixed'), so that the GPU does what takes most of the time.",
            f"decoder devices: {', '.join(graph.decoder_devices[:4])}",
        )
    elif "mixed" in graph.decoder_devices:
        late = [operator for operator in graph.operators if operator.name in _RESIZES and operator.device == "cpu"]
        if late:
            line = f" (line {late[0].line})" if late[0].line else ""
            yield Cause(
                "cpu_after_decode",
                "graph",
                f"Images are decoded on the GPU, and then {late[0].name} runs on the CPU{line}, so they travel back.",
                "Leave out device='cpu' there, and let it follow on the GPU.",
                f"{late[0].name} on cpu after a mixed decoder",
            )
    if graph.declared_threads == 1:
        yield Cause(
            "one_thread",
            "graph",
            "Your pipeline has num_threads=1, and reading and parsing JPEGs is CPU work in any decoder.",
            "Give it as many threads as your DataLoader has workers.",
            "num_threads 1",
        )
    names = [operator.name for operator in graph.operators]
    if "Resize" in names and "RandomResizedCrop" in names[names.index("Resize") :]:
        yield Cause(
            "two_resizes",
            "graph",
            "Every image is resized, and then resized again by fn.random_resized_crop.",
            "Leave the first resize out, or use fn.decoders.image_random_crop with one fn.resize.",
            "Resize before RandomResizedCrop",
        )
    if graph.declared_prefetch == 1:
        yield Cause(
            "no_overlap",
            "graph",
            "With prefetch_queue_depth=1 no batch is decoded while another one is used.",
            "Leave it at 2 or more.",
            "prefetch_queue_depth 1",
        )
    if 0 < graph.declared_batch_size < 32:
        yield Cause(
            "small_batches",
            "graph",
            f"Batches of {graph.declared_batch_size} leave a GPU idle between them.",
            "Try a batch size of 64 to 256.",
            f"batch size {graph.declared_batch_size}",
        )


def _batch(seen: _Seen) -> Iterator[Cause]:
    batch, shape = seen.context.batch, seen.context.loader_shape
    if batch is None:
        return
    if shape is not None and (difference := geometry_difference(batch.shape, batch.dtype, shape)) is not None:
        yield Cause(
            "unequal_output",
            "batch",
            f"The two sides do not deliver the same: {difference}.",
            "Use the same output size on both, or the comparison means little.",
            f"DALI {list(batch.shape)}, DataLoader {list(shape)}",
        )
