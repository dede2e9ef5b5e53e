"""The check `legacy_pipeline`: pipelines are written in the style that the lab teaches."""

from collections.abc import Iterable
from typing import Annotated, Literal

from pydantic import Field

from checks.api import Check, Result, failed, passed
from checks.codes import LEARNER_PROBE, NO_DALI, common
from checks.listing import MOST_LISTED, listed
from checks.not_carried import no_dali
from checks.probing import read_probe
from checks.stopped import not_reached
from grader_service.model.base import Count, ShortText, Wire
from grader_service.model.evidence import Evidence, Need, ProbeSite
from grader_service.model.feedback import Advice, Feedback, NextStep, Severity
from grader_service.model.verdict import Tier

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


class Params(Wire):
    """Which style the lab wants."""

    style: Literal["modern", "legacy", "any"] = "modern"
    """`modern`: @pipeline_def and nvidia.dali.fn only; `legacy`: at least one class with define_graph."""


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


class Observation(Wire):
    """Pipelines of the submission by their style."""

    dali: bool
    classes: Annotated[tuple[Found, ...], Field(max_length=100)] = ()
    definitions: Annotated[tuple[Found, ...], Field(max_length=100)] = ()
    plain: Count = 0
    operators: Annotated[tuple[Found, ...], Field(max_length=100)] = ()


class LegacyPipelineCheck(Check[Params, Observation]):
    """Judges whether pipelines are classes with `define_graph`, or functions under `@pipeline_def`.

    Evidence: classes and functions in the learner's namespace and in its source files, read in the learner's process
        (claims; a liar hides a class by deleting its name, and gains only the look of another style).
    Points: all or nothing; nothing is a failure under `any`, which adds advice instead.
    Errors: 0 false accepts on 18 failing and 0 false rejects on 17 passing controls in
        `tests/builtin_claims/test_legacy_pipeline.py`.
    Cannot detect: classes that a factory function makes and does not leave in the namespace, and operators that are
        reached by getattr or through an import under a star.
    """

    id = "legacy_pipeline"
    version = "1.1.0"
    title = "Style of the DALI pipelines"
    word = "style"
    needs = frozenset({Need.DISCOVERY})
    probes = ("legacy_pipeline",)
    codes = common("style", LEARNER_PROBE, NO_DALI) | {
        "style.ok": "the pipelines have the wanted style, or the lab takes any",
        "style.no_legacy_class": "no pipeline in the old style was found",
        "style.legacy_class": "a pipeline is a class in the old style",
        "style.legacy_operators": "operators of the old style are used",
    }
    params_model = Params
    observation_model = Observation

    def observe(self, evidence: Evidence) -> Observation | Result:
        """See `checks.api.Check.observe`."""
        discovery = evidence.discovery
        if discovery is None:
            return not_reached()
        seen = read_probe(evidence, "style", "legacy_pipeline", Observation, ProbeSite.LEARNER)
        if isinstance(seen, Observation) and not (seen.classes or seen.definitions or seen.plain or seen.operators):
            return no_dali("style", discovery) or seen
        return seen

    def judge(self, observation: Observation, params: Params) -> Result:
        """See `checks.api.Check.judge`."""
        details = {
            "classes": [f"{found.name} ({found.place})" for found in observation.classes[:20]],
            "definitions": [f"{found.name} ({found.place})" for found in observation.definitions[:20]],
            "plain": observation.plain,
            "operators": [f"{found.name} ({found.place})" for found in observation.operators[:20]],
        }
        modern = bool(observation.definitions) or observation.plain > 0
        if params.style == "legacy":
            if observation.classes:
                feedback = Feedback(outcome=f"DALI's old style was found, as wanted: {_named(observation.classes)}.")
                return passed(feedback, tier=Tier.CLAIMS, details=details)
            return failed("style.no_legacy_class", _no_class(observation), tier=Tier.CLAIMS, details=details)
        if not modern and not observation.classes and not observation.operators:
            return failed("style.no_pipeline", _NO_PIPELINE, tier=Tier.CLAIMS, details=details)
        old = _old(observation)
        if old is None:
            return passed(_modern(observation), tier=Tier.CLAIMS, details=details)
        if params.style == "any":
            return passed(_either(old), tier=Tier.CLAIMS, details=details)
        code = "legacy_class" if observation.classes else "legacy_operators"
        return failed(f"style.{code}", old, tier=Tier.CLAIMS, details=details)


_NO_PIPELINE = Feedback(
    outcome="No DALI pipeline was found.", next=NextStep(text="Define one as a function:", code=_MODERN)
)


def _no_class(observation: Observation) -> Feedback:
    return Feedback(
        outcome="None of your pipelines is written in DALI's old style.",
        seen=f"Found: {_named(observation.definitions)}." if observation.definitions else "",
        wanted="The lab asks for a class with define_graph.",
        next=NextStep(
            text="Make the operators (nvidia.dali.ops) in __init__, and connect them in define_graph:", code=_OLD
        ),
    )


def _old(observation: Observation) -> Feedback | None:
    """What is in the old style, and what to write instead; None when nothing is."""
    if observation.classes:
        verb = "A pipeline is" if len(observation.classes) == 1 else "Pipelines are"
        used = sorted({name for found in observation.classes for name in found.operators})
        return Feedback(
            outcome=f"{verb} written in DALI's old style: {_named(observation.classes)}.",
            seen=_renamed(used),
            next=NextStep(text="Return from a function what define_graph returns:", code=_MODERN),
            numbers={"classes": len(observation.classes)},
        )
    if observation.operators:
        return Feedback(
            outcome=f"DALI's old style (nvidia.dali.ops) is used: {_named(observation.operators)}.",
            seen=_renamed([found.name for found in observation.operators]),
            next=NextStep(text="Call the functions of nvidia.dali.fn inside a pipeline function:", code=_MODERN),
            numbers={"operators": len(observation.operators)},
        )
    return None


def _modern(observation: Observation) -> Feedback:
    if observation.definitions:
        return Feedback(outcome=f"Your pipelines are functions under @pipeline_def: {_named(observation.definitions)}.")
    return Feedback(outcome="None of your pipelines is written in DALI's old style.")


def _either(old: Feedback) -> Feedback:
    """Feedback for a pass where the lab takes any style and the old one was found."""
    text = " ".join(filter(None, (old.outcome, old.seen)))
    note = Advice(
        code="advice.old_style",
        severity=Severity.NOTE,
        text=text,
        next="Write new pipelines as functions under @pipeline_def, with nvidia.dali.fn.",
    )
    return Feedback(outcome="The lab takes pipelines in any style.", advice=(note,))


def _named(found: tuple[Found, ...]) -> str:
    return listed([f"`{entry.name}` ({entry.place})" for entry in found])


def _renamed(used: Iterable[str]) -> str:
    """New names of operators that were used, the first three that are known."""
    known = [f"{name} is now {_NOW[name]}" for name in dict.fromkeys(used) if name in _NOW]
    return f"{listed(known[:MOST_LISTED])}." if known else ""


CHECK = LegacyPipelineCheck()
