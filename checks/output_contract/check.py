"""The check `output_contract`: do images have the layout, type, channel order and size that a model wants?"""

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import BaseModel, Field

from checks.api import API_VERSION, CheckResult, failed, passed, undecided
from checks.codes import GRAPH_PROBE, NO_SUCH_GRAPH, common
from checks.output_contract.colours import Axis, ColouredGraph, Colours, Image, Output, channel_axis, order, width
from checks.probing import no_such_graph, read_probe
from grader_service.model.base import ShortText, Wire
from grader_service.model.evidence import Evidence, Need
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


class OutputContractCheck:
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

    id: ClassVar[str] = "output_contract"
    version: ClassVar[str] = "1.0.0"
    api_version: ClassVar[int] = API_VERSION
    title: ClassVar[str] = "Form of the images"
    needs: ClassVar[frozenset[Need]] = frozenset({Need.DISCOVERY})
    probes: ClassVar[tuple[str, ...]] = ("constant_colours",)
    codes: ClassVar[Mapping[str, str]] = common(_WORD, GRAPH_PROBE, NO_SUCH_GRAPH) | {
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
    params_model: ClassVar[type[BaseModel]] = Params
    observation_model: ClassVar[type[BaseModel]] = Colours

    def observe(self, evidence: Evidence) -> Colours | CheckResult:
        """See `checks.api.Check.observe`."""
        return read_probe(evidence, _WORD, "constant_colours", Colours)

    def judge(self, observation: Colours, params: Params) -> CheckResult:
        """See `checks.api.Check.judge`."""
        graph = observation.chosen(params.graph)
        if graph is None:
            return no_such_graph(_WORD, params.graph)
        if graph.problem:
            text = f"`{graph.name}` stopped on the grader's images: {graph.problem}"
            return undecided(Outcome.UNVERIFIED, f"{_WORD}.graph_failed", text, tier=Tier.CLAIMS)
        image = next((image for image in graph.images if image.output < len(graph.outputs)), None)
        if image is None:
            came = "; ".join(f"{output.dtype} {list(output.shape)}" for output in graph.outputs[:8]) or "nothing"
            return failed(
                f"{_WORD}.no_images",
                f"No output of `{graph.name}` holds images of height, width and channels; per sample came: {came}. "
                "Return the decoded images from the pipeline.",
                tier=Tier.GRAPH,
            )
        return _judge(graph, image, observation, params)


def _judge(graph: ColouredGraph, image: Image, colours: Colours, params: Params) -> CheckResult:
    output = graph.outputs[image.output]
    shape = list(output.shape)
    seen = f"The images of `{graph.name}` are {output.dtype} {shape} per sample"
    details: dict[str, object] = {"graph": graph.name, "output": output.model_dump(mode="json")}
    if image.ragged:
        return failed(
            f"{_WORD}.ragged",
            f"{seen}, and their sizes differ from image to image, so they cannot be one tensor. Resize or crop all of "
            "them to one size.",
            tier=Tier.GRAPH, details=details,
        )  # fmt: skip
    axis = channel_axis(image, colours.greys)
    problem = (
        _mixed(seen, image, axis, shape)
        or _layout(seen, graph, image, axis, params)
        or _channels(seen, axis, colours, params, details)
        or _type(seen, output, params)
        or _size(seen, axis, shape, params)
    )
    if problem is not None:
        code, text = problem
        if code == _UNCLEAR:
            return undecided(Outcome.UNVERIFIED, f"{_WORD}.{code}", text, tier=Tier.GRAPH, details=details)
        return failed(f"{_WORD}.{code}", text, tier=Tier.GRAPH, details=details)
    layout = _NAMES[axis.axis] if axis is not None else "unknown"
    return passed(
        f"{_WORD}.ok",
        f"{seen}: layout {layout}, channels {details.get('order', 'any')}. That is what was wanted.",
        tier=Tier.GRAPH, details=details,
    )  # fmt: skip


def _mixed(seen: str, image: Image, axis: Axis | None, shape: list[int]) -> tuple[str, str] | None:
    if axis is not None:
        return None
    if not image.axes:
        return (
            "channels",
            f"{seen}; no axis is as short as one of channels would be. Expected 3 channels. Keep them apart.",
        )
    return (
        "mixed",
        f"{seen}, but in a picture of a single colour the values inside a channel differ: colours were mixed up. "
        f"fn.reshape does not move values; turn the axes with fn.transpose, or with output_layout of "
        f"fn.crop_mirror_normalize. The sides {shape} look right, the content is not.",
    )


def _layout(seen: str, graph: ColouredGraph, image: Image, axis: Axis | None, params: Params) -> tuple[str, str] | None:
    if axis is None or params.layout == "any":
        return None
    found = _NAMES[axis.axis]
    if found != params.layout:
        return (
            "layout",
            f"{seen}: the channels lie on axis {axis.axis}, which is {found}; {params.layout} was wanted. Set "
            f'output_layout="{params.layout}" in fn.crop_mirror_normalize, or use fn.transpose.',
        )
    turns = any(name.startswith(_TURNING) for name in graph.operators)
    height, wide = [place for place in range(3) if place != axis.axis]
    halves = image.halves
    across, down = halves.left_right, halves.top_bottom
    if not turns and (_far(across[height], across[wide]) or _far(down[wide], down[height])):
        return (
            "transposed",
            f"{seen}, but an image whose left half is black and whose right half is white came out black above and "
            "white below: height and width are exchanged. Give fn.transpose the order perm=[2, 0, 1] to go from HWC to "
            "CHW.",
        )
    return None


def _far(one: float | None, other: float | None) -> bool:
    return one is not None and other is not None and one > 4 * other and one > 1e-6


def _channels(
    seen: str, axis: Axis | None, colours: Colours, params: Params, details: dict[str, object]
) -> tuple[str, str] | None:
    count = width(axis) if axis is not None else 0
    found = order(axis, colours) if axis is not None else "?"
    details["order"] = found
    if params.channel_order == "any":
        return None
    if count != 3:
        return "channels", f"{seen}: {count} channel(s); 3 were wanted. Decode with output_type=types.RGB."
    if found == params.channel_order:
        return None
    if found == "grey":
        return "channel_order", f"{seen}, and all three channels hold the same: the colours are lost. Decode to RGB."
    if found == "~":
        return (
            _UNCLEAR,
            f"{seen}, and `{params.channel_order}` cannot be told: the pipeline changes colours too much at "
            "random. Keep a pipeline without changes of colour, such as one for validation, in a variable.",
        )
    if found == "?":
        return (
            "channel_order",
            f"{seen}, and no channel answers to one of red, green and blue alone; {params.channel_order} was wanted. "
            "Look for a conversion to another colour space.",
        )
    return (
        "channel_order",
        f"{seen}, and the channels are {found}; {params.channel_order} was wanted. Decode with "
        f"output_type=types.{params.channel_order}, and leave out other changes of their order.",
    )


def _type(seen: str, output: Output, params: Params) -> tuple[str, str] | None:
    wanted = _TYPES.get(params.dtype, params.dtype)
    came = output.dtype.lower()
    if params.dtype == "any" or came == wanted or (params.dtype == "float" and came in _FLOATS):
        return None
    kind = {"float": "FLOAT", "float32": "FLOAT", "float16": "FLOAT16", "uint8": "UINT8"}[params.dtype]
    return "dtype", f"{seen}; {params.dtype} was wanted. Set dtype=types.{kind} in the last operator."


def _size(seen: str, axis: Axis | None, shape: list[int], params: Params) -> tuple[str, str] | None:
    if axis is None or len(shape) != 3:
        return None
    height, wide = [side for place, side in enumerate(shape) if place != axis.axis]
    if params.height in (None, height) and params.width in (None, wide):
        return None
    wanted = f"{params.height or 'any'} x {params.width or 'any'}"
    return "size", f"{seen}, so {height} x {wide} pixels (height x width); {wanted} was wanted. Resize or crop to that."


CHECK = OutputContractCheck()
