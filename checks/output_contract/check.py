"""The check `output_contract`: do images have the layout, type, channel order and size that a model wants?"""

from typing import Annotated, Literal

from pydantic import Field

from checks.api import Check, Result, failed, passed, undecided
from checks.codes import GRAPH_PROBE, NO_SUCH_GRAPH, common
from checks.output_contract import wording
from checks.output_contract.colours import Axis, ColouredGraph, Colours, Image, Output, channel_axis, order, width
from checks.probing import no_such_graph, read_probe
from grader_service.model.base import ShortText, Wire
from grader_service.model.evidence import Evidence, Need, ProbeSite
from grader_service.model.feedback import Feedback
from grader_service.model.verdict import Outcome, Tier

_WORD = "output"
_UNCLEAR = "colours_vary"
_NAMES = {0: "CHW", 2: "HWC", 1: "HCW"}
_FLOATS = ("float", "float16", "float64", "bfloat16")
_TURNING = ("Rotate", "Warp", "_conditional__")
_TYPES = {"float32": "float"}
_PIXELS = Annotated[int, Field(ge=1, le=65536)]


class Params(Wire):
    """What the lab's model takes."""

    layout: Literal["CHW", "HWC", "any"] = "CHW"
    dtype: Literal["float", "float32", "float16", "uint8", "any"] = "float"
    """`float` takes every floating type."""
    channel_order: Literal["RGB", "BGR", "any"] = "RGB"
    height: _PIXELS | None = None
    width: _PIXELS | None = None
    graph: ShortText | None = None
    """Variable of the pipeline or iterator; the one that is measured if absent."""


class OutputContractCheck(Check[Params, Colours]):
    """Judges layout, type, channel order and size of the images that the learner's graph delivers.

    Evidence:
        probe `constant_colours`: middle values of images of one colour, per slice of each short axis, and the contrast
            of images with two halves; from the learner's graph in a pod of ours. Names such as `output_layout` and
            DALI's own layout text decide nothing.
    Points: all or nothing; the first thing that is wrong is reported.
    Errors: 0 false accepts on 14 failing and 0 false rejects on 11 passing controls in
        `tests/builtin_graph/test_output_contract.py`.
    Cannot detect: the order of channels behind changes of colour as strong as RandAugment's (`output.colours_vary`,
        not decided); a transposed image behind an operator that turns images anyway, or that is not square and was also
        resized to the turned size; the order of channels of a graph that makes everything grey.
    """

    id = "output_contract"
    version = "1.1.0"
    title = "Form of the images"
    word = _WORD
    needs = frozenset({Need.DISCOVERY})
    probes = ("constant_colours",)
    codes = common(_WORD, GRAPH_PROBE, NO_SUCH_GRAPH) | {
        "output.ok": "layout, channels, type and size are as wanted",
        "output.no_images": "no output of the graph holds images",
        "output.ragged": "images have different sizes",
        "output.mixed": "colours were mixed up, as a wrong reshape does",
        "output.channels": "there are not 3 channels",
        "output.layout": "the channels lie on another axis than wanted",
        "output.transposed": "height and width are exchanged",
        "output.channel_order": "the channels are not in the wanted order",
        "output.colours_vary": "unverified: changes of colour hide the order of the channels",
        "output.dtype": "the images have another type than wanted",
        "output.size": "the images have another size than wanted",
    }
    params_model = Params
    observation_model = Colours

    def observe(self, evidence: Evidence) -> Colours | Result:
        """See `checks.api.Check.observe`."""
        return read_probe(evidence, _WORD, "constant_colours", Colours, ProbeSite.GRAPH)

    def judge(self, observation: Colours, params: Params) -> Result:
        """See `checks.api.Check.judge`."""
        graph = observation.chosen(params.graph)
        if graph is None:
            return no_such_graph(_WORD, params.graph)
        if graph.problem:
            return undecided(Outcome.UNVERIFIED, f"{_WORD}.graph_failed", wording.stopped(graph), tier=Tier.CLAIMS)
        image = next((image for image in graph.images if image.output < len(graph.outputs)), None)
        if image is None:
            return failed(f"{_WORD}.no_images", wording.no_images(graph), tier=Tier.GRAPH)
        return _judge(graph, image, observation, params)


def _judge(graph: ColouredGraph, image: Image, colours: Colours, params: Params) -> Result:
    output = graph.outputs[image.output]
    axis = channel_axis(image, colours.greys)
    details: dict[str, object] = {"graph": graph.name, "output": output.model_dump(mode="json")}
    problem = (
        _ragged(graph, output, image, params)
        or _mixed(graph, output, image, axis, params)
        or _layout(graph, output, image, axis, params)
        or _channels(graph, output, axis, colours, params, details)
        or _type(graph, output, params)
        or _size(graph, output, axis, params)
    )
    if problem is not None:
        code, feedback = problem
        if code == _UNCLEAR:
            return undecided(Outcome.UNVERIFIED, f"{_WORD}.{code}", feedback, tier=Tier.GRAPH, details=details)
        return failed(f"{_WORD}.{code}", feedback, tier=Tier.GRAPH, details=details)
    layout = _NAMES[axis.axis] if axis is not None else "unknown"
    feedback = wording.good(graph, output, layout, str(details.get("order", "any")))
    return passed(feedback, tier=Tier.GRAPH, details=details)


def _ragged(graph: ColouredGraph, output: Output, image: Image, params: Params) -> tuple[str, Feedback] | None:
    if not image.ragged:
        return None
    return "ragged", wording.bad(
        output,
        f"The images of `{graph.name}` have different sizes, so they cannot be one tensor.",
        "Bring all of them to one size, by a resize or a crop:",
        wording.resized(params.height or 224, params.width or 224),
    )


