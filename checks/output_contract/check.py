"""The check `output_contract`: do images have the layout, type, channel order and size that a model wants?"""

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Field

from checks.api import FromProbe, Result, check, failed, passed, unverified
from checks.dali_operators import row_of
from checks.observations.colours import (
    Axis,
    ColouredGraph,
    Colours,
    Halves,
    Image,
    channel_axis,
    decoded,
    order,
    stopped,
)
from checks.probing import no_such_graph
from grader_service.model.base import ShortText

_NAMES = {0: "CHW", 2: "HWC", 1: "HCW"}
_FLOATS = ("float", "float16", "float64", "bfloat16")
_WRITTEN = {"float": "FLOAT", "float32": "FLOAT", "float16": "FLOAT16", "uint8": "UINT8"}
"""Types of the lab, as DALI names them."""
_MOST_OUTPUTS = 3
_PIXELS = Annotated[int, Field(ge=1, le=65536)]


@check(
    version="1.1.0",
    title="Form of the images",
    word="output",
    codes={"layout": "the channels lie on another axis than wanted"},
)
def output_contract(
    seen: Annotated[Colours, FromProbe("constant_colours")],
    *,
    layout: Literal["CHW", "HWC", "any"] = "CHW",
    dtype: Literal["float", "float32", "float16", "uint8", "any"] = "float",
    channel_order: Literal["RGB", "BGR", "any"] = "RGB",
    height: _PIXELS | None = None,
    width: _PIXELS | None = None,
    graph: ShortText | None = None,
) -> Result:
    """Judges layout, type, channel order and size of the images that the learner's graph delivers.

    Evidence:
        probe `constant_colours`: middle values of images of one colour, per slice of each short axis, and the contrast
            of images with two halves; from the learner's graph in a pod of ours. Names such as `output_layout` and
            DALI's own layout text decide nothing.
    Points: all or nothing; the first thing that is wrong is reported.
    Errors: 0 false accepts on 14 failing and 0 false rejects on 11 passing controls in
        `tests/checks/graphs/test_output_contract.py`.
    Cannot detect: the order of channels behind changes of colour as strong as RandAugment's (`output.colours_vary`,
        not decided); a transposed image behind an operator that turns images anyway, or that is not square and was also
        resized to the turned size; the order of channels of a graph that makes everything grey.

    Args:
        dtype: `float` takes every floating type.
        graph: Variable of the pipeline or iterator; the one that is measured if absent.
    """
    found = seen.chosen(graph)
    if found is None:
        return no_such_graph(graph)
    if found.problem:
        return stopped(found)
    image = found.image
    if image is None:
        return _no_images(found)
    output, axis = found.outputs[image.output], channel_axis(image, seen.greys)
    name, form = found.name, f"One image is {output.form}."
    details: dict[str, object] = {"graph": name, "output": output.model_dump(mode="json")}
    if image.ragged:
        return failed(
            "ragged",
            f"The images of `{name}` have different sizes, so they cannot be one tensor.",
            seen=form,
            next="Bring all of them to one size, by a resize or a crop:",
            write=_resized(height or 224, width or 224),
            details=details,
        )
    if axis is None:
        return _mixed(name, form, image, layout).model_copy(update={"details": details})
    problem = _layout(found, form, axis, image.halves, layout)
    if problem is None:
        channels = details["order"] = order(axis, seen)
        problem = (
            _channels(name, form, axis.width, channels, channel_order)
            or _type(name, form, output.dtype.lower(), dtype)
            or _size(name, form, output.shape, axis, height, width)
        )
    if problem is not None:
        return problem.model_copy(update={"details": details})
    good = f"One image is {output.form}, its layout {_NAMES[axis.axis]}, its channels {details['order']}."
    return passed(f"The images of `{name}` have the wanted form.", seen=good, details=details)


def _no_images(graph: ColouredGraph) -> Result:
    forms = [output.form for output in graph.outputs[:_MOST_OUTPUTS]]
    more = len(graph.outputs) - len(forms)
    return failed(
        "no_images",
        f"No output of `{graph.name}` holds images of height, width and channels.",
        seen=f"A sample has {', '.join(forms) or 'nothing'}{f' and {more} more' if more else ''}.",
        next="Return the decoded images:",
        write="return images, labels",
    )


def _mixed(name: str, form: str, image: Image, layout: str) -> Result:
    """No axis has one value per slice in pictures of one colour."""
    if not image.axes:
        outcome = f"The images of `{name}` have no axis of 3 channels."
        action = "Keep the three channels of a decoded image apart:"
        return failed("channels", outcome, seen=form, next=action, write=decoded("RGB"))
    # A decoded image is HWC: without a reshape nothing has to be turned where that is wanted.
    rest = "." if layout == "HWC" else ", and turn the axes:"
    return failed(
        "mixed",
        f"The colours of `{name}` are mixed up: the shape may be right, the content is not.",
        seen=f"{form} In a picture of one colour the values inside a channel differ.",
        next=f"Leave out fn.reshape, which moves no values{rest}",
        write="" if layout == "HWC" else _turned("HWC", "CHW"),
    )


