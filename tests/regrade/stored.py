"""Puts cohorts of graded submissions into a real store, as the service would have left them; see `kinds`.

`fill` is for many: a few hundred pieces of evidence are really judged, and each is written for many submissions with
ids, names and times of their own and a signature of their own. `fill_through_service` is for few: every submission is
accepted, claimed, stored and judged by the service's own code. Neither leaves an answer in the outbox: whoever waited
has had it, so that a test sees new answers only.
"""

import hashlib
import json
import random
import time
import uuid
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from sqlalchemy import delete, insert

from checks.probe_files import ProbeFiles
from checks.registry import Registry
from grader_service.errors import SubmissionRejected
from grader_service.judging import verdicts
from grader_service.judging.checks import judge, needs_of
from grader_service.judging.probe_plan import wanted_probes
from grader_service.labs.specs import lab_text
from grader_service.model.evidence import Rejection, RunPlan
from grader_service.model.lab import LabRef, threshold_of
from grader_service.model.submission import Submission
from grader_service.model.verdict import Mode, Signature, Verdict
from grader_service.model.verdict_summary import summary_of
from grader_service.service.judge import JudgeDeps, judge_next
from grader_service.service.kept_labs import installed_lab
from grader_service.signer.signatures import KeySigner, Signer, canonical
from grader_service.store import leases, results
from grader_service.store.acceptance import Accepted, Arrival, Content, IntakeLimits, accept_all
from grader_service.store.engine import Store
from grader_service.store.outbox import Waiter
from grader_service.store.results import EvidenceKind
from grader_service.store.tables import (
    EventRow,
    EvidenceRow,
    OutboxRow,
    RunRow,
    RunState,
    SubmissionRow,
    VerdictRow,
    WaiterRow,
    table_of,
)
from sandbox.api import SandboxFacts
from tests.regrade.kinds import MEASURED, evidence_of, kinds

LAB, COHORT = "dali-pipelines", "autumn"
REPLY_QUEUE, REPLY_TASK = "lab-platform", "lab.verdict_ready"
WAITING_EVERY = 3
"""Every third submission has somebody who waits for its verdict."""
_SPREAD_S = 30 * 86400.0
"""The cohort came in over the last 30 days."""
_AT_ONCE = 1000
_VARIANTS = 60
"""Pieces of evidence of one kind and attempt that are judged; more submissions of it share them."""
_NAMES = ("learner-{}", "learner-{}", "learner-{}", "learner-{}", 'Zoë O\'Neill "{}" <b>bold</b>', "=HYPERLINK({})")
"""Ids are opaque: platforms also send names, and some learners try what a page makes of them."""
_WHEN = datetime(2001, 2, 3, 4, 5, 6, 789012, tzinfo=UTC)
_SIGNATURE = Signature(key_id="4d" * 8, public_key="4d" * 32, value="5e" * 64)
_MARKS = {
    "verdict_id": '"mark:verdict"',
    "submission_id": '"mark:submission"',
    "run_id": '"mark:run"',
    "learner": '"mark:learner"',
    "cohort": '"mark:cohort"',
    "sha256": f'"{"a1" * 32}"',
    "created_at": f'"{_WHEN.isoformat().replace("+00:00", "Z")}"',
    "created_s": f"{_WHEN.timestamp()}",
    "signature": _SIGNATURE.model_dump_json(),
}
"""What stands in the documents of a shared judgement where each submission has its own."""


@dataclass(frozen=True)
class Place:
    """One submission before it is judged."""

    number: int
    kind: str | float
    learner: str | None
    attempt: int
    """Of the learner's measured ones; for a kind without a measurement, the one that would come next."""

    @property
    def submission_id(self) -> str:
        """Of what is handed in here."""
        return f"{COHORT}:1:{self.number:06d}"


def fill(
    store: Store,
    count: int,
    *,
    ratios: Sequence[float] | None = None,
    signer: Signer | None = None,
) -> list[str]:
    """Stores graded submissions with their verdicts in force; returns their ids in the order in which they came.

    Args:
        ratios: true ratios, taken in turn, of submissions that are good in every other way; the mixture when absent.
        signer: of the service; a key of its own when absent.
    """
    maker = Maker(signer or KeySigner(Ed25519PrivateKey.generate()))
    now = time.time() - 600.0
    rows = _Rows()
    ids = []
    for place in places(count, ratios):
        rows.add(maker, place, now - _SPREAD_S * (1 - place.number / count))
        ids.append(place.submission_id)
        if len(ids) % _AT_ONCE == 0 or len(ids) == count:
            rows.insert(store)
    return ids


