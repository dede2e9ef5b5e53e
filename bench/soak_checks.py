"""What a soak must have left behind, and how long the service took to come back after each kind of fault."""

import base64
import json
import re
import time
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from servers import Servers
from soak_faults import Struck
from sqlalchemy import func, select

from grader_service.store.attempts import MEASURED, attempt_number
from grader_service.store.engine import Store
from grader_service.store.tables import EventRow, EvidenceRow, OutboxRow, RunRow, RunState, SubmissionRow, VerdictRow

REPLIES = "lab-platform"
"""The queue in which answers lie as messages."""
_SHOWN = 5
_TIDY_S = 30.0
_OWNER = re.compile(r"^\S+/\S+(?= stopped)")


@dataclass(frozen=True)
class Found:
    """What the database holds."""

    accepted: set[str]
    verdicts: dict[str, list[Mapping[str, Any]]]
    """Of each submission, in force or not."""
    runs: list[Mapping[str, Any]]
    measured: dict[str, list[str]]
    """Submissions of each learner that were measured, in that order."""
    events: Counter[str]
    failures: Counter[str]
    """Errors for which a run was tried again or dead-lettered."""


def look(store: Store) -> Found:
    """Reads all of it."""
    verdicts: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    measured: dict[str, list[str]] = defaultdict(list)
    with store.transaction() as connection:
        accepted = set(connection.execute(select(SubmissionRow.submission_id)).scalars())
        for row in connection.execute(select(VerdictRow.__table__)).mappings():
            verdicts[row["submission_id"]].append(row)
        runs = list(connection.execute(select(RunRow.__table__)).mappings())
        of_runs = (
            select(SubmissionRow.learner, SubmissionRow.submission_id)
            .join(RunRow, RunRow.submission_id == SubmissionRow.submission_id)
            .join(EvidenceRow, EvidenceRow.run_id == RunRow.run_id)
            .where(EvidenceRow.kind == MEASURED)
            .order_by(EvidenceRow.created_at)
        )
        for row in connection.execute(of_runs):
            measured[row.learner].append(row.submission_id)
        events = Counter(connection.execute(select(EventRow.kind)).scalars())
        failed = select(EventRow.detail).where(EventRow.kind.in_(("failed_by_us", "needs_attention", "given_back")))
        details = connection.execute(failed).scalars().all()
    failures = Counter(_OWNER.sub("a worker", str(detail.get("error") or detail.get("why")))[:80] for detail in details)
    return Found(accepted, dict(verdicts), runs, dict(measured), events, failures)


def undelivered(store: Store) -> int:
    """Answers that were not sent yet."""
    with store.transaction() as connection:
        undelivered_messages = select(func.count()).select_from(OutboxRow).where(OutboxRow.delivered_at.is_(None))
        return connection.execute(undelivered_messages).scalar_one()


def open_runs(store: Store) -> list[str]:
    """Submissions whose runs wait or run; not those that are done or dead-lettered."""
    over = (RunState.DONE.value, RunState.NEEDS_ATTENTION.value)
    with store.transaction() as connection:
        return list(connection.execute(select(RunRow.submission_id).where(RunRow.state.not_in(over))).scalars())


def check(made: Servers, store: Store, ids: Collection[str], poison: Collection[str]) -> list[str]:
    """Every promise, against the database, both Redis and the disks; what is wrong.

    Args:
        made: servers, still running.
        store: their database.
        ids: of all submissions that were posted.
        poison: those of them that kill whoever runs them, and must have been dead-lettered.
    """
    found = look(store)
    wanted = set(ids) - set(poison)
    wrong = [
        *_some("never accepted", set(ids) - found.accepted),
        *_some("without a verdict", wanted - found.verdicts.keys()),
        *_some("with more than one verdict", [name for name, rows in found.verdicts.items() if len(rows) != 1]),
        *_some("kills its runner and got a verdict", set(poison) & found.verdicts.keys()),
        *_runs(found, poison),
        *_some("runs still open", open_runs(store)),
        *charged(store, found),
        *_answers(made, found, wanted),
        *_left(made),
    ]
    if waiting := undelivered(store):
        wrong.append(f"answers not delivered: {waiting}")
    for name in sorted(wanted - found.verdicts.keys())[:_SHOWN]:
        print(f"{name}: {story(store, name)}")
    print("events: " + _counted(found.events))
    print("tried again: " + (_counted(found.failures) or "nothing"))
    tries = Counter(str(run["attempts"]) for run in found.runs)
    print("runs by the tries that failed through us: " + _counted(tries))
    return wrong


