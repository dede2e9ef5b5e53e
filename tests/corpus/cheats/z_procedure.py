"""Z: the statistics and the procedure around them, played on the real service over a fresh store."""

import itertools
import math
from collections.abc import Callable

from sqlalchemy import select

from grader_service.measure import blocks
from grader_service.measure.sequential_test import decide
from grader_service.model.lab import MeasurementPlan
from grader_service.model.measurement import Arm, Measurement
from grader_service.retry_policy import RetryPolicy
from grader_service.run.progress import Silent
from grader_service.service.pipeline import StageEnd
from grader_service.store import leases, results
from grader_service.store.sweep import expire_leases
from grader_service.store.tables import RunRow
from tests.corpus.case import NOT_REACHED, Observed, Procedure
from tests.corpus.parts_service import THRESHOLD, Dice, Service, measured, service
from tests.corpus.parts_texts import lists
from tests.corpus.world import World
from tests.factories import a_run, an_evidence
from tests.measure.test_blocks import SteadyArm

_TRIES = 25
_LUCKY, _LUCKY_WHEN_GIVING_UP = 6, 12
"""Days on which a test that begins anew with every try would pass one of so many; chance allows few such days."""


def _outcome(statuses: list[str], detail: str = "") -> Observed:
    """Whether any of the verdicts is a pass."""
    told = f"{detail} {', '.join(f'{statuses.count(one)} {one}' for one in sorted(set(statuses)))}".strip()
    return Observed("passed", "z.passed", told) if "passed" in statuses else Observed("failed", "z.never_passed", told)


def _retries(
    id_: str, title: str, submit: Callable[[Service, int], object], seed: int = _LUCKY, *, gives_up: bool = False
) -> Procedure:
    """Hands in again and again until noise has had its chance."""

    def play(world: World) -> Observed:
        thrown = Dice(seed, gives_up=gives_up)
        with service(world, thrown) as grader:
            statuses = []
            for number in range(_TRIES):
                submit(grader, number)
                statuses += [verdict.status.value for verdict in grader.graded()]
        return _outcome(statuses, f"attempts {thrown.attempts}:")

    return Procedure(id_, title, play, ("z.never_passed",))


def _flood(world: World) -> Observed:
    """More tries in an hour than anybody needs, each with another comment."""
    with service(world) as grader:
        kinds = [grader.submit(f"z:{number}", f"x = 1  # {number}").kind for number in range(100)]
    if "refused" not in kinds:
        return Observed("passed", "z.all_taken")
    return Observed("failed", "z.rate_limited", f"{kinds.count('accepted')} of {len(kinds)} were taken")


def _crash(world: World) -> Observed:
    """Ends its process at once: another run would be a free try."""
    with service(world) as grader:
        grader.submit("z:crash", "import os\nos._exit(1)", step="reflection")
        end, verdict = grader.run(), grader.judge()
        if end is not StageEnd.STORED or verdict is None:
            return Observed("passed", "z.run_again", f"the run ended as {end}")
        again = grader.run()
    if again is not StageEnd.NOTHING:
        return Observed("passed", "z.run_again", f"then came a run that ended as {again}")
    return Observed(verdict.status.value, verdict.checks[0].code, verdict.checks[0].feedback)


def _arm(arm: Arm, *rates: float) -> SteadyArm:
    """An arm that delivers at these rates, window by window."""
    turns = itertools.cycle(rates)
    return SteadyArm(arm, rates[0], during=lambda _: next(turns))


def _slow_when_noisy(world: World) -> Observed:
    """The host has lost two fifths of its speed; a baseline that notices pretends to have lost four."""
    assert world.folder.is_dir()
    arms = [_arm(Arm.LEARNER, 20.0, 21.0, 20.5), _arm(Arm.DECLARED, 60.0, 61.0, 60.5)]
    dali = _arm(Arm.DALI, 60.5, 61.0, 60.0)
    timed = blocks.measure(dali, arms, MeasurementPlan(), 1.1, Silent())
    assert timed.decision is not None
    return _outcome([timed.decision.outcome], f"ratio {timed.decision.ratio:.3f}")