def fill_through_service(store: Store, count: int, signer: Signer) -> None:
    """The same cohort through the service's own code, one submission after another."""
    maker = Maker(signer)
    maker.keep_lab(store)
    todo = {place.submission_id: place for place in places(count)}
    arrivals = [
        Arrival(maker.submission(place.submission_id, place), maker.plan, "live", maker.waiter(place))
        for place in todo.values()
    ]
    limits = IntakeLimits(max_queued=10**6, learner_per_hour=10**6)
    accepted = accept_all(store, arrivals, limits, "intake")
    assert all(isinstance(outcome, Accepted) for outcome in accepted)
    deps = JudgeDeps(store, maker.registry, maker.signer, "judge")
    for _ in todo:
        claim = leases.claim(store, "run", "runner", 60.0)
        assert claim is not None
        kind, document = maker.shared(todo[claim.submission_id]).evidence(claim.run_id)
        assert results.store_evidence(store, claim, kind, document, {})
        assert judge_next(deps) is not None
    with store.transaction() as connection:
        connection.execute(delete(table_of(OutboxRow)))


def places(count: int, ratios: Sequence[float] | None = None) -> Iterator[Place]:
    """Who hands in what, in the order in which it came: most learners once, some again, a few without a name."""
    draw = random.Random(1)
    found: Sequence[str | float] = kinds(count) if ratios is None else ratios
    handed_in: dict[str, int] = {}
    names: list[str] = []
    for number in range(count):
        kind = found[number % len(found)]
        learner: str | None = None
        if names and draw.random() < 0.15:
            learner = draw.choice(names)
        elif number % 97 != 96:
            learner = _NAMES[number % len(_NAMES)].format(number)
            names.append(learner)
        before = handed_in.get(learner, 0) if learner is not None else 0
        yield Place(number, kind, learner, before + 1)
        if learner is not None and (kind in MEASURED or not isinstance(kind, str)):
            handed_in[learner] = before + 1


def changed_lab(folder: Path, old: bytes = b"threshold = 1.1", new: bytes = b"threshold = 1.3") -> Path:
    """The file of the lab as it is installed, with one value changed: the threshold of the ratio, unless told."""
    path = folder / "lab.toml"
    path.write_bytes(lab_text(LAB).content.replace(old, new))
    return path


def _filled(text: str, values: dict[str, str]) -> str:
    """The document with these JSON values in the marks' places."""
    for name, value in values.items():
        text = text.replace(_MARKS[name], value)
    return text


@dataclass(frozen=True)
class _Shared:
    """One piece of evidence and what was judged from it, for several submissions."""

    kind: EvidenceKind
    document: str
    verdict: Verdict
    canonical: str
    signed: str
    summary: str

    def evidence(self, run_id: str) -> tuple[EvidenceKind, bytes]:
        """The document that a run would have stored, and its kind."""
        return self.kind, _filled(self.document, {"run_id": json.dumps(run_id)}).encode()


_JUDGED: dict[tuple[str | float, int, int], _Shared] = {}
"""What this process judged before, by kind, attempt and variant: judging is most of filling a store."""


class Maker:
    """Judges each shared piece of evidence once, when it is first wanted."""

    def __init__(self, signer: Signer) -> None:
        self.registry = Registry()
        self.signer = signer
        self._installed = installed_lab(LAB, self.registry)
        self._lab = self._installed.spec
        steps = self._lab.steps
        self.plan = RunPlan(
            needs=tuple(sorted(needs_of(steps, self.registry))),
            threshold=threshold_of(self._lab),
            probes=tuple(task.ref for task in wanted_probes(steps, self.registry, ProbeFiles())),
            lab=LabRef(sha256=self._installed.sha256, form="toml"),
        )

    def keep_lab(self, store: Store) -> None:
        """Stores the lab's text, by which runs are judged."""
        with store.transaction() as connection:
            results.store_blob(connection, self._installed.sha256, self._installed.text.content)

    def submission(self, submission_id: str, place: Place, at: float | None = None) -> Submission:
        """What the learner handed in."""
        return Submission(
            submission_id=submission_id,
            lab=self._lab.id,
            learner=place.learner,
            cohort=COHORT,
            submitted_at=datetime.fromtimestamp(at, UTC) if at is not None else None,
            filename="submission.ipynb" if place.number % 4 else "<i>my submission</i>.ipynb",
            sha256=hashlib.sha256(submission_id.encode()).hexdigest(),
            size_bytes=20_000 + place.number % 5000,
        )

    def waiter(self, place: Place) -> Waiter:
        """Who waits for the verdict; nobody for two of three."""
        if place.number % WAITING_EVERY:
            return Waiter()
        return Waiter(f"task-{place.submission_id}", REPLY_QUEUE, REPLY_TASK)

    def shared(self, place: Place) -> _Shared:
        """The evidence of this place and what was judged from it."""
        key = (place.kind, place.attempt, place.number % _VARIANTS)
        if key not in _JUDGED:
            _JUDGED[key] = self._judged(place, random.Random(f"1 {key}"))
        return _JUDGED[key]

    def _judged(self, place: Place, draw: random.Random) -> _Shared:
        marks = {"learner": "mark:learner", "cohort": "mark:cohort", "sha256": "a1" * 32}
        marked = self.submission("mark:submission", place).model_copy(update={"filename": "submission.ipynb"} | marks)
        steps = self._lab.steps
        kind: EvidenceKind
        if place.kind == "rejected":
            kind = "rejection"
            rejection = Rejection(
                run_id="mark:run",
                device="cuda",
                sandbox="docker",
                isolated=True,
                code="archive.no_entry_point",
                feedback="The archive holds no submission.py, submission.ipynb or single .py or .ipynb at its top.",
            )
            document = rejection.model_dump_json()
            facts = SandboxFacts("docker", True, None, None, None, None)
            reason = SubmissionRejected(rejection.code, rejection.feedback)
            verdict = verdicts.rejected(marked, self._lab, steps, reason, facts, Mode.OFFICIAL, run_id="mark:run")
        else:
            evidence = evidence_of(place.kind, place.attempt, "mark:run", draw)
            kind = "measured" if evidence.measurement is not None else "evidence"
            document = evidence.model_dump_json()
            judged = judge(evidence, steps, self.registry)
            verdict = verdicts.compose(marked, self._lab, steps, judged, evidence)
        changes = {"verdict_id": "mark:verdict", "created_at": _WHEN, "signature": _SIGNATURE}
        verdict = verdict.model_copy(update=changes)
        return _Shared(
            kind,
            document,
            verdict,
            canonical(verdict.model_dump(mode="json")).decode(),
            verdict.model_dump_json(),
            summary_of(verdict).model_dump_json(exclude_defaults=True),
        )


