"""Removes what has been kept for as long as the settings say: a chore of every judge."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import structlog

from grader_service.errors import GraderError, InfrastructureError
from grader_service.service.event_figures import count_old
from grader_service.store import retention
from grader_service.store.engine import Store
from grader_service.store.one_by_one import RowsLeft, tell
from grader_service.store.retention import Step

log = structlog.get_logger(__name__)

_AT_ONCE = 200
_MOST_LEFT = 1000
"""Rows that could not be removed in one round: there is more wrong than single rows."""
_TURN_S = 10.0
"""For so long in each round each kind is removed: 100,000 rows an hour, beside which the service goes on."""


@dataclass(frozen=True)
class Keeping:
    """For how many days what is kept; 0 for ever."""

    evidence_days: float = 0.0
    event_days: float = 0.0
    answer_days: float = 0.0
    """After they were delivered."""
    verdict_days: float = 0.0
    """A submission as a whole, after its verdict in force was given."""

    def steps(self) -> list[tuple[str, Step, float]]:
        """What there is to do: kind, how, days."""
        every: list[tuple[str, Step, float]] = [
            ("answers", retention.remove_answers, self.answer_days),
            ("evidence", retention.remove_evidence, self.evidence_days),
            ("verdicts", retention.remove_verdicts, self.verdict_days),
            ("events", retention.remove_events, self.event_days),
        ]
        return [step for step in every if step[2]]


class Retention:
    """Removes at each look what is older than it is kept.

    Args:
        at_once: rows in one transaction.
    """

    def __init__(
        self, store: Store, keeping: Keeping, clock: Callable[[], float] = time.monotonic, at_once: int = _AT_ONCE
    ) -> None:
        self._at_once = at_once
        self._store = store
        self._keeping = keeping
        self._clock = clock

    def look(self) -> None:
        """One round, in which each kind has its turn.

        Raises:
            InfrastructureError: something could not be removed; everything else was.
        """
        turns: list[Callable[[], None]] = [self._count]
        turns += [partial(self._turn, kind, step, days) for kind, step, days in self._keeping.steps()]
        failures = []
        for turn in turns:
            try:
                turn()
            except Exception as error:  # noqa: BLE001 - what one kind meets must not keep the others
                failures.append(str(error) if isinstance(error, GraderError) else f"{type(error).__name__}: {error}")
        if failures:
            raise InfrastructureError("; ".join(failures))

    def _count(self) -> None:
        while count_old(self._store):
            pass

    def _turn(self, kind: str, step: Step, days: float) -> None:
        until = self._clock() + _TURN_S
        removed = 0
        left: dict[str, str] = {}
        what = ""
        done = 1
        while done and self._clock() < until and len(left) < _MOST_LEFT:
            try:
                done = step(self._store, days, self._at_once, left)
                removed += done
            except RowsLeft as rows:
                left |= rows.left
                what = rows.what
                removed += rows.handled
                done = rows.handled + len(rows.left)
        if removed:
            log.info("removed_for_age", kind=kind, rows=removed, days=days)
        tell(left, what)
