"""The check `label_match`: does every label belong to the image beside it, in a form that a loss takes?"""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import Field

from checks.api import FromProbe, Result, check, failed, inconclusive, passed, unverified
from checks.dali_operators import row_of
from checks.label_match.agreement import agreement
from checks.listing import listed
from checks.observations.carried import Line
from grader_service.model.base import ShortText, Wire

_CLEAN, _CHANCE = 0.98, 0.4
"""Shares of samples that fit their label: what is wanted, and more than strangers reach."""
_RELATED = 0.6
"""Correlation that is wanted behind changes of colour, where an image does not show its level exactly."""
_LEAVE = "Return the reader's labels as they are:"
_AS_READ = "jpegs, labels = fn.readers.file(...)\n...\nreturn images, labels"
_SHAPES = {"[N]": ((),), "[N] or [N, 1]": ((), (1,))}
"""Of one label."""
_INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")

Value = Annotated[float, Field(ge=-1e12, le=1e12)]


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


@check(version="1.1.0", title="Labels beside their images", word="labels")
def label_match(
    seen: Annotated[Observation, FromProbe("label_match")],
    *,
    outputs: Literal["images_labels", "labels_images", "any"] = "images_labels",
    dtype: Literal["integer", "int64", "any"] = "integer",
    shape: Literal["[N] or [N, 1]", "[N]", "any"] = "[N] or [N, 1]",
    device: Literal["gpu", "cpu", "any"] = "any",
) -> Result:
    """Judges whether labels and images of a batch belong together, and whether the labels have a usable form.

    Evidence:
        probe `label_match`: label and middle value of about 100 images, of seven classes with a grey level each, from
            the learner's graph in a pod of ours. A straight line through both says which class each image shows.
    Points: all or nothing; the pairing is judged before the form.
    Errors: 0 false accepts on 12 failing and 0 false rejects on 10 passing controls in
        `tests/checks/graphs/test_label_match.py`. Labels of strangers fit about one image in seven; 40 % of 100 are
        reached by chance with a probability below 1e-8, 98 % are needed for a pass. Behind changes of colour the
        correlation between class and brightness decides: of strangers it exceeds 0.6 with a probability below 1e-9.
    Cannot detect: labels that are right for the images and wrong for the course, such as folders in another order;
        some wrong labels among right ones in a graph that changes colours at random.

    Args:
        outputs: Order of the pipeline's outputs.
        device: Where the labels come out of the graph.
    """
    places = range(len(seen.outputs))
    images = next((place for place in places if len(seen.outputs[place].shape) == 3), None)
    if images is None:
        no_images = f"No output of `{seen.name}` holds images, so its labels belong to nothing."
        return failed("no_images", no_images, next="Return images and labels:", write=_AS_READ)
    single = (place for place in places if seen.outputs[place].values and not seen.outputs[place].means)
    labels = next((place for place in single if place != images), None)
    if labels is None:
        no_labels = f"No output of `{seen.name}` holds one label per image."
        return failed("missing", no_labels, next="Take the labels from the reader, and return them:", write=_AS_READ)
    output = seen.outputs[labels]
    problem = _pairing(seen, output.values, seen.outputs[images].means)
    if problem is not None:
        return problem
    details = {
        "graph": seen.name, "output": labels, "shape": list(output.shape), "dtype": output.dtype,
        "device": output.device,
    }  # fmt: skip
    labels_first = labels < images
    if outputs != "any" and labels_first is not (outputs == "labels_images"):
        swapped = f"The labels of `{seen.name}` come {'before' if labels_first else 'behind'} the images."
        line = f"return {outputs.replace('_', ', ')}"
        return failed("order", swapped, next="Swap the two:", write=line, details=details)
    axes = "".join(f", {length}" for length in output.shape)
    if shape != "any" and output.shape not in _SHAPES[shape]:
        misshapen = (
            f"The labels of `{seen.name}` have the shape [N{axes}]; {shape} is wanted, one class number per image."
        )
        action, line = _LEAVE, _AS_READ
        if output.shape == (1,):
            action, line = "Drop the second axis:", "labels = fn.squeeze(labels, axes=[0])"
        return failed("shape", misshapen, next=action, write=line, details=details)
    if dtype != "any" and output.dtype.lower() not in (_INTEGERS if dtype == "integer" else (dtype,)):
        wanted = "an integer type" if dtype == "integer" else dtype
        mistyped = f"The labels of `{seen.name}` are {output.dtype}; {wanted} is wanted, as class numbers are."
        action, line = "Cast them in the pipeline:", "labels = fn.cast(labels, dtype=types.INT64)"
        return failed("dtype", mistyped, next=action, write=line, details=details)
    where = output.device.upper()
    if device not in ("any", output.device):
        elsewhere = f"The labels of `{seen.name}` come out on the {where}; the {device.upper()} is wanted."
        action, line = "Return them as the reader gives them, on the CPU:", _AS_READ
        if device == "gpu":
            action, line = "Copy them in the pipeline:", "return images, labels.gpu()"
        return failed("device", elsewhere, next=action, write=line, details=details)
    form = f"They are {output.dtype} of shape [N{axes}], on the {where}."
    return passed(f"The labels of `{seen.name}` belong to their images.", seen=form, details=details)


