"""Who is let in: looked at before anything of a message is fetched or stored, and again when it is accepted."""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Self

from sqlalchemy import Connection, func, select

from grader_service.model.submission import Submission
from grader_service.store.clock import days_ago, db_now
from grader_service.store.engine import Store
from grader_service.store.tables import PREFLIGHT, RunRow, RunState, SubmissionRow, written


@dataclass(frozen=True)
class Content:
    """What must be equal for the same id to mean the same submission."""

    lab: str
    steps: tuple[str, ...]
    """In the order of the alphabet; none means all of the lab's."""
    sha256: str
    preflight: bool = False
    """Whether it is only looked at, and not graded."""

    @classmethod
    def made_of(cls, lab: str, steps: Iterable[str], sha256: str, *, preflight: bool = False) -> Self:
        """Of steps in any order."""
        return cls(lab, tuple(sorted(steps)), sha256, preflight)

    @classmethod
    def of(cls, submission: Submission, *, preflight: bool = False) -> Self:
        """That of a submission."""
        return cls.made_of(submission.lab, submission.steps, submission.sha256, preflight=preflight)

    @property
    def mode(self) -> str:
        """As the message says it."""
        return PREFLIGHT if self.preflight else "grade"

    @property
    def key(self) -> str:
        """Its digest."""
        parts = [self.lab, list(self.steps), self.sha256, *([PREFLIGHT] if self.preflight else [])]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()

    def differs(self, now: "Content") -> str:
        """In words, what another one has in place of this one's."""
        pairs = [
            ("the file's SHA-256 was", self.sha256, now.sha256),
            ("the lab was", self.lab, now.lab),
            ("steps were", ", ".join(self.steps) or "all", ", ".join(now.steps) or "all"),
            ("the mode was", self.mode, now.mode),
        ]
        return "; ".join(f"{what} {was}, now {given}" for what, was, given in pairs if was != given)


@dataclass(frozen=True)
class IntakeLimits:
    """What intake takes."""

    max_queued: int = 20_000
    """Runs waiting; beyond that the platform is told to come back."""
    learner_per_hour: int = 60
    """Submissions of one learner."""
    learner_gpu_s: float = 4 * 3600.0
    """Seconds for which the runs of one learner may hold devices within a day before more of them are refused."""
    learner_needed: bool = False
    """Whether a submission that names no learner is refused: whose turn it is could not be told."""


@dataclass(frozen=True)
class Wanted:
    """A submission at the door."""

    submission_id: str
    content: Content
    learner: str | None


class Admitted(Enum):
    """Those that are let in."""

    NEW = auto()
    KNOWN = auto()
    """The same submission was accepted before."""


@dataclass(frozen=True)
class Conflicting:
    """The id was used for other content."""

    first: Content


@dataclass(frozen=True)
class Refused:
    """Not taken for now; nothing was stored."""

    code: str
    feedback: str


Decision = Admitted | Conflicting | Refused


def foresee(store: Store, wanted: Sequence[Wanted], limits: IntakeLimits) -> list[Decision]:
    """What would become of submissions that came together, one after another; nothing is stored.

    Raises:
        StoreUnavailable: the database failed.
    """
    with store.transaction() as connection:
        door = Door(connection, wanted, limits)
        return [door.decide(one) for one in wanted]


