"""A lab as data: its steps, checks, limits and how throughput is measured."""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import (
    AfterValidator,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic.config import JsonDict

from grader_service.errors import UsageError
from grader_service.model.base import Identifier, LongText, Sha256, ShortText, Wire, neutralise
from grader_service.model.near import instead

Visibility = Literal["full", "outcome", "hidden"]
"""What the learner reads of a check: its whole feedback; whether it passed, and the code; only that it was graded."""

_POINTS_UNLESS_OPTIONAL: JsonDict = {
    "if": {"properties": {"optional": {"const": True}}, "required": ["optional"]},
    "else": {"properties": {"points": {"exclusiveMinimum": 0}}},
}
_ONE_IS_NEEDED: JsonDict = {"contains": {"properties": {"optional": {"const": False}}}}


class LabCheck(Wire):
    """One check of a step, with its parameters, how much it counts and what the learner reads of it."""

    model_config = ConfigDict(json_schema_extra=_POINTS_UNLESS_OPTIONAL)

    id: Identifier
    optional: bool = False
    """True for advice: judged and shown, but neither the step nor the submission needs it to pass."""
    points: Annotated[float, Field(ge=0, le=1000)]
    """What a full pass adds to the step's score; 0 only where `optional` is true."""
    params: Mapping[str, object] = Field(default_factory=dict)
    """Validated by the check's own parameter model when the lab is loaded."""
    feedback: Visibility = "full"

    @field_validator("points")
    @classmethod
    def _points_unless_optional(cls, points: float, info: ValidationInfo) -> float:
        if points == 0 and not info.data.get("optional", False):
            raise ValueError("a check needs points above 0, unless it says optional = true")
        return points


class LabStep(Wire):
    """A step of the lab's page, graded by one or more checks."""

    id: Identifier
    title: ShortText
    checks: Annotated[tuple[LabCheck, ...], Field(min_length=1, json_schema_extra=_ONE_IS_NEEDED)]

    @field_validator("checks")
    @classmethod
    def _one_is_needed(cls, checks: tuple[LabCheck, ...]) -> tuple[LabCheck, ...]:
        if all(check.optional for check in checks):
            raise ValueError("a step needs a check that is not optional: advice alone decides nothing")
        return checks


class PodLimits(Wire):
    """What the learner's pod may use; every number is enforced by the host."""

    learner_timeout_s: Annotated[float, Field(gt=0, le=7200)] = 900.0
    """Wall-clock seconds for the learner's code, top to bottom."""
    learner_stall_s: Annotated[float, Field(gt=0, le=7200)] = 120.0
    """Seconds after which code is stopped that neither uses a processor nor reads or writes anything."""
    memory_mib: Annotated[int, Field(ge=512)] = 8192
    """RAM including tmpfs pages; swap is set to the same number, so none is used."""
    shm_mib: Annotated[int, Field(ge=64)] = 2048
    workspace_mib: Annotated[int, Field(ge=64)] = 2048
    workspace_inodes: Annotated[int, Field(ge=1000)] = 300_000
    pids: Annotated[int, Field(ge=64)] = 1024
    max_cpus: Annotated[int, Field(ge=1)] = 8
    """Every arm gets the same CPU set of at most this many cores."""


EARLY_BLOCKS = 2
"""After so many a ratio may end the measurement that no noise explains."""


class MeasurementPlan(Wire):
    """How the arms are timed; see `docs/measurement.md`."""

    block_s: Annotated[float, Field(gt=0, le=60)] = 1.0
    """Target seconds of one arm's timed window."""
    looks: Annotated[tuple[int, ...], Field(min_length=1)] = (4, 6, 8, 12)
    """Numbers of blocks after which the test may stop; strictly increasing."""
    extension_blocks: Annotated[int, Field(ge=0, le=100)] = 4
    """Blocks that are added, once, when the last look is undecided; they end with a look of their own."""
    alpha_pass: Annotated[float, Field(gt=0, lt=0.5)] = 0.005
    """Chance that a learner whose true ratio is the threshold ever passes, over all attempts."""
    alpha_fail: Annotated[float, Field(gt=0, lt=0.5)] = 0.05
    """The same of failing."""
    look_share: Annotated[float, Field(gt=0, le=1)] = 0.6
    """Part of an attempt's error that the t-test has, split equally over looks."""
    clear_share: Annotated[float, Field(ge=0, lt=1)] = 0.25
    """Part of it for the early-stopping bound at the first look of a first attempt; 0 leaves that rule out."""
    clear_sd: Annotated[float, Field(gt=0)] = 0.15
    """SD of `ln(ratio)` per block that this bound assumes, whatever was seen."""
    clear_most_sd: Annotated[float, Field(gt=0)] = 0.10
    """Largest SD seen with which this bound applies."""
    glaring: Annotated[float, Field(ge=2)] | None = 3.5
    """Factor beyond the threshold, upwards or downwards, that ends a first attempt when the first two blocks alone
    both show it; null leaves that rule out."""
    host_floor: Annotated[float, Field(ge=1)] = 1.3
    """Ratio of our own DALI graph to our own loader below which a host cannot show the effect, so that nobody fails who
    reaches half of it."""
    declared_floor: Annotated[float, Field(gt=0, le=1)] = 0.95
    """Share of the reference loader at the learner's declared settings below which a baseline is not believed."""
    fair_floor: Annotated[float, Field(gt=0, le=1)] = 0.91
    """The same for the reference loader at the pod's fair settings."""
    images: Annotated[int, Field(ge=64, le=8192)] = 512
    """Most held-out images; fewer when the learner's own set is smaller."""
    fair_workers: Annotated[int, Field(ge=1, le=64)] = 8
    """DataLoader workers of the fair reference, capped by the pod's cores."""

    @model_validator(mode="after")
    def _looks_increase(self) -> "MeasurementPlan":
        if any(b <= a for a, b in zip(self.looks, self.looks[1:], strict=False)) or self.looks[0] < 2:
            raise ValueError(f"looks must increase strictly and start at 2 or more, got {list(self.looks)}")
        return self

    @model_validator(mode="after")
    def _shares_fit(self) -> "MeasurementPlan":
        if self.look_share + self.clear_share > 1:
            raise ValueError(
                f"look_share and clear_share must add up to at most 1, got {self.look_share:g} and {self.clear_share:g}"
            )
        return self

    def stops(self, attempt: int) -> tuple[int, ...]:
        """Numbers of valid blocks after which an attempt may end."""
        if attempt > 1 or self.glaring is None or self.looks[0] <= EARLY_BLOCKS:
            return self.all_looks
        return (EARLY_BLOCKS, *self.all_looks)

    @property
    def all_looks(self) -> tuple[int, ...]:
        """Numbers of valid blocks after which the t-test looks, that of the extension included."""
        return (*self.looks, self.most_blocks) if self.extension_blocks else self.looks

    @property
    def most_blocks(self) -> int:
        """Valid blocks after which the test always answers."""
        return self.looks[-1] + self.extension_blocks


class Placement(Wire):
    """What a device must have for official runs of a lab; rehearsals run anywhere."""

    gpu_models: tuple[Annotated[str, StringConstraints(min_length=1, max_length=100)], ...] = ()
    """Parts of model names of which one must fit, such as `H100`; any GPU when empty. Upper and lower case are one.

    What names a whole GPU does not fit an instance of it; `MIG` or a profile such as `MIG 3g.71gb` does.
    """
    gpu_memory_mib: Annotated[int, Field(ge=0)] = 0
    """Least memory of the GPU, or of the instance."""
    cpus: Annotated[int, Field(ge=1)] = 1
    """Least number of cores that the worker may use."""


class LabRef(Wire):
    """A lab document that is kept among the blobs, so that it cannot change under a batch of re-grades."""

    sha256: Sha256
    form: Literal["toml", "yaml"]


class LabSpec(Wire):
    """A whole lab. The thresholds of the contract are values in here, not in code."""

    schema_id: Literal["grader.lab/v1"] = Field(alias="schema")
    id: Identifier
    version: Annotated[str, Field(pattern=r"^\d+\.\d+\.\d+$")]
    title: ShortText
    summary: Annotated[str, StringConstraints(max_length=2000), AfterValidator(neutralise)] = ""
    """What the lab is about, in Markdown; shown by `grader labs show`."""
    handout: LongText = ""
    """What learners are to hand in, in Markdown; shown by `grader labs show`."""
    grader: Annotated[str, Field(pattern=r"^>=\d{1,6}(\.\d{1,6}){0,2}$")] | None = None
    """The oldest grader that can grade this lab, such as `>=0.1`; an older one refuses it."""
    image: ShortText = "grader-lab"
    """Name of the lab image; its digest stands in the verdict."""
    steps: Annotated[tuple[LabStep, ...], Field(min_length=1)]
    placement: Placement = Placement()
    limits: PodLimits = PodLimits()
    measurement: MeasurementPlan = MeasurementPlan()

    @model_validator(mode="after")
    def _unique(self) -> "LabSpec":
        step_ids = [step.id for step in self.steps]
        check_ids = [check.id for step in self.steps for check in step.checks]
        for what, ids in (("step", step_ids), ("check", check_ids)):
            twice = sorted({i for i in ids if ids.count(i) > 1})
            if twice:
                raise ValueError(f"{what} ids must be unique, but {', '.join(twice)} stands more than once")
        return self

    def step_of(self, check_id: str) -> LabStep | None:
        """The step with this check; None where there is none."""
        return next((step for step in self.steps if any(check.id == check_id for check in step.checks)), None)

    def selected(self, step_ids: tuple[str, ...]) -> tuple[LabStep, ...]:
        """The steps named, in the lab's order; all of them when none is named.

        Raises:
            UsageError: a name is not a step of this lab; the message lists those that are.
        """
        known = [step.id for step in self.steps]
        unknown = [name for name in step_ids if name not in known]
        if unknown:
            owner = self.step_of(unknown[0])
            meant = instead(unknown[0], known, "its steps")
            if owner is not None:
                meant = f"; {unknown[0]} is a check of its step {owner.id}, and its steps are: {', '.join(known)}"
            raise UsageError(f"lab {self.id} has no step {', '.join(unknown)}{meant}")
        return tuple(step for step in self.steps if not step_ids or step.id in step_ids)


def threshold_of(lab: LabSpec) -> float:
    """The ratio that the lab wants, at which the sequential test aims; 1.1 for a lab that measures without a rule."""
    for step in lab.steps:
        for check in step.checks:
            value = check.params.get("threshold")
            if check.id == "throughput_ratio" and isinstance(value, (int, float)):
                return float(value)
    return 1.1