def _pairing(seen: Observation, labels: Sequence[float | None], means: Sequence[float | None]) -> Result | None:
    """What is wrong with which label stands beside which image; None when nothing is."""
    found = agreement(seen.levels, labels, means)
    if found is None:
        came = listed([f"{label:g}" for label in sorted({label for label in labels if label is not None})])
        no_classes = f"The labels of `{seen.name}` are no class numbers."
        said = f"The reader's were 0 to {len(seen.levels) - 1}; what came is {came or 'no finite number'}."
        return failed("not_classes", no_classes, seen=said, next=_LEAVE, write=_AS_READ)
    if found.images_alike:
        alike = f"All images of `{seen.name}` have the same brightness, so which label belongs to which is not known."
        action = "Leave out what makes them equally bright, such as fn.normalize, and hand it in again."
        return unverified("images_alike", alike, next=action)
    vague, fitting = bool(seen.changes_colour), round(found.share * found.samples)
    fit = f"{fitting} of {found.samples} labels fit."
    details = {
        "graph": seen.name, "agreement": round(found.share, 4), "correlation": round(found.correlation, 4),
        "samples": found.samples,
    }  # fmt: skip
    numbers = {} if vague else {"labels": found.samples, "fitting": fitting}
    told: dict[str, Any] = {"numbers": numbers, "details": details}
    # An automatic augmentation inverts and equalises: without a second reader, strangers are not certain.
    merges = any(row_of(name).branch == "merge" for name in seen.changes_colour)
    certain = not merges or seen.readers > 1
    if certain and (found.correlation if vague else found.share) <= _CHANCE:
        said = "An image's brightness says little about the label beside it." if vague else fit
        action = "Return the labels of the same reader as the images, and permute neither alone:"
        if seen.readers > 1:
            said += f" The pipeline has {seen.readers} readers: two that shuffle do not give the same order."
            action = "Take images and labels from one:"
        lines = (*seen.reader_lines[1:], *seen.reader_lines)
        place = next(filter(None, (line.place for line in lines)), None)
        strangers = f"The labels of `{seen.name}` do not belong to the images beside them."
        return failed("mismatch", strangers, seen=said, next=action, write=_AS_READ, place=place, **told)
    if vague and found.correlation < _RELATED:
        hidden = f"`{seen.name}` changes colours so much that whether its labels belong to their images is not known."
        action = "Leave the changes of colour out, and hand it in again; nothing is counted so far."
        return inconclusive("unclear", hidden, next=action, **told)
    if not vague and found.share < _CLEAN:
        some = f"Some labels of `{seen.name}` do not belong to the image beside them."
        action = "Look for an operator that permutes labels or images alone, such as fn.permute_batch."
        return failed("some_mismatch", some, seen=fit, next=action, **told)
    return None