@dataclass
class _Rows:
    """Rows of every table that submissions leave behind."""

    by_table: dict[type, list[dict[str, Any]]] = field(default_factory=dict)

    def add(self, maker: Maker, place: Place, at: float) -> None:
        """Adds those of one submission that came at this time, in seconds since 1970."""
        shared, submission_id = maker.shared(place), place.submission_id
        submission = maker.submission(submission_id, place, at - 1.0)
        run_id, verdict_id = uuid.uuid4().hex, uuid.uuid4().hex
        kind, document = shared.evidence(run_id)
        ran, judged = at + 60.0, datetime.fromtimestamp(at + 61.0, UTC)
        values = {
            "verdict_id": json.dumps(verdict_id),
            "submission_id": json.dumps(submission_id),
            "run_id": json.dumps(run_id),
            "learner": json.dumps(place.learner, ensure_ascii=False),
            "cohort": json.dumps(COHORT),
            "sha256": json.dumps(submission.sha256),
            "created_at": json.dumps(judged.isoformat(timespec="microseconds").replace("+00:00", "Z")),
            "created_s": json.dumps(judged.timestamp()),
        }
        # The shared judgement with this submission's own names in it, signed as it stands.
        signature = maker.signer.signature(_filled(shared.canonical, values).encode())
        verdict = shared.verdict
        self._row(
            SubmissionRow,
            **submission.model_dump(exclude={"submitted_at", "steps"}),
            submitted_at=at - 1.0,
            received_at=at,
            steps=[],
            content_key=Content.of(submission).key,
            queue="live",
        )
        self._row(
            RunRow,
            run_id=run_id,
            submission_id=submission_id,
            learner=place.learner,
            purpose="live",
            priority=0,
            state=RunState.DONE.value,
            plan=maker.plan.model_dump(mode="json"),
            fence=2,
            attempts=0,
            not_before=ran,
            created_at=at,
            started_at=ran,
            finished_at=judged.timestamp(),
        )
        self._row(
            EvidenceRow,
            run_id=run_id,
            fence=1,
            kind=kind,
            sha256=hashlib.sha256(document).hexdigest(),
            size_bytes=len(document),
            document=zlib.compress(document, 6),
            created_at=ran,
        )
        self._row(
            VerdictRow,
            verdict_id=verdict_id,
            submission_id=submission_id,
            run_id=run_id,
            status=verdict.status.value,
            mode=verdict.mode.value,
            code=verdict.code,
            score=verdict.score,
            max_score=verdict.max_score,
            current=True,
            document=_filled(shared.signed, values | {"signature": signature.model_dump_json()}),
            summary=_filled(shared.summary, values),
            created_at=judged.timestamp(),
        )
        waiter = maker.waiter(place)
        if waiter.task_id is not None:
            self._row(
                WaiterRow,
                submission_id=submission_id,
                task_id=waiter.task_id,
                reply_queue=waiter.reply_queue,
                reply_task=waiter.reply_task,
                created_at=at,
            )
        checks = {check.id: check.outcome.value for check in verdict.checks}
        said = {"verdict_id": verdict_id, "status": verdict.status.value, "checks": checks}
        for when, event, actor, detail in (
            (at, "accepted", "intake", {"purpose": "live"}),
            (at + 1.0, "run_claimed", "runner", {"fence": 1}),
            (ran, "run_done", "runner", {"kind_of": kind}),
            (ran, "judge_claimed", "judge", {"fence": 2}),
            (judged.timestamp(), "verdict", "judge", said),
        ):
            self._row(
                EventRow, at=when, kind=event, actor=actor, submission_id=submission_id, run_id=run_id, detail=detail
            )

    def _row(self, table: type, **values: Any) -> None:
        self.by_table.setdefault(table, []).append(values)

    def insert(self, store: Store) -> None:
        """Writes them all, one statement for each table, and forgets them."""
        with store.transaction() as connection:
            for table, rows in self.by_table.items():
                connection.execute(insert(table_of(table)), rows)
        self.by_table.clear()
