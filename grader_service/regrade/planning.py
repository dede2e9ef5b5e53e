"""Plans a batch: which submissions, at which level and why, and what it would cost; changes no verdict."""

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import fsum
from pathlib import Path
from statistics import fmean
from typing import Literal

from checks.probe_files import ProbeFiles
from checks.registry import Registry
from grader_service.errors import UsageError
from grader_service.judging.checks import needs_of
from grader_service.judging.probe_plan import wanted_probes
from grader_service.model.regrade import (
    MOST_REPEATS,
    Batch,
    BatchState,
    Estimate,
    Level,
    LevelCount,
    Selection,
)
from grader_service.model.verdict_summary import every_value
from grader_service.regrade.sufficiency import Asked, Choice, choose
from grader_service.service.kept_labs import TakenLab, installed_lab, labs_in_files
from grader_service.store import devices, regrades
from grader_service.store.cohorts import Candidate, candidates
from grader_service.store.engine import Store
from grader_service.store.regrade_states import check_budget
from grader_service.store.regrades import NewItem
from grader_service.store.results import store_blob

JUDGED_PER_S = 200.0
"""What two cores judge; see `bench/regrade.py`. For the estimate only."""
_RUN_S = 60.0
"""For the estimate, where no run was ever timed."""
_LONGEST_REASON = 8192

Wanted = Literal["auto", "judge", "run"]


@dataclass(frozen=True)
class PlanRequest:
    """What an operator asks for."""

    selection: Selection
    reason: str
    level: Wanted = "auto"
    repeats: int = 1
    gpu_budget_s: float | None = None
    lab_files: Sequence[Path] = ()
    """Labs to grade by in place of the installed ones of the same ids."""


@dataclass
class _Found:
    """What the selection holds, counted while it is read."""

    items: list[NewItem] = field(default_factory=list)
    counts: Counter[Choice] = field(default_factory=Counter)
    timed_s: list[float] = field(default_factory=list)
    """Of every selected submission whose run was timed, seconds."""
    to_run_s: list[float | None] = field(default_factory=list)
    """The same of those that have to run; None where it was not timed."""

    def add(self, one: Candidate, choice: Choice) -> None:
        """Counts one submission, and keeps what is to be done with it."""
        self.counts[choice] += 1
        if one.run_s is not None:
            self.timed_s.append(one.run_s)
        if choice.level is Level.RUN:
            self.to_run_s.append(one.run_s)
        if choice.level is not None:
            self.items.append(NewItem(one.verdict_id, choice.level, choice.reason))


def plan(store: Store, registry: Registry, request: PlanRequest, actor: str, *, dry_run: bool = False) -> Batch:
    """A batch in state `planned`; stored, unless it is a dry run.

    Raises:
        UsageError: the request is wrong, or nothing was selected.
        ConfigurationError: a lab or check that it needs is wrong.
    """
    _check(request)
    labs = _Labs(registry, request)
    found = _Found()
    for one in candidates(store, request.selection):
        found.add(one, labs.choose(one))
    if not found.items:
        raise UsageError(_nothing(found))
    labs.check_given()
    taken = labs.taken()
    batch = Batch(
        batch_id=regrades.new_batch_id(),
        state=BatchState.PLANNED,
        reason=request.reason.strip(),
        author=actor[:200],
        created_at=time.time(),
        selection=request.selection,
        level=request.level,
        repeats=request.repeats,
        labs=tuple(lab.record(registry) for lab in taken),
        estimate=_estimate(store, found, request.repeats),
        gpu_budget_s=request.gpu_budget_s,
    )
    if not dry_run:
        with store.transaction() as connection:
            for lab in taken:
                store_blob(connection, lab.sha256, lab.text.content)
        regrades.create(store, batch, found.items, actor)
    return batch


def _check(request: PlanRequest) -> None:
    if not request.reason.strip():
        raise UsageError("a batch needs a reason, for those who ask later why grades changed")
    if len(request.reason) > _LONGEST_REASON:
        raise UsageError(f"a reason has at most {_LONGEST_REASON} characters, not {len(request.reason)}")
    check_budget(request.gpu_budget_s)
    if not 1 <= request.repeats <= MOST_REPEATS:
        raise UsageError(f"a batch repeats each submission 1 to {MOST_REPEATS} times, not {request.repeats}")


