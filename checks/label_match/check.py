"""The check `label_match`: does every label belong to the image beside it, in a form that a loss takes?"""

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import BaseModel, Field

from checks.api import API_VERSION, CheckResult, failed, passed, undecided
from checks.codes import GRAPH_PROBE, common
from checks.label_match.agreement import agreement
from checks.probing import read_probe
from grader_service.model.base import ShortText, Wire
from grader_service.model.evidence import Evidence, Need
from grader_service.model.verdict import Outcome, Tier

_WORD = "labels"
_CLEAN, _CHANCE = 0.98, 0.4
"""Shares of samples that fit their label: what is wanted, and more than strangers reach."""
_MERGES = "_conditional__Merge"
_RELATED = 0.6
"""Correlation that is wanted behind changes of colour, where an image does not show its level exactly."""
_INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")

Value = Annotated[float, Field(ge=-1e12, le=1e12)]


class Params(Wire):
    """What the lab's loss function takes."""

    outputs: Literal["images_labels", "labels_images", "any"] = "images_labels"
    """Order of the pipeline's outputs."""
    dtype: Literal["integer", "int64", "any"] = "integer"
    shape: Literal["[N] or [N, 1]", "[N]", "any"] = "[N] or [N, 1]"
    device: Literal["gpu", "cpu", "any"] = "any"
    """Where the labels come out of the graph."""


class LabelledOutput(Wire):
    """One output of the graph."""

    shape: Annotated[tuple[Annotated[int, Field(ge=0, le=2**31)], ...], Field(max_length=16)]
    """Of one sample."""
    shapes: Annotated[int, Field(ge=1, le=4096)]
    dtype: ShortText
    device: ShortText
    batch_is_list: bool
    values: Annotated[tuple[Value | None, ...], Field(max_length=256)]
    """One number per sample; empty where a sample has more than one."""
    means: Annotated[tuple[Value | None, ...], Field(max_length=256)]
    """Middle value of each image; empty where a sample is no image."""


class ReaderLine(Wire):
    """Where a reader stands in the learner's source."""

    file: ShortText
    line: int | None


class Observation(Wire):
    """What came out of the graph, sample by sample, for images whose grey level is their class."""

    name: ShortText
    levels: Annotated[tuple[Annotated[int, Field(ge=0, le=255)], ...], Field(min_length=2, max_length=64)]
    """Grey level of each class."""
    outputs: Annotated[tuple[LabelledOutput, ...], Field(max_length=64)]
    changes_colour: Annotated[tuple[ShortText, ...], Field(max_length=64)]
    """Operators behind which a grey may be another."""
    readers: Annotated[int, Field(ge=0, le=4096)]
    reader_lines: Annotated[tuple[ReaderLine, ...], Field(max_length=4)]


class LabelMatchCheck:
    """Judges whether labels and images of a batch belong together, and whether the labels have a usable form.

    Evidence:
        probe `label_match`: label and middle value of about 100 images, of seven classes with a grey level each, from
            the learner's graph in a pod of ours. A straight line through both says which class each image shows.
    Points: all or nothing; the pairing is judged before the form.
    Errors: 0 false accepts on 12 failing and 0 false rejects on 10 passing controls in
        `tests/builtin_graph/test_label_match.py`. Labels of strangers fit about one image in seven; 40 % of 100 are
        reached by chance with a probability below 1e-8, 98 % are needed for a pass. Behind changes of colour the
        correlation between class and brightness decides: of strangers it exceeds 0.6 with a probability below 1e-9.
    Cannot detect: labels that are right for the images and wrong for the course, such as folders in another order;
        some wrong labels among
        right ones in a graph that changes colours at random.
    """

    id: ClassVar[str] = "label_match"
    version: ClassVar[str] = "1.0.0"
    api_version: ClassVar[int] = API_VERSION
    title: ClassVar[str] = "Labels beside their images"
    needs: ClassVar[frozenset[Need]] = frozenset({Need.DISCOVERY})
    probes: ClassVar[tuple[str, ...]] = ("label_match",)
    codes: ClassVar[Mapping[str, str]] = common(_WORD, GRAPH_PROBE) | {
        "labels.ok": "labels belong to their images and have the wanted form",
        "labels.no_images": "no output of the graph holds images",
        "labels.missing": "no output of the graph holds one label per image",
        "labels.not_classes": "the labels are no class numbers",
        "labels.images_alike": "unverified: images of different classes come out alike",
        "labels.mismatch": "most labels do not belong to the image beside them",
        "labels.unclear": "inconclusive: changes of colour hide which label belongs where",
        "labels.some_mismatch": "some labels do not belong to the image beside them",
        "labels.order": "images and labels come in another order than wanted",
        "labels.shape": "the labels have another shape than wanted",
        "labels.dtype": "the labels have another type than wanted",
        "labels.device": "the labels come out on another device than wanted",
    }
    params_model: ClassVar[type[BaseModel]] = Params
    observation_model: ClassVar[type[BaseModel]] = Observation

    def observe(self, evidence: Evidence) -> Observation | CheckResult:
        """See `checks.api.Check.observe`."""
        return read_probe(evidence, _WORD, "label_match", Observation)

    def judge(self, observation: Observation, params: Params) -> CheckResult:
        """See `checks.api.Check.judge`."""
        images = next((place for place, one in enumerate(observation.outputs) if len(one.shape) == 3), None)
        labels = next(
            (
                place
                for place, one in enumerate(observation.outputs)
                if one.values and place != images and not one.means
            ),
            None,
        )
        if images is None:
            return failed(
                f"{_WORD}.no_images",
                f"No output of `{observation.name}` holds images, so there is nothing that labels could belong to. "
                "Return images and labels.",
                tier=Tier.GRAPH,
            )
        if labels is None:
            return failed(
                f"{_WORD}.missing",
                f"No output of `{observation.name}` holds one label per image. Unpack the reader "
                "(`jpegs, labels = fn.readers.file(...)`) and return images, labels.",
                tier=Tier.GRAPH,
            )
        return _pairing(observation, images, labels) or _form(observation, images, labels, params)


