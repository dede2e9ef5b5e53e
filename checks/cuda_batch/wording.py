"""Words for a batch: what is wrong with it, what to do, and what to write."""

from grader_service.model.evidence import BatchFacts, GraphFacts
from grader_service.model.feedback import Feedback, NextStep

_MIXED = 'images = fn.decoders.image(jpegs, device="mixed")'
NOT_FINITE = (
    "it holds NaN or infinite values",
    "Check std and scale of the normalisation: none of them may be 0.",
    "",
)


def dimensions(found: int, wanted: int) -> tuple[str, str, str]:
    """A batch with another number of dimensions."""
    return (
        f"it has {found} dimensions, not {wanted}",
        "Return the images themselves, as batch, channels, height and width:",
        'fn.crop_mirror_normalize(images, output_layout="CHW")',
    )


def too_small(found: int, wanted: int) -> tuple[str, str, str]:
    """A batch with too few images."""
    return f"it holds {found} images", "Raise the batch size of the pipeline:", f"batch_size={max(wanted, 32)}"


def on_cpu(graph: GraphFacts) -> tuple[str, str, str]:
    """A batch on the CPU."""
    if "mixed" not in graph.decoder_devices:
        return "it lies on the CPU, where your decoder puts it", "Decode on the GPU:", _MIXED
    return (
        "it lies on the CPU, although your decoder runs on the GPU",
        "Leave out .cpu() and device='cpu' behind the decoder.",
        "",
    )


def constant(value: float) -> tuple[str, str, str]:
    """A batch of one value."""
    return (
        f"every value in it is {value:g}, although the images differ",
        "Return the decoded images from the pipeline.",
        "",
    )


def bad(pipeline: str, batch: BatchFacts, what: str, action: str, line: str, least: int) -> Feedback:
    """Feedback for a batch with a problem."""
    return Feedback(
        outcome=f"The batch that the grader drew from `{pipeline}` is not what is wanted: {what}.",
        seen=f"It is {batch.dtype.lower()} {list(batch.shape)} on {batch.device}.",
        wanted=_wanted(least),
        next=NextStep(text=action, code=line),
        numbers={"images": batch.shape[0] if batch.shape else 0, "needed": least},
    )


def good(pipeline: str, batch: BatchFacts, least: int) -> Feedback:
    """Feedback for a pass."""
    place = "on CUDA" if batch.device == "cuda" else "placed on the GPU by your graph (rehearsed on the CPU)"
    return Feedback(
        outcome=f"The batch that the grader drew from `{pipeline}` has the right form and place.",
        seen=f"It is {batch.dtype.lower()} {list(batch.shape)}, {place}.",
        wanted=_wanted(least),
        numbers={"images": batch.shape[0], "needed": least},
    )


def _wanted(least: int) -> str:
    return f"A 4-D batch of at least {least} images on the GPU was wanted."
