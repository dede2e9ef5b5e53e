"""Workers as the store knows them: whether each can do its work, why not, and when it last said so."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypedDict

from sqlalchemy import ColumnElement, and_, bindparam, delete, func, or_, select

from grader_service.model.base import neutralise
from grader_service.store import devices
from grader_service.store.clock import db_now
from grader_service.store.engine import Store
from grader_service.store.tables import DeviceRow, RunRow, SubmissionRow, WorkerRow, insert_into, table_of

SILENT_S = 60.0
"""A worker that has not spoken for this long is taken for gone; each speaks every few seconds."""
_FORGOTTEN_S = 86_400.0
"""One that was killed, and whose place nobody took, stands in the list for a day."""
FAILING_S = 60.0
"""A chore that has failed for this long is broken; a single failure may be a moment's."""
RUN, JUDGE, REGRADE = "run", "judge", "regrade"
_NONE: Mapping[str, Any] = MappingProxyType({})


class Failing(TypedDict):
    """A chore of a sweeper that failed the last time, or does not end."""

    for_s: float
    """Seconds from its first failure in a row to its last one, or until now where it does not end."""
    error: str
    """Of the last one."""


EVERY_LAB = "*"
"""In place of an id: a worker that takes no graded run at all, of no lab."""


@dataclass(frozen=True)
class Identity:
    """A worker by its place, such as the runner of a device or the judge of a host: a successor has the same name."""

    role: str
    host: str
    device_id: str | None = None
    labs_left: Collection[str] = ()
    """Ids of labs whose runs it leaves to others."""

    @property
    def worker_id(self) -> str:
        """`run/DEVICE`, `judge/HOST` or `regrade/HOST`."""
        return f"{self.role}/{self.device_id or self.host}"


@dataclass(frozen=True)
class Worker:
    """What a worker said last; see `WorkerRow`."""

    worker_id: str
    role: str
    host: str
    ready: bool
    reason: str | None
    device_id: str | None
    seen_s: float
    """Seconds since then."""
    memory: Mapping[str, float]
    disk: Mapping[str, float]
    chores: Mapping[str, Failing]

    @property
    def state(self) -> str:
        """`ready`, `not_ready` or `silent`."""
        if self.seen_s > SILENT_S:
            return "silent"
        return "ready" if self.ready else "not_ready"


def say(
    store: Store,
    identity: Identity,
    problems: Sequence[str],
    memory: Mapping[str, float] = _NONE,
    disk: Mapping[str, float] = _NONE,
    chores: Mapping[str, Failing] = _NONE,
) -> None:
    """A worker says that it is there, and what keeps it from working: nothing, where it is ready.

    Args:
        problems: what is missing, and what mends it.
        memory, disk, chores: as in `WorkerRow`.
    """
    said = {
        "ready": not problems,
        "reason": neutralise("; ".join(problems)[:4000]) or None,
        "host": identity.host,
        "labs_left": "".join(f" {lab} " for lab in sorted(identity.labs_left)),
        "memory": dict(memory),
        "disk": dict(disk),
        "chores": {
            name: Failing(for_s=failing["for_s"], error=neutralise(failing["error"]))
            for name, failing in chores.items()
        },
        "seen_at": db_now(),
    }
    who = {"worker_id": identity.worker_id, "role": identity.role, "device_id": identity.device_id}
    with store.transaction() as connection:
        connection.execute(
            insert_into(connection, WorkerRow)
            .values(**who, **said)
            .on_conflict_do_update(index_elements=["worker_id"], set_=said)
        )
        connection.execute(delete(WorkerRow).where(WorkerRow.seen_at < db_now() - _FORGOTTEN_S))


def forget(store: Store, identity: Identity) -> None:
    """A worker ends as it should: nobody need look for it."""
    with store.transaction() as connection:
        connection.execute(delete(WorkerRow).where(WorkerRow.worker_id == identity.worker_id))


def workers(store: Store) -> list[Worker]:
    """Every worker, by role."""
    statement = select(
        WorkerRow.worker_id,
        WorkerRow.role,
        WorkerRow.host,
        WorkerRow.ready,
        WorkerRow.reason,
        WorkerRow.device_id,
        WorkerRow.memory,
        WorkerRow.disk,
        WorkerRow.chores,
        (db_now() - WorkerRow.seen_at).label("seen_s"),
    ).order_by(WorkerRow.role, WorkerRow.worker_id)
    with store.transaction() as connection:
        return [Worker(**row) for row in connection.execute(statement).mappings()]


def heard(said: Sequence[Worker]) -> list[Worker]:
    """Those that are not silent: what a silent one reported may not be true any more."""
    return [worker for worker in said if worker.state != "silent"]


def newest_memory(said: Sequence[Worker]) -> dict[str, float]:
    """How much of its limit each Redis uses, by name, as the worker said that spoke last of it."""
    found: dict[str, float] = {}
    for worker in sorted(heard(said), key=lambda one: -one.seen_s):
        found |= worker.memory
    return found


def out(known: Sequence[devices.Device], said: Sequence[Worker]) -> dict[str, bool]:
    """Whether nobody can use a device although no operator drained it, by its id.

    It is quarantined, or its runner is not ready or silent. A runner that ended as it should left it for others.
    """
    found = {worker.device_id: worker.state != "ready" for worker in said if worker.device_id is not None}
    for device in known:
        unusable = device.state == devices.QUARANTINED or found.get(device.device_id, False)
        found[device.device_id] = unusable and device.state != devices.DRAINING
    return found


def tried_here() -> ColumnElement[bool]:
    """Whether a run failed last where its claimer is, and another worker that could take it is ready elsewhere.

    On its host where another host has a ready worker, else on its device. Where there is no other, no run waits for it.
    The parameters `host` and `device` are the claimer's.
    """
    run = table_of(RunRow).c
    worker, place, submission = table_of(WorkerRow).c, table_of(DeviceRow).c, table_of(SubmissionRow).c
    able = (
        select(worker.worker_id)
        .where(
            worker.ready,
            worker.seen_at > db_now() - SILENT_S,
            place.device_id == worker.device_id,
            place.state == devices.READY,
            submission.submission_id == run.submission_id,
            # Each lab stands between spaces, which no id has in it.
            func.replace(worker.labs_left, " " + submission.lab + " ", "") == worker.labs_left,
            func.replace(worker.labs_left, f" {EVERY_LAB} ", "") == worker.labs_left,
        )
        .correlate(table_of(RunRow))
    )
    return or_(
        and_(run.failed_host == bindparam("host"), able.where(worker.host != bindparam("host")).exists()),
        and_(run.failed_device == bindparam("device"), able.where(worker.device_id != bindparam("device")).exists()),
    )