def _nothing(found: _Found) -> str:
    if not found.counts:
        return "no graded submission fits the selection; `grader cohort list` shows what there is"
    reasons = "; ".join(f"{count}: {choice.text}" for choice, count in found.counts.most_common(5))
    return f"nothing is left to grade again. Left out: {reasons}"


class _Labs:
    """The labs of a batch, and what their checks look at; each is read once."""

    def __init__(self, registry: Registry, request: PlanRequest) -> None:
        self._registry = registry
        self._wanted = request.level
        self._given = labs_in_files(request.lab_files, registry)
        self._probes = ProbeFiles()
        self._taken: dict[str, TakenLab | None] = {}
        self._asked: dict[tuple[str, tuple[str, ...]], Asked | None] = {}

    def taken(self) -> list[TakenLab]:
        """Labs that submissions of the batch need, by id."""
        return [lab for _, lab in sorted(self._taken.items()) if lab is not None]

    def check_given(self) -> None:
        """Refuses lab files that nothing would be graded by: their author expects otherwise.

        Raises:
            UsageError: there is such a file.
        """
        unused = sorted(set(self._given) - set(self._taken))
        if unused:
            raise UsageError(
                f"no selected submission is of the lab {', '.join(unused)}, for which a file was given; selected are "
                f"submissions of {', '.join(sorted(self._taken))}"
            )

    def choose(self, one: Candidate) -> Choice:
        """The level for one submission."""
        lab_id = one.lab
        if lab_id not in self._taken:
            self._taken[lab_id] = self._take(lab_id)
        if self._taken[lab_id] is None:
            return Choice(None, "lab.unknown", f"left out, since the lab {lab_id} is not installed")
        asked = self._what_checks_ask(lab_id, one.steps)
        if asked is None:
            text = f"left out, since the lab {lab_id} has no longer every step that they were graded on"
            return Choice(None, "lab.step_missing", text)
        return choose(one, asked, self._wanted)

    def _take(self, lab_id: str) -> TakenLab | None:
        if lab_id in self._given:
            return self._given[lab_id]
        try:
            return installed_lab(lab_id, self._registry)
        except UsageError as error:
            if type(error) is UsageError:
                return None
            raise  # installed, and wrong

    def _what_checks_ask(self, lab_id: str, steps: tuple[str, ...]) -> Asked | None:
        key = (lab_id, steps)
        if key not in self._asked:
            lab = self._taken[lab_id]
            assert lab is not None  # noqa: S101 - the caller looked
            if not set(steps) <= {step.id for step in lab.spec.steps}:
                self._asked[key] = None
            else:
                chosen = lab.spec.selected(steps)
                probes = tuple(task.ref for task in wanted_probes(chosen, self._registry, self._probes))
                self._asked[key] = Asked(needs_of(chosen, self._registry), probes, every_value(lab.spec.measurement))
        return self._asked[key]


def _estimate(store: Store, found: _Found, repeats: int) -> Estimate:
    levels = Counter(item.level for item in found.items)
    judged, run = levels[Level.JUDGE] * repeats, levels[Level.RUN] * repeats
    known = [run_s for run_s in found.to_run_s if run_s is not None]
    others = len(found.to_run_s) - len(known)
    run_s = repeats * (fsum(known) + others * fmean(known or found.timed_s or (_RUN_S,)))
    ready = devices.ready(store)
    eta_s: float | None = judged / JUDGED_PER_S
    if run:
        eta_s = max(eta_s or 0.0, run_s / ready) if ready else None
    return Estimate(
        counts=tuple(
            LevelCount(level=choice.level, reason=choice.reason, text=choice.text, submissions=count)
            for choice, count in found.counts.most_common()
        ),
        selected=sum(found.counts.values()),
        items=judged + run,
        gpu_s=run_s,
        eta_s=eta_s,
    )
