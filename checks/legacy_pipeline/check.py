"""The check `legacy_pipeline`: pipelines are written in the style that the lab teaches."""

from collections.abc import Iterable
from typing import Annotated, Literal

from pydantic import Field

from checks.api import Advice, Discovery, FromProbe, Result, Severity, check, failed, passed
from checks.listing import MOST_LISTED, listed
from checks.not_carried import no_dali
from grader_service.model.base import Count, Details, ShortText, Wire
from grader_service.model.evidence import ProbeSite
from grader_service.model.feedback import MAX_SENTENCE

_NOW = {
    "ops.FileReader": "fn.readers.file",
    "ops.readers.File": "fn.readers.file",
    "ops.HostDecoder": "fn.decoders.image",
    "ops.nvJPEGDecoder": "fn.decoders.image",
    "ops.ImageDecoder": "fn.decoders.image",
    "ops.decoders.Image": "fn.decoders.image",
    "ops.CropMirrorNormalize": "fn.crop_mirror_normalize",
    "ops.Resize": "fn.resize",
    "ops.Uniform": "fn.random.uniform",
    "ops.CoinFlip": "fn.random.coin_flip",
}
"""What the commonest operators of the old style are called now; some of them are no longer in DALI."""
_MODERN = """\
@pipeline_def(batch_size=32, num_threads=4, device_id=0)
def train_pipeline():"""
_OLD = """\
class TrainPipeline(nvidia.dali.pipeline.Pipeline):
    def define_graph(self):"""


class Found(Wire):
    """Something in the learner's source."""

    name: ShortText
    file: ShortText = ""
    cell: Annotated[int, Field(ge=1, le=10**6)] | None = None
    line: Annotated[int, Field(ge=1, le=10**8)] | None = None
    operators: Annotated[tuple[ShortText, ...], Field(max_length=64)] = ()
    """Old operator objects that a class makes."""

    @property
    def place(self) -> str:
        """Where it stands, for the learner."""
        where = f"cell {self.cell}" if self.cell is not None else self.file
        return f"{where}, line {self.line}" if where and self.line else where or "your code"


class Styles(Wire):
    """Pipelines of the submission by their style, as the probe found them."""

    dali: bool
    classes: Annotated[tuple[Found, ...], Field(max_length=100)] = ()
    definitions: Annotated[tuple[Found, ...], Field(max_length=100)] = ()
    plain: Count = 0
    operators: Annotated[tuple[Found, ...], Field(max_length=100)] = ()


@check(
    version="1.1.0",
    title="Style of the DALI pipelines",
    word="style",
    codes={"ok": "the pipelines have the wanted style, or the lab takes any"},
)
def legacy_pipeline(
    discovery: Discovery,
    seen: Annotated[Styles, FromProbe("legacy_pipeline", ProbeSite.LEARNER)],
    *,
    style: Literal["modern", "legacy", "any"] = "modern",
) -> Result:
    """Judges whether pipelines are classes with `define_graph`, or functions under `@pipeline_def`.

    Evidence: classes and functions in the learner's namespace and in its source files, read in the learner's process
        (claims; a liar hides a class by deleting its name, and gains only the look of another style).
    Points: all or nothing; nothing is a failure under `any`, which adds advice instead.
    Errors: 0 false accepts on 18 failing and 0 false rejects on 17 passing controls in
        `tests/checks/claims/test_legacy_pipeline.py`.
    Cannot detect: classes that a factory function makes and does not leave in the namespace, and operators that are
        reached by getattr or through an import under a star.

    Args:
        style: `modern`: @pipeline_def and nvidia.dali.fn only; `legacy`: at least one class with define_graph.
    """
    nothing = not (seen.classes or seen.definitions or seen.plain or seen.operators)
    if nothing and (result := no_dali(discovery)) is not None:
        return result
    details = {
        "classes": [f"{found.name} ({found.place})" for found in seen.classes[:20]],
        "definitions": [f"{found.name} ({found.place})" for found in seen.definitions[:20]],
        "plain": seen.plain,
        "operators": [f"{found.name} ({found.place})" for found in seen.operators[:20]],
    }
    if style == "legacy":
        if seen.classes:
            return passed(f"DALI's old style was found, as wanted: {_named(seen.classes)}.", details=details)
        return failed(
            "no_legacy_class",
            "None of your pipelines is written in DALI's old style.",
            seen=f"Found: {_named(seen.definitions)}." if seen.definitions else "",
            wanted="The lab asks for a class with define_graph.",
            next="Make the operators (nvidia.dali.ops) in __init__, and connect them in define_graph:",
            write=_OLD,
            details=details,
        )
    if nothing:
        none = "No DALI pipeline was found."
        return failed("no_pipeline", none, next="Define one as a function:", write=_MODERN, details=details)
    old = _old(seen, details)
    if old is None:
        modern = "None of your pipelines is written in DALI's old style."
        if seen.definitions:
            modern = f"Your pipelines are functions under @pipeline_def: {_named(seen.definitions)}."
        return passed(modern, details=details)
    if style != "any":
        return old
    note = Advice(
        code="advice.old_style",
        severity=Severity.NOTE,
        text=f"{old.parts.outcome} {old.parts.seen}".rstrip()[:MAX_SENTENCE],
        next="Write new pipelines as functions under @pipeline_def, with nvidia.dali.fn.",
    )
    return passed("The lab takes pipelines in any style.", advice=(note,), details=details)


def _old(seen: Styles, details: Details) -> Result | None:
    """What is in the old style, and what to write instead; None when nothing is."""
    if seen.classes:
        verb = "A pipeline is" if len(seen.classes) == 1 else "Pipelines are"
        return failed(
            "legacy_class",
            f"{verb} written in DALI's old style: {_named(seen.classes)}.",
            seen=_renamed(sorted({name for found in seen.classes for name in found.operators})),
            next="Return from a function what define_graph returns:",
            write=_MODERN,
            numbers={"classes": len(seen.classes)},
            details=details,
        )
    if seen.operators:
        return failed(
            "legacy_operators",
            f"DALI's old style (nvidia.dali.ops) is used: {_named(seen.operators)}.",
            seen=_renamed(found.name for found in seen.operators),
            next="Call the functions of nvidia.dali.fn inside a pipeline function:",
            write=_MODERN,
            numbers={"operators": len(seen.operators)},
            details=details,
        )
    return None


def _named(found: tuple[Found, ...]) -> str:
    return listed([f"`{entry.name}` ({entry.place})" for entry in found])


def _renamed(used: Iterable[str]) -> str:
    """New names of operators that were used, the first three that are known."""
    known = [f"{name} is now {_NOW[name]}" for name in dict.fromkeys(used) if name in _NOW]
    return f"{listed(known[:MOST_LISTED])}." if known else ""
