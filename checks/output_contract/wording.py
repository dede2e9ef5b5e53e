"""Words for the form of a graph's images: what it is, what was wanted, and what to write."""

from collections.abc import Mapping

from checks.not_carried import first_words
from checks.output_contract.colours import ColouredGraph, Output
from grader_service.model.feedback import Feedback, NextStep

_MOST_OUTPUTS = 3
_RETURNED = NextStep(text="Return the decoded images:", code="return images, labels")


def decoded(order: str) -> str:
    """The line that decodes to this order of channels."""
    return f'images = fn.decoders.image(jpegs, device="mixed", output_type=types.{order})'


def turned(found: str, wanted: str) -> str:
    """The line that turns the axes of one layout to those of another."""
    return f"images = fn.transpose(images, perm={[found.index(axis) for axis in wanted]})"


def resized(height: int, width: int) -> str:
    """The line that brings images to one size."""
    return f"images = fn.resize(images, size=({height}, {width}))"


def stopped(graph: ColouredGraph) -> Feedback:
    """Feedback for a graph that stopped before its images could be looked at."""
    return Feedback(
        outcome=f"`{graph.name}` stopped on the grader's images, so nothing is counted.",
        seen=first_words(graph.problem),
        next=NextStep(text="Run it on other JPEGs, and check that no crop is larger than an image."),
    )


def no_images(graph: ColouredGraph) -> Feedback:
    """Feedback where no output holds images."""
    came = [_form(output) for output in graph.outputs[:_MOST_OUTPUTS]]
    more = len(graph.outputs) - len(came)
    return Feedback(
        outcome=f"No output of `{graph.name}` holds images of height, width and channels.",
        seen=f"A sample has {', '.join(came) or 'nothing'}{f' and {more} more' if more else ''}.",
        next=_RETURNED,
    )


def bad(
    output: Output,
    outcome: str,
    action: str,
    line: str = "",
    *,
    wanted: str = "",
    seen: str = "",
    numbers: Mapping[str, int] | None = None,
) -> Feedback:
    """Feedback for images of a wrong form.

    Args:
        output: that holds the images; its type and sides are told.
        outcome: what is wrong, a sentence.
        action: what to do.
        line: what to write.
        wanted: a sentence, where the outcome does not say it.
        seen: what else was seen, a sentence.
        numbers: figures in the outcome.
    """
    form = f"One image is {_form(output)}."
    return Feedback(
        outcome=outcome,
        seen=f"{form} {seen}".rstrip(),
        wanted=wanted,
        next=NextStep(text=action, code=line),
        numbers=numbers or {},
    )


def good(graph: ColouredGraph, output: Output, layout: str, order: str) -> Feedback:
    """Feedback for a pass."""
    return Feedback(
        outcome=f"The images of `{graph.name}` have the wanted form.",
        seen=f"One image is {_form(output)}, its layout {layout}, its channels {order}.",
    )


def _form(output: Output) -> str:
    return f"{output.dtype} {list(output.shape)}"