def _mixed(
    graph: ColouredGraph, output: Output, image: Image, axis: Axis | None, params: Params
) -> tuple[str, Feedback] | None:
    if axis is not None:
        return None
    if not image.axes:
        return "channels", wording.bad(
            output,
            f"The images of `{graph.name}` have no axis of 3 channels.",
            "Keep the three channels of a decoded image apart:",
            wording.decoded("RGB"),
        )
    # A decoded image is HWC: without a reshape nothing has to be turned where that is wanted.
    action = "Leave out fn.reshape, which moves no values"
    return "mixed", wording.bad(
        output,
        f"The colours of `{graph.name}` are mixed up: the shape may be right, the content is not.",
        f"{action}." if params.layout == "HWC" else f"{action}, and turn the axes:",
        "" if params.layout == "HWC" else wording.turned("HWC", "CHW"),
        seen="In a picture of one colour the values inside a channel differ.",
    )


def _layout(
    graph: ColouredGraph, output: Output, image: Image, axis: Axis | None, params: Params
) -> tuple[str, Feedback] | None:
    if axis is None or params.layout == "any":
        return None
    found = _NAMES[axis.axis]
    if found != params.layout:
        return "layout", wording.bad(
            output,
            f"The images of `{graph.name}` are {found}, not {params.layout}.",
            f'Set output_layout="{params.layout}" in fn.crop_mirror_normalize, or turn the axes:',
            wording.turned(found, params.layout),
            seen=f"The channels lie on axis {axis.axis}.",
        )
    turns = any(name.startswith(_TURNING) for name in graph.operators)
    height, wide = [place for place in range(3) if place != axis.axis]
    halves = image.halves
    across, down = halves.left_right, halves.top_bottom
    if not turns and (_far(across[height], across[wide]) or _far(down[wide], down[height])):
        planar = params.layout == "CHW"
        return "transposed", wording.bad(
            output,
            f"Height and width are exchanged in the images of `{graph.name}`.",
            "Keep height before width in fn.transpose:" if planar else "Keep height before width: leave out the turn.",
            wording.turned("HWC", "CHW") if planar else "",
            seen="Of pictures with two halves, left and right came out above and below, or the other way round.",
        )
    return None


def _far(one: float | None, other: float | None) -> bool:
    return one is not None and other is not None and one > 4 * other and one > 1e-6


def _channels(
    graph: ColouredGraph,
    output: Output,
    axis: Axis | None,
    colours: Colours,
    params: Params,
    details: dict[str, object],
) -> tuple[str, Feedback] | None:
    count = width(axis) if axis is not None else 0
    found = order(axis, colours) if axis is not None else "?"
    wanted = params.channel_order
    details["order"] = found
    if wanted == "any":
        return None
    line = wording.decoded(wanted)
    if count != 3:
        outcome = f"The images of `{graph.name}` have {count} channel{'' if count == 1 else 's'}, not 3."
        return "channels", wording.bad(output, outcome, "Decode to three channels:", line, numbers={"channels": count})
    if found == wanted:
        return None
    if found == "grey":
        outcome = f"All three channels of `{graph.name}` hold the same values, so the colours are lost."
        return "channel_order", wording.bad(output, outcome, "Decode to colours:", line)
    if found == "~":
        return _UNCLEAR, wording.bad(
            output,
            f"The order of channels of `{graph.name}` cannot be told, so nothing is counted.",
            "Keep a pipeline without changes of colour in a variable, such as one for validation.",
            seen="Its colours change too much at random.",
            wanted=f"{wanted} is wanted.",
        )
    if found == "?":
        return "channel_order", wording.bad(
            output,
            f"The channels of `{graph.name}` are not red, green and blue.",
            "Leave out the conversion to another colour space, and decode so:",
            line,
            seen="None of them answers to one of these colours alone.",
            wanted=f"{wanted} is wanted.",
        )
    outcome = f"The channels of `{graph.name}` are {found}, not {wanted}."
    return "channel_order", wording.bad(output, outcome, "Decode in that order, and leave out other changes:", line)


def _type(graph: ColouredGraph, output: Output, params: Params) -> tuple[str, Feedback] | None:
    wanted = _TYPES.get(params.dtype, params.dtype)
    came = output.dtype.lower()
    if params.dtype == "any" or came == wanted or (params.dtype == "float" and came in _FLOATS):
        return None
    kind = {"float": "FLOAT", "float32": "FLOAT", "float16": "FLOAT16", "uint8": "UINT8"}[params.dtype]
    outcome = f"The images of `{graph.name}` are of the type {came}, not {params.dtype}."
    return "dtype", wording.bad(output, outcome, "Set the type in the last operator:", f"dtype=types.{kind}")


def _size(graph: ColouredGraph, output: Output, axis: Axis | None, params: Params) -> tuple[str, Feedback] | None:
    if axis is None or len(output.shape) != 3:
        return None
    height, wide = [side for place, side in enumerate(output.shape) if place != axis.axis]
    if params.height in (None, height) and params.width in (None, wide):
        return None
    needed = params.height or height, params.width or wide
    return "size", wording.bad(
        output,
        f"The images of `{graph.name}` are {height} × {wide} pixels (height × width), not {needed[0]} × {needed[1]}.",
        "Resize or crop to that size:",
        wording.resized(*needed),
        numbers={"height": height, "width": wide, "needed_height": needed[0], "needed_width": needed[1]},
    )


CHECK = OutputContractCheck()
