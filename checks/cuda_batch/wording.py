"""Words for a batch: what is wrong with it, what to do, and what to write."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from checks.listing import pipeline_named
from grader_service.model.discovery import FirstBatch
from grader_service.model.evidence import BatchFacts, GraphFacts, ServedBatch
from grader_service.model.feedback import Advice, Feedback, NextStep

_MIXED = 'images = fn.decoders.image(jpegs, device="mixed")'
_NORMALISE = (
    "Write mean=[0.485 * 255, 0.456 * 255, 0.406 * 255] and std=[0.229 * 255, 0.224 * 255, 0.225 * 255] in "
    "fn.crop_mirror_normalize."
)


class Problem(NamedTuple):
    """What is wrong with a batch."""

    what: str
    action: str
    line: str = ""


class Shown(NamedTuple):
    """How a batch is told of."""

    whose: str
    form: str
    images: int
    wanted: str
    least: int
    advice: Sequence[Advice]


NOT_FINITE = Problem(
    "it holds NaN or infinite values", "Check std and scale of the normalisation: none of them may be 0."
)
SERVED_ON_CPU = Problem("it lies on the CPU", "Decode on the GPU:", _MIXED)


def dimensions(found: int, wanted: int) -> Problem:
    """A batch with another number of dimensions."""
    return Problem(
        f"it has {found} dimensions, not {wanted}",
        "Return the images themselves, as batch, channels, height and width:",
        'images = fn.crop_mirror_normalize(images, output_layout="CHW")',
    )


def too_small(found: int, wanted: int) -> Problem:
    """A batch with too few images."""
    return Problem(_holds(found), "Raise the batch size of the pipeline:", f"batch_size={max(wanted, 32)}")


def served_too_small(found: int) -> Problem:
    """The same, where the batch size was given."""
    return Problem(
        _holds(found), "Use the batch size that the function is given:", "pipe = pipeline(batch_size=batch_size)"
    )


def on_cpu(graph: GraphFacts) -> Problem:
    """A batch on the CPU."""
    if "mixed" not in graph.decoder_devices:
        return Problem("it lies on the CPU, where your decoder puts it", "Decode on the GPU:", _MIXED)
    return Problem(
        "it lies on the CPU, although your decoder runs on the GPU",
        "Leave out .cpu() and device='cpu' behind the decoder.",
    )


def constant(value: float) -> Problem:
    """A batch of one value."""
    return Problem(
        f"every value in it is {value:g}, although the images differ", "Return the decoded images from the pipeline."
    )


def own_first_batch(found: FirstBatch, dimensions: int) -> Iterator[Advice]:
    """On a `first_batch` that is no batch of images; the grader judges one that it drew itself."""
    if found.status == "no_tensor":
        form = f"a `{found.type}`" if found.type else "no tensor"
    elif found.shape is not None and len(found.shape) != dimensions:
        form = f"of the form {list(found.shape)}"
    else:
        return
    yield Advice(
        code="advice.first_batch_form",
        text=f"Your `first_batch` is {form}, which is no batch of images.",
        next='Take the images out of what the iterator gives: first_batch = next(iter(dali_iter))[0]["data"].',
    )


def drawn(
    pipeline: str, batch: BatchFacts, least: int, dimensions: int, advice: Sequence[Advice], *, rehearsed: bool
) -> Shown:
    """A batch of the learner's graph, which the grader drew itself."""
    place = f"on {batch.device}"
    if rehearsed and batch.declared_device == "gpu":
        place = "placed on the GPU by your graph (rehearsed on the CPU)"
    return Shown(
        f"The batch that the grader drew from {pipeline_named(pipeline)}",
        f"{batch.dtype.lower()} {list(batch.shape)}, {place}",
        batch.shape[0] if batch.shape else 0,
        _wanted(least, dimensions),
        least,
        advice,
    )


def delivered(served: ServedBatch, least: int, dimensions: int, advice: Sequence[Advice]) -> Shown:
    """A batch of the learner's own code."""
    place = "on CUDA, as your code says" if served.device == "cuda" else "on cpu"
    return Shown(
        "The batch that `build_dali_iterator` delivered on other images",
        f"{served.dtype} {list(served.shape)}, {place}",
        served.shape[0] if served.shape else 0,
        _wanted(least, dimensions),
        least,
        advice,
    )


def bad(shown: Shown, problem: Problem) -> Feedback:
    """Feedback for a batch with a problem."""
    return Feedback(
        outcome=f"{shown.whose} is not what is wanted: {problem.what}.",
        seen=f"It is {shown.form}.",
        wanted=shown.wanted,
        next=NextStep(text=problem.action, code=problem.line),
        advice=tuple(shown.advice),
        numbers={"images": shown.images, "needed": shown.least},
    )


def good(shown: Shown, also: str = "") -> Feedback:
    """Feedback for a pass."""
    return Feedback(
        outcome=f"{shown.whose} has the right form and place.",
        seen=f"It is {shown.form}{also}.",
        wanted=shown.wanted,
        advice=tuple(shown.advice),
        numbers={"images": shown.images, "needed": shown.least},
    )


def not_proved(shown: Shown, distinct: int) -> Feedback:
    """Feedback where the batch has the right form, and it is not known what came after it."""
    return Feedback(
        outcome="It is not known that `build_dali_iterator` delivers decoded images, so nothing is counted.",
        seen=f"Its first batch is {shown.form}; {distinct} different images per batch were recognised afterwards.",
        wanted=f"At least {shown.least} per batch are needed.",
        next=NextStep(text="Read the folder that it is given, and deliver batch_size images in every batch."),
        advice=tuple(shown.advice),
        numbers={"recognised": distinct, "needed": shown.least},
    )


def advice(batch: BatchFacts) -> Iterator[Advice]:
    """What the values of a batch say about its normalisation; at most one piece."""
    if "FLOAT" not in batch.dtype or not batch.finite or batch.constant:
        return
    values = f"The batch has values from {batch.low:,.1f} to {batch.high:,.1f}"
    if batch.high > 256:
        text = f"{values}: mean and std are probably in the scale 0 to 1, but DALI's images go from 0 to 255."
        yield Advice(code="advice.mean_std_scale", text=text, next=_NORMALISE)
    elif batch.low >= 0 and batch.high > 16:
        text = f"{values}, so the images were turned into floats and not normalised."
        yield Advice(code="advice.not_normalised", text=text, next=_NORMALISE)


def _holds(found: int) -> str:
    return f"it holds {found} image{'' if found == 1 else 's'}"


def _wanted(least: int, dimensions: int) -> str:
    return f"A {dimensions}-D batch of at least {least} images on the GPU was wanted."