def _runs(found: Found, poison: Collection[str]) -> list[str]:
    states = {run["submission_id"]: run["state"] for run in found.runs}
    dead_lettered = {name for name, state in states.items() if state == RunState.NEEDS_ATTENTION.value}
    count = Counter(run["submission_id"] for run in found.runs)
    return [
        *_some("with more than one run", [name for name, runs in count.items() if runs != 1]),
        *_some("dead-lettered, and innocent", dead_lettered - set(poison)),
        *_some("kills its runner and was not dead-lettered", set(poison) - dead_lettered),
    ]


def charged(store: Store, found: Found) -> list[str]:
    """Who paid for faults of ours: a learner's attempts are what was measured, counted from 1 without a gap."""
    wrong = []
    for learner, submissions in found.measured.items():
        counted = [attempt_number(store, name) for name in submissions]
        verdicts = [json.loads(row["document"]) for name in submissions for row in found.verdicts.get(name, ())]
        judged = [verdict["measurement"]["attempt"] for verdict in verdicts]
        if not counted == judged == list(range(1, len(submissions) + 1)):
            wrong.append(f"attempts of {learner}: {counted} are counted, {judged} stand in the verdicts")
    return wrong


def _answers(made: Servers, found: Found, wanted: Collection[str]) -> list[str]:
    """The result of each task, and the messages in the queue that was named, hold the verdict in force."""
    backend = made.answers().backend
    results = {name: backend.get_task_meta(f"task-{name}") for name in sorted(wanted)}
    replied: dict[str, set[str]] = defaultdict(set)
    for raw in made.results.client().lrange(REPLIES, 0, -1):
        _, arguments, _ = json.loads(base64.b64decode(json.loads(raw)["body"]))
        replied[arguments["verdict"]["submission_id"]].add(arguments["verdict"]["verdict_id"])
    in_force = {name: rows[0]["verdict_id"] for name, rows in found.verdicts.items()}
    told = {name: meta["result"]["verdict_id"] for name, meta in results.items() if meta["status"] == "SUCCESS"}
    return [
        *_some("tasks without a result", results.keys() - told.keys()),
        *_some("with another verdict as the task's result", [name for name in told if told[name] != in_force[name]]),
        *_some("without a message in the queue that was named", set(wanted) - replied.keys()),
        *_some("with another verdict in that queue", [name for name in replied if replied[name] != {in_force[name]}]),
    ]


def story(store: Store, submission_id: str) -> str:
    """What happened to one submission, in order, with the seconds since it was accepted."""
    columns = EventRow.kind, EventRow.at, EventRow.detail
    statement = select(*columns).where(EventRow.submission_id == submission_id).order_by(EventRow.id)
    with store.transaction() as connection:
        rows = connection.execute(statement).all()
    return "; ".join(
        f"{row.at - rows[0].at:.0f} s {row.kind} {row.detail.get('error') or row.detail.get('why') or ''}".strip()
        for row in rows
    )


def _left(made: Servers) -> list[str]:
    """Nothing lies in hands, queues or folders, or what does is removed within half a minute."""
    deadline = time.monotonic() + _TIDY_S
    while (found := _lying(made)) and time.monotonic() < deadline:
        time.sleep(1.0)
    return found


def _lying(made: Servers) -> list[str]:
    broker = made.redis.client()
    queues = [key.decode() for key in broker.keys("*") if key.startswith((b"live", b"regrade", b"grader:intake:work"))]
    state = made.folder
    folders = [*state.glob("runs/*"), *state.glob(".*"), *state.rglob("arriving-*"), *state.rglob("ballast")]
    return [
        *_some("messages left in", queues),
        *_some("left on the disk", [str(path.relative_to(state)) for path in folders]),
    ]


def _some(what: str, names: Collection[str]) -> list[str]:
    return [f"{what}: {sorted(names)[:_SHOWN]}, {len(names)} in all"] if names else []


def _counted(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in sorted(counts.items()))


_STEPS = ("accepted", "run_done", "verdict")


def recoveries(store: Store, struck: Sequence[Struck]) -> dict[str, list[float]]:
    """By kind of fault: seconds from its end until something was accepted, something was run, and something was judged.

    What came meanwhile counts: other faults, and work that had piled up.
    """
    with store.transaction() as connection:
        rows = connection.execute(select(EventRow.kind, EventRow.at).where(EventRow.kind.in_(_STEPS))).all()
    steps = [sorted(row.at for row in rows if row.kind == step) for step in _STEPS]
    found: dict[str, list[float]] = defaultdict(list)
    for one in struck:
        following = [next((at for at in times if at >= one.ended), one.ended) for times in steps]
        found[one.name].append(max(following) - one.ended)
    return found
