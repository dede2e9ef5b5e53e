"""The check `label_match`: does every label belong to the image beside it, in a form that a loss takes?"""

from typing import Annotated, Any, Literal

from pydantic import Field

from checks.api import Check, Result, failed, passed, undecided
from checks.codes import GRAPH_PROBE, common
from checks.epoch_coverage.order import Line
from checks.label_match.agreement import Agreement, agreement
from checks.listing import listed
from checks.probing import read_probe
from grader_service.model.base import ShortText, Wire
from grader_service.model.evidence import Evidence, Need, ProbeSite
from grader_service.model.feedback import Feedback, NextStep
from grader_service.model.verdict import Outcome, Tier

_WORD = "labels"
_CLEAN, _CHANCE = 0.98, 0.4
"""Shares of samples that fit their label: what is wanted, and more than strangers reach."""
_MERGES = "_conditional__Merge"
_RELATED = 0.6
"""Correlation that is wanted behind changes of colour, where an image does not show its level exactly."""
_AS_READ = "jpegs, labels = fn.readers.file(...)\n...\nreturn images, labels"
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


class Observation(Wire):
    """What came out of the graph, sample by sample, for images whose grey level is their class."""

    name: ShortText
    levels: Annotated[tuple[Annotated[int, Field(ge=0, le=255)], ...], Field(min_length=2, max_length=64)]
    """Grey level of each class."""
    outputs: Annotated[tuple[LabelledOutput, ...], Field(max_length=64)]
    changes_colour: Annotated[tuple[ShortText, ...], Field(max_length=64)]
    """Operators behind which a grey may be another."""
    readers: Annotated[int, Field(ge=0, le=4096)]
    reader_lines: Annotated[tuple[Line, ...], Field(max_length=4)]