def _layout(graph: ColouredGraph, form: str, axis: Axis, halves: Halves, wanted: str) -> Result | None:
    """The channels lie on another axis, or the two others are exchanged."""
    if wanted == "any":
        return None
    layout = _NAMES[axis.axis]
    if layout != wanted:
        return failed(
            "layout",
            f"The images of `{graph.name}` are {layout}, not {wanted}.",
            seen=f"{form} The channels lie on axis {axis.axis}.",
            next=f'Set output_layout="{wanted}" in fn.crop_mirror_normalize, or turn the axes:',
            write=_turned(layout, wanted),
        )
    high, wide = [place for place in range(3) if place != axis.axis]
    across, down = halves.left_right, halves.top_bottom
    turns = any(row.work == "turn" or row.branch for row in map(row_of, graph.operators))
    if turns or not (_far(across[high], across[wide]) or _far(down[wide], down[high])):
        return None
    planar = wanted == "CHW"
    return failed(
        "transposed",
        f"Height and width are exchanged in the images of `{graph.name}`.",
        seen=f"{form} Of pictures with two halves, left and right came out above and below, or the other way round.",
        next="Keep height before width in fn.transpose:" if planar else "Keep height before width: leave out the turn.",
        write=_turned("HWC", "CHW") if planar else "",
    )


def _far(one: float | None, other: float | None) -> bool:
    return one is not None and other is not None and one > 4 * other and one > 1e-6


def _channels(name: str, form: str, count: int, found: str, wanted: str) -> Result | None:
    """There are not three of them, or they are not in the wanted order."""
    if wanted in ("any", found):
        return None
    line = decoded(wanted)
    if count != 3:
        few = f"The images of `{name}` have {count} channel{'' if count == 1 else 's'}, not 3."
        action, numbers = "Decode to three channels:", {"channels": count}
        return failed("channels", few, seen=form, next=action, write=line, numbers=numbers)
    if found == "grey":
        equal = f"All three channels of `{name}` hold the same values, so the colours are lost."
        return failed("channel_order", equal, seen=form, next="Decode to colours:", write=line)
    if found == "~":
        return unverified(
            "colours_vary",
            f"The order of channels of `{name}` cannot be told, so nothing is counted.",
            seen=f"{form} Its colours change too much at random.",
            wanted=f"{wanted} is wanted.",
            next="Keep a pipeline without changes of colour in a variable, such as one for validation.",
        )
    if found == "?":
        return failed(
            "channel_order",
            f"The channels of `{name}` are not red, green and blue.",
            seen=f"{form} None of them answers to one of these colours alone.",
            wanted=f"{wanted} is wanted.",
            next="Leave out the conversion to another colour space, and decode so:",
            write=line,
        )
    exchanged = f"The channels of `{name}` are {found}, not {wanted}."
    action = "Decode in that order, and leave out other changes:"
    return failed("channel_order", exchanged, seen=form, next=action, write=line)


def _type(name: str, form: str, came: str, wanted: str) -> Result | None:
    if wanted == "any" or came == _WRITTEN[wanted].lower() or (wanted == "float" and came in _FLOATS):
        return None
    outcome = f"The images of `{name}` are of the type {came}, not {wanted}."
    action = "Set the type in the last operator:"
    return failed("dtype", outcome, seen=form, next=action, write=f"dtype=types.{_WRITTEN[wanted]}")


def _size(
    name: str, form: str, shape: Sequence[int], axis: Axis, height: int | None, width: int | None
) -> Result | None:
    if len(shape) != 3:
        return None
    high, wide = [side for place, side in enumerate(shape) if place != axis.axis]
    needed = height or high, width or wide
    if needed == (high, wide):
        return None
    return failed(
        "size",
        f"The images of `{name}` are {high} × {wide} pixels (height × width), not {needed[0]} × {needed[1]}.",
        seen=form,
        next="Resize or crop to that size:",
        write=_resized(*needed),
        numbers={"height": high, "width": wide, "needed_height": needed[0], "needed_width": needed[1]},
    )


def _turned(found: str, wanted: str) -> str:
    """The line that turns the axes of one layout to those of another."""
    return f"images = fn.transpose(images, perm={[found.index(axis) for axis in wanted]})"


def _resized(height: int, width: int) -> str:
    return f"images = fn.resize(images, size=({height}, {width}))"