class Door:
    """Decides on submissions that came together, by what is stored and by those that came before them."""

    def __init__(self, connection: Connection, wanted: Sequence[Wanted], limits: IntakeLimits) -> None:
        self._first = {
            row.submission_id: Content.made_of(row.lab, row.steps, row.sha256, preflight=row.queue == PREFLIGHT)
            for row in connection.execute(
                select(
                    SubmissionRow.submission_id,
                    SubmissionRow.lab,
                    SubmissionRow.steps,
                    SubmissionRow.sha256,
                    SubmissionRow.queue,
                ).where(SubmissionRow.submission_id.in_({one.submission_id for one in wanted}))
            )
        }
        self._limits = limits
        self._waiting = 0
        self._recent: Counter[str] = Counter()
        self._used: dict[str, _Use] = {}
        new = [one for one in wanted if one.submission_id not in self._first]
        if new:
            self._count(connection, {one.learner for one in new if one.learner is not None})

    def decide(self, one: Wanted) -> Decision:
        """Takes a place for one more submission, or says why it has none."""
        first = self._first.get(one.submission_id)
        if first is not None:
            return Admitted.KNOWN if first == one.content else Conflicting(first)
        refused = (
            self._nameless(one.learner) or self._full() or self._too_often(one.learner) or self._used_up(one.learner)
        )
        if refused is not None:
            return refused
        if one.learner is not None:
            self._recent[one.learner] += 1
        self._waiting += 1
        self._first[one.submission_id] = one.content
        return Admitted.NEW

    def _count(self, connection: Connection, learners: set[str]) -> None:
        # Counting stops at the limit: a full queue costs no more than a fair-sized one.
        queued = select(RunRow.run_id).where(RunRow.state == written(RunState.RUN_QUEUED))
        some = queued.limit(self._limits.max_queued).subquery()
        self._waiting = connection.execute(select(func.count()).select_from(some)).scalar_one()
        if learners:
            recent = (
                select(SubmissionRow.learner, func.count().label("n"))
                .where(SubmissionRow.learner.in_(learners), SubmissionRow.received_at > db_now() - 3600.0)
                .group_by(SubmissionRow.learner)
            )
            self._recent.update({row.learner: row.n for row in connection.execute(recent)})
            self._used = _uses(connection, learners)

    def end_of_line(self, learner: str | None) -> float:
        """Behind whom a learner's next submission stands, as a time: see `fairness`."""
        use = self._used.get(learner) if learner is not None else None
        return use.stands_behind if use is not None else 0.0

    def _nameless(self, learner: str | None) -> Refused | None:
        if learner is not None or not self._limits.learner_needed:
            return None
        return Refused(
            "message.malformed",
            "The message cannot be graded: learner: learners take turns here, so that each submission names its own. "
            "Expected any text that is the same for all submissions of one learner, such as a pseudonym; got none",
        )

    def _full(self) -> Refused | None:
        if self._waiting < self._limits.max_queued:
            return None
        return Refused(
            "queue.full",
            f"{self._waiting} submissions are waiting, which is as many as are taken. This one was not stored and "
            "does not count as an attempt: send it again later.",
        )

    def _too_often(self, learner: str | None) -> Refused | None:
        if learner is None or self._recent[learner] < self._limits.learner_per_hour:
            return None
        return Refused(
            "queue.rate_limited",
            f"{self._recent[learner]} submissions of this learner came within the last hour; at most "
            f"{self._limits.learner_per_hour} are taken. This one was not stored and does not count as an "
            "attempt: send it again later.",
        )

    def _used_up(self, learner: str | None) -> Refused | None:
        use = self._used.get(learner) if learner is not None else None
        if use is None or use.held_s < self._limits.learner_gpu_s:
            return None
        return Refused(
            "queue.gpu_budget",
            f"Runs of this learner held a GPU for {use.held_s / 3600:.1f} h within the last 24 h; up to "
            f"{self._limits.learner_gpu_s / 3600:.1f} h are given. This one was not stored and does not count as an "
            "attempt: send it again later.",
        )


@dataclass(frozen=True)
class _Use:
    """What the runs of a learner had of the devices within a day."""

    held_s: float
    stands_behind: float


def _uses(connection: Connection, learners: set[str]) -> dict[str, _Use]:
    """By learner; what re-grades run is nobody's use."""
    statement = (
        select(
            RunRow.learner,
            func.sum(RunRow.held_s).label("held_s"),
            func.max(RunRow.held_until + RunRow.held_s).label("stands_behind"),
        )
        .where(RunRow.learner.in_(learners), RunRow.held_until > days_ago(1), RunRow.item_id.is_(None))
        .group_by(RunRow.learner)
    )
    return {row.learner: _Use(row.held_s, row.stands_behind) for row in connection.execute(statement)}
