"""The check `legacy_pipeline`: pipelines are written in the style that the lab teaches."""

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from checks.api import API_VERSION, CheckResult, failed, passed
from checks.codes import LEARNER_PROBE, NO_DALI, common
from checks.not_carried import no_dali
from checks.probing import read_probe
from checks.stopped import not_reached
from grader_service.model.base import Count, ShortText, Wire
from grader_service.model.evidence import Evidence, Need
from grader_service.model.verdict import Tier

_SAYS = "This is read from your own code (tier D)."
_REMOVED = {
    "ops.HostDecoder": "ops.HostDecoder and ops.nvJPEGDecoder are gone; fn.decoders.image(device='cpu' or 'mixed')",
    "ops.FileReader": "fn.readers.file",
    "ops.ImageDecoder": "fn.decoders.image",
    "ops.Uniform": "fn.random.uniform",
    "ops.CoinFlip": "fn.random.coin_flip",
}


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


class LegacyPipelineCheck:
    """Judges whether pipelines are classes with `define_graph`, or functions under `@pipeline_def`.

    Evidence: classes and functions in the learner's namespace and in its source files, read in the learner's process
        (claims; a liar hides a class by deleting its name, and gains only the look of another style).
    Points: all or nothing; nothing is a failure under `any`, which adds advice instead.
    Errors: 0 false accepts on 18 failing and 0 false rejects on 17 passing controls in
        `tests/builtin_claims/test_legacy_pipeline.py`.
    Cannot detect: classes that a factory function makes and does not leave in the namespace, and operators that are
        reached by getattr or through an import under a star.
    """

    id: ClassVar[str] = "legacy_pipeline"
    version: ClassVar[str] = "1.0.0"
    api_version: ClassVar[int] = API_VERSION
    title: ClassVar[str] = "Style of the DALI pipelines"
    needs: ClassVar[frozenset[Need]] = frozenset({Need.DISCOVERY})
    probes: ClassVar[tuple[str, ...]] = ("legacy_pipeline",)
    codes: ClassVar[Mapping[str, str]] = common("style", LEARNER_PROBE, NO_DALI) | {
        "style.ok": "the pipelines have the wanted style, or the lab takes any",
        "style.no_legacy_class": "no pipeline in the old style was found",
        "style.legacy_class": "a pipeline is a class in the old style",
        "style.legacy_operators": "operators of the old style are used",
    }
    params_model = Params
    observation_model = Observation

    def observe(self, evidence: Evidence) -> Observation | CheckResult:
        """See `checks.api.Check.observe`."""
        discovery = evidence.discovery
        if discovery is None:
            return not_reached()
        seen = read_probe(evidence, "style", "legacy_pipeline", Observation)
        if isinstance(seen, Observation) and not (seen.classes or seen.definitions or seen.plain or seen.operators):
            return no_dali("style", discovery) or seen
        return seen

    def judge(self, observation: Observation, params: Params) -> CheckResult:
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
                text = f"A pipeline in the old style was found: {_names(observation.classes)}. {_SAYS}"
                return passed("style.ok", text, tier=Tier.CLAIMS, details=details)
            text = (
                "No pipeline in the old style was found. Derive a class from nvidia.dali.pipeline.Pipeline, make its "
                f"operators (nvidia.dali.ops) in __init__ and connect them in define_graph. {_SAYS}"
            )
            return failed("style.no_legacy_class", text, tier=Tier.CLAIMS, details=details)
        if not modern and not observation.classes and not observation.operators:
            text = "No DALI pipeline was found. Define one with @pipeline_def."
            return failed("style.no_pipeline", text, tier=Tier.CLAIMS, details=details)
        advice = _advice(observation)
        if params.style == "any" or not advice:
            text = f"{advice or f'Your pipelines use @pipeline_def: {_seen(observation)}.'} {_SAYS}"
            return passed("style.ok", text, tier=Tier.CLAIMS, details=details)
        code = "legacy_class" if observation.classes else "legacy_operators"
        return failed(f"style.{code}", f"{advice} {_SAYS}", tier=Tier.CLAIMS, details=details)


def _advice(observation: Observation) -> str:
    """What is in the old style, and what to write instead; empty when nothing is."""
    if observation.classes:
        used = sorted({name for found in observation.classes for name in found.operators})
        instead = [new for old, new in _REMOVED.items() if old in used]
        text = (
            f"Written in DALI's old style: {_names(observation.classes)}. Write a function under @pipeline_def that "
            "returns what define_graph returns, and call operators by nvidia.dali.fn"
        )
        return f"{text} ({'; '.join(instead)})." if instead else f"{text}."
    if observation.operators:
        return (
            f"Operators of the old style (nvidia.dali.ops) are used: {_names(observation.operators)}. Call "
            f"the function "
            "of the same name in nvidia.dali.fn."
        )
    return ""


def _names(found: tuple[Found, ...]) -> str:
    told = [f"`{entry.name}` ({entry.place})" for entry in found[:4]]
    return ", ".join(told) + (f" and {len(found) - 4} more" if len(found) > 4 else "")


def _seen(observation: Observation) -> str:
    return _names(observation.definitions) if observation.definitions else f"{observation.plain} built"


CHECK = LegacyPipelineCheck()