def _late_runner(world: World) -> Observed:
    """Two runners have the run; the one that had lost it brings a better result, and brings it first."""
    with service(world) as grader:
        store = grader.intake.store
        grader.submit("z:twice")
        late = leases.claim(store, "run", "late", -1.0)
        assert late is not None
        expire_leases(store, RetryPolicy(max_attempts=3, delay_s=0.0))
        second = leases.claim(store, "run", "second", 60.0)
        assert second is not None
        for claim, ratio in ((late, 3.0), (second, 0.9)):
            found = measured([ratio, ratio * 1.01, ratio * 0.99, ratio])
            evidence = an_evidence(run=a_run(run_id=claim.run_id), measurement=found)
            results.store_evidence(store, claim, "measured", evidence.model_dump_json().encode(), {})
        verdict = grader.judge()
    assert verdict is not None
    return Observed(verdict.status.value, verdict.checks[0].code, verdict.checks[0].feedback)


def _redelivered(world: World) -> Observed:
    """The broker delivers one message five times: before, during and after its run."""
    with service(world, Dice(_LUCKY)) as grader:
        taken = [grader.submit("z:five") for _ in range(2)]
        grader.graded()
        taken += [grader.submit("z:five") for _ in range(3)]
        grader.graded()
        with grader.intake.store.transaction() as connection:
            runs = connection.execute(select(RunRow.run_id)).all()
    if len(runs) > 1 or len({one.run_id for one in taken}) > 1:
        return Observed("passed", "z.run_twice", f"{len(runs)} runs")
    return Observed("failed", "z.one_run", ", ".join(one.kind for one in taken))


def _other_content(world: World) -> Observed:
    """A good submission's id is used again, for a bad one that wants its verdict."""
    with service(world) as grader:
        grader.submit("z:same", lists(), step="reflection")
        first = grader.graded()
        assert [verdict.status.value for verdict in first] == ["passed"]
        taken = grader.submit("z:same", "where_dali_wins = where_dali_loses = []", step="reflection")
    if taken.kind != "refused":
        return Observed("passed", "z.borrowed_verdict", taken.kind)
    return Observed("rejected", "submission.conflict", taken.kind)


def _judged(ratios: list[float]) -> Callable[[World], Observed]:
    """The verdict on blocks with these ratios, judged when all of them were there."""

    def found(attempt: int) -> Measurement:
        logs = [math.log(ratio) for ratio in ratios]
        last = decide(logs, MeasurementPlan(), THRESHOLD, attempt=attempt, last=True)
        return measured(ratios, attempt, decision=last)

    def play(world: World) -> Observed:
        with service(world, found) as grader:
            grader.submit("z:blocks")
            (verdict,) = grader.graded()
        (check,) = verdict.checks
        outcome = "passed" if check.score else check.outcome.value
        return Observed(outcome, check.code, check.feedback)

    return play


CASES = (
    _retries(
        "Z01-same-file",
        "one file, handed in under a new id until noise passes it",
        lambda grader, number: grader.submit(f"z:{number}"),
    ),
    _retries("Z01-same-message", "one message, sent until noise passes it", lambda grader, _: grader.submit("z:again")),
    _retries(
        "Z02-edits",
        "a new comment for every try",
        lambda grader, number: grader.submit(f"z:{number}", f"x = 1  # {number}"),
    ),
    Procedure("Z02-flood", "a hundred tries in an hour", _flood, ("z.rate_limited",)),
    Procedure("Z03-crash", "a crash, to be run again", _crash, (NOT_REACHED,)),
    _retries(
        "Z03-gives-up",
        "a pipeline that ends itself when its first two blocks look bad",
        lambda grader, number: grader.submit(f"z:{number}"),
        _LUCKY_WHEN_GIVING_UP,
        gives_up=True,
    ),
    Procedure(
        "Z04-noise", "a baseline that slows down where the host is noisy anyway", _slow_when_noisy, ("z.never_passed",)
    ),
    Procedure("Z06-late", "the better of two runs", _late_runner, ("ratio.too_low",)),
    Procedure("Z06-redelivered", "a message delivered five times", _redelivered, ("z.one_run",)),
    Procedure(
        "Z06-other-content",
        "the id of a submission that passed, for another one",
        _other_content,
        ("submission.conflict",),
    ),
    Procedure("Z07-below", "1.0999 to be rounded up", _judged([1.0999] * 16), ("ratio.too_low",)),
    Procedure("Z07-equal", "exactly the threshold", _judged([1.1] * 16), ("ratio.inconclusive",)),
    Procedure(
        "Z08-doubt",
        "an undecided ratio above the threshold, for the benefit of the doubt",
        _judged([1.05, 1.35, 1.0, 1.3] * 4),
        ("ratio.inconclusive",),
    ),
)