def _pairing(observation: Observation, images: int, labels: int) -> CheckResult | None:
    """What is wrong with which label stands beside which image; None when nothing is."""
    values, means = observation.outputs[labels].values, observation.outputs[images].means
    found = agreement(observation.levels, values, means)
    name = observation.name
    if found is None:
        return failed(
            f"{_WORD}.not_classes",
            f"The labels of `{name}` are no class numbers: the reader's were 0 to {len(observation.levels) - 1}, and "
            f"{_shown(values)} came. Return the reader's labels as they are.",
            tier=Tier.GRAPH,
        )
    if found.images_alike:
        return undecided(
            Outcome.UNVERIFIED,
            f"{_WORD}.images_alike",
            f"Images of different grey levels come out of `{name}` with the same values, so it cannot be seen which "
            "label belongs to which.",
            tier=Tier.GRAPH,
        )
    details = {
        "graph": name, "agreement": round(found.share, 4), "correlation": round(found.correlation, 4),
        "samples": found.samples,
    }  # fmt: skip
    vague = bool(observation.changes_colour)
    # An automatic augmentation inverts and equalises: without a second reader, strangers are not certain.
    certain = _MERGES not in observation.changes_colour or observation.readers > 1
    if certain and (found.correlation if vague else found.share) <= _CHANCE:
        more = (
            f" The pipeline has {observation.readers} readers{_lines(observation)}: two readers that shuffle "
            "do not give "
            "the same order. Take images and labels from one."
            if observation.readers > 1
            else " Return the labels that came from the same fn.readers.file call, and permute neither alone."
        )
        return failed(
            f"{_WORD}.mismatch",
            f"Only {found.share:.0%} of {found.samples} labels of `{name}` belong to the image beside them.{more}",
            tier=Tier.GRAPH, details=details,
        )  # fmt: skip
    if vague and found.correlation < _RELATED:
        return undecided(
            Outcome.INCONCLUSIVE,
            f"{_WORD}.unclear",
            f"`{name}` changes colours so strongly that it cannot be seen whether its labels belong to their images. "
            "Leave out changes of colour to have it looked at.",
            tier=Tier.GRAPH, details=details,
        )  # fmt: skip
    if not vague and found.share < _CLEAN:
        return failed(
            f"{_WORD}.some_mismatch",
            f"{found.share:.0%} of {found.samples} labels of `{name}` belong to the image beside them; all of them "
            "should. Look for an operator that permutes labels or images alone.",
            tier=Tier.GRAPH, details=details,
        )  # fmt: skip
    return None


def _form(observation: Observation, images: int, labels: int, params: Params) -> CheckResult:
    output = observation.outputs[labels]
    shape, name = list(output.shape), observation.name
    seen = f"The labels of `{name}` belong to their images, and are {output.dtype} of shape [N{_sides(shape)}]"
    details = {"graph": name, "output": labels, "shape": shape, "dtype": output.dtype, "device": output.device}
    problem: tuple[str, str] | None = None
    if params.outputs != "any" and (labels < images) is not (params.outputs == "labels_images"):
        wanted = "labels, images" if params.outputs == "labels_images" else "images, labels"
        problem = ("order", f"the pipeline returns them in output {labels + 1}. Return {wanted}.")
    elif params.shape != "any" and not (shape == [] or (shape == [1] and params.shape != "[N]")):
        more = (
            "one-hot vectors are no class numbers" if len(shape) == 1 and shape[0] > 1 else f"{params.shape} is wanted"
        )
        problem = ("shape", f"{more}. Return the reader's labels, with fn.squeeze(labels, axes=[0]) for [N].")
    elif params.dtype != "any" and output.dtype.lower() not in (
        _INTEGERS if params.dtype == "integer" else (params.dtype,)
    ):
        problem = ("dtype", f"{params.dtype} is wanted, as class numbers are. Use fn.cast(labels, dtype=types.INT64).")
    elif params.device not in ("any", output.device):
        call = "labels.gpu()" if params.device == "gpu" else "the labels as the reader gives them, on the CPU"
        problem = ("device", f"they come out on the {output.device.upper()}. Return {call}.")
    if problem is not None:
        return failed(f"{_WORD}.{problem[0]}", f"{seen}, but {problem[1]}", tier=Tier.GRAPH, details=details)
    return passed(f"{_WORD}.ok", f"{seen}, on the {output.device.upper()}.", tier=Tier.GRAPH, details=details)


def _sides(shape: list[int]) -> str:
    return "".join(f", {side}" for side in shape)


def _shown(values: tuple[float | None, ...]) -> str:
    few = sorted({value for value in values if value is not None})[:6]
    return ", ".join(f"{value:g}" for value in few) or "no finite number"


def _lines(observation: Observation) -> str:
    lines = [f"line {one.line}" for one in observation.reader_lines if one.line is not None]
    return f" ({', '.join(lines)})" if lines else ""


CHECK = LabelMatchCheck()