class LabelMatchCheck(Check[Params, Observation]):
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

    id = "label_match"
    version = "1.1.0"
    title = "Labels beside their images"
    word = _WORD
    needs = frozenset({Need.DISCOVERY})
    probes = ("label_match",)
    codes = common(_WORD, GRAPH_PROBE) | {
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
    params_model = Params
    observation_model = Observation

    def observe(self, evidence: Evidence) -> Observation | Result:
        """See `checks.api.Check.observe`."""
        return read_probe(evidence, _WORD, "label_match", Observation, ProbeSite.GRAPH)

    def judge(self, observation: Observation, params: Params) -> Result:
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
            told = Feedback(
                outcome=f"No output of `{observation.name}` holds images, so its labels belong to nothing.",
                next=NextStep(text="Return images and labels:", code=_AS_READ),
            )
            return failed(f"{_WORD}.no_images", told, tier=Tier.GRAPH)
        if labels is None:
            told = Feedback(
                outcome=f"No output of `{observation.name}` holds one label per image.",
                next=NextStep(text="Take the labels from the reader, and return them:", code=_AS_READ),
            )
            return failed(f"{_WORD}.missing", told, tier=Tier.GRAPH)
        return _pairing(observation, images, labels) or _form(observation, images, labels, params)


def _pairing(observation: Observation, images: int, labels: int) -> Result | None:
    """What is wrong with which label stands beside which image; None when nothing is."""
    values, means = observation.outputs[labels].values, observation.outputs[images].means
    found = agreement(observation.levels, values, means)
    name = observation.name
    if found is None:
        told = Feedback(
            outcome=f"The labels of `{name}` are no class numbers.",
            seen=f"The reader's were 0 to {len(observation.levels) - 1}; what came is {_shown(values)}.",
            next=NextStep(text="Return the reader's labels as they are:", code=_AS_READ),
        )
        return failed(f"{_WORD}.not_classes", told, tier=Tier.GRAPH)
    if found.images_alike:
        told = Feedback(
            outcome=f"All images of `{name}` have the same brightness, so which label belongs to which is not known.",
            next=NextStep(text="Leave out what makes them equally bright, such as fn.normalize, and hand it in again."),
        )
        return undecided(Outcome.UNVERIFIED, f"{_WORD}.images_alike", told, tier=Tier.GRAPH)
    details = {
        "graph": name, "agreement": round(found.share, 4), "correlation": round(found.correlation, 4),
        "samples": found.samples,
    }  # fmt: skip
    vague = bool(observation.changes_colour)
    # An automatic augmentation inverts and equalises: without a second reader, strangers are not certain.
    certain = _MERGES not in observation.changes_colour or observation.readers > 1
    if certain and (found.correlation if vague else found.share) <= _CHANCE:
        return failed(f"{_WORD}.mismatch", _mismatch(observation, found, vague=vague), tier=Tier.GRAPH, details=details)
    if vague and found.correlation < _RELATED:
        told = Feedback(
            outcome=f"`{name}` changes colours so much that whether its labels belong to their images is not known.",
            next=NextStep(text="Leave the changes of colour out, and hand it in again; nothing is counted so far."),
        )
        return undecided(Outcome.INCONCLUSIVE, f"{_WORD}.unclear", told, tier=Tier.GRAPH, details=details)
    if not vague and found.share < _CLEAN:
        told = Feedback(
            outcome=f"Some labels of `{name}` do not belong to the image beside them.",
            next=NextStep(text="Look for an operator that permutes labels or images alone, such as fn.permute_batch."),
            **_counted(found),
        )
        return failed(f"{_WORD}.some_mismatch", told, tier=Tier.GRAPH, details=details)
    return None


def _mismatch(observation: Observation, found: Agreement, *, vague: bool) -> Feedback:
    """Feedback for labels of strangers."""
    told = {"seen": "An image's brightness says little about the label beside it."} if vague else _counted(found)
    action = "Return the labels of the same reader as the images, and permute neither alone:"
    if observation.readers > 1:
        told["seen"] += f" The pipeline has {observation.readers} readers: two that shuffle do not give the same order."
        action = "Take images and labels from one:"
    places = [line.place for line in (*observation.reader_lines[1:], *observation.reader_lines)]
    return Feedback(
        outcome=f"The labels of `{observation.name}` do not belong to the images beside them.",
        next=NextStep(text=action, place=next(filter(None, places), None), code=_AS_READ),
        **told,
    )


def _counted(found: Agreement) -> dict[str, Any]:
    """How many labels fit, as parts of feedback."""
    fitting = round(found.share * found.samples)
    return {
        "seen": f"{fitting} of {found.samples} labels fit.",
        "numbers": {"labels": found.samples, "fitting": fitting},
    }


def _form(observation: Observation, images: int, labels: int, params: Params) -> Result:
    output = observation.outputs[labels]
    shape, name = list(output.shape), observation.name
    details = {"graph": name, "output": labels, "shape": shape, "dtype": output.dtype, "device": output.device}
    problem = _problem(output, params, labels_first=labels < images)
    if problem is not None:
        last, outcome, step = problem
        told = Feedback(outcome=f"The labels of `{name}` {outcome}", next=step)
        return failed(f"{_WORD}.{last}", told, tier=Tier.GRAPH, details=details)
    told = Feedback(
        outcome=f"The labels of `{name}` belong to their images.",
        seen=f"They are {output.dtype} of shape [N{_sides(shape)}], on the {output.device.upper()}.",
    )
    return passed(told, tier=Tier.GRAPH, details=details)


def _problem(output: LabelledOutput, params: Params, *, labels_first: bool) -> tuple[str, str, NextStep] | None:
    """What is wrong with the form of the labels: last word of the code, the rest of a sentence, and what to do."""
    shape = list(output.shape)
    if params.outputs != "any" and labels_first is not (params.outputs == "labels_images"):
        wanted = "labels, images" if params.outputs == "labels_images" else "images, labels"
        side = "before" if labels_first else "behind"
        return "order", f"come {side} the images.", NextStep(text="Swap the two:", code=f"return {wanted}")
    if params.shape != "any" and not (shape == [] or (shape == [1] and params.shape != "[N]")):
        outcome = f"have the shape [N{_sides(shape)}]; {params.shape} is wanted, one class number per image."
        step = NextStep(text="Return the reader's labels as they are:", code=_AS_READ)
        if shape == [1]:
            step = NextStep(text="Drop the second axis:", code="labels = fn.squeeze(labels, axes=[0])")
        return "shape", outcome, step
    if params.dtype != "any" and output.dtype.lower() not in (
        _INTEGERS if params.dtype == "integer" else (params.dtype,)
    ):
        wanted = "an integer type" if params.dtype == "integer" else params.dtype
        step = NextStep(text="Cast them in the pipeline:", code="labels = fn.cast(labels, dtype=types.INT64)")
        return "dtype", f"are {output.dtype}; {wanted} is wanted, as class numbers are.", step
    if params.device not in ("any", output.device):
        step = NextStep(text="Return them as the reader gives them, on the CPU:", code=_AS_READ)
        if params.device == "gpu":
            step = NextStep(text="Copy them in the pipeline:", code="return images, labels.gpu()")
        return "device", f"come out on the {output.device.upper()}; the {params.device.upper()} is wanted.", step
    return None


def _sides(shape: list[int]) -> str:
    return "".join(f", {side}" for side in shape)


def _shown(values: tuple[float | None, ...]) -> str:
    different = sorted({value for value in values if value is not None})
    return listed([f"{value:g}" for value in different]) or "no finite number"


CHECK = LabelMatchCheck()
