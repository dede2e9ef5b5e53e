"""GPUs and slots as the store knows them: which host has them, whether they may be used, and why not."""

from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, case, null, select, update

from grader_service.store.clock import db_now
from grader_service.store.engine import Store
from grader_service.store.events import record
from grader_service.store.tables import DeviceRow, RunRow, RunState, insert_into, written

_SEEN_S = 120.0
_FORGIVEN_S = 86_400.0
"""A device that is out of service again within this time waits longer for its canary."""
READY, QUARANTINED, DRAINING = "ready", "quarantined", "draining"


@dataclass(frozen=True)
class Device:
    """One GPU or slot."""

    device_id: str
    host: str
    model: str
    state: str
    reason: str | None
    seen_s: float
    """Seconds since its worker last said that it is there."""
    run_id: str | None = None
    """The run that holds it."""


def see(store: Store, device_id: str, host: str, model: str) -> str:
    """Registers a device or says that it is still there; returns its state, which operators and canaries improve."""
    with store.transaction() as connection:
        values = {"device_id": device_id, "host": host, "model": model, "state": READY, "fence": 0, "seen_at": db_now()}
        state = connection.execute(
            insert_into(connection, DeviceRow)
            .values(**values)
            .on_conflict_do_update(
                index_elements=["device_id"], set_={"host": host, "model": model, "seen_at": db_now()}
            )
            .returning(DeviceRow.state)
        ).scalar_one()
        return str(state)


def quarantine(store: Store, device_id: str, reason: str, actor: str) -> None:
    """Takes a device out of service until a canary or an operator puts it back; a drained one waits for an operator."""
    relapse = DeviceRow.canary_from > db_now() - _FORGIVEN_S
    changes: dict[str, Any] = {
        "canary_from": case(
            (DeviceRow.state == READY, db_now()), (DeviceRow.state == DRAINING, null()), else_=DeviceRow.canary_from
        ),
        "canary_tries": case((relapse, DeviceRow.canary_tries + 1), else_=0),
    }
    with store.transaction() as connection:
        change_state(connection, device_id, QUARANTINED, reason, actor, **changes)


def set_state(store: Store, device_id: str, state: str, reason: str | None, actor: str) -> bool:
    """An operator's decision; False when there is no such device."""
    with store.transaction() as connection:
        return change_state(connection, device_id, state, reason, actor)


def set_state_of_host(store: Store, host: str, state: str, reason: str | None, actor: str) -> list[str]:
    """The same for a host's devices: `DRAINING` for those in service, `READY` for those that were drained.

    One that its steward took out of service stays there: somebody has to look at it, by name.

    Returns:
        Those that changed.
    """
    before = {DRAINING: READY, READY: DRAINING}[state]
    with store.transaction() as connection:
        names = connection.execute(
            select(DeviceRow.device_id)
            .where(DeviceRow.host == host, DeviceRow.state == before)
            .order_by(DeviceRow.device_id)
            .with_for_update()
        ).scalars()
        return [name for name in names.all() if change_state(connection, name, state, reason, actor)]


def devices(store: Store) -> list[Device]:
    """Every device, by host."""
    statement = select(
        DeviceRow.device_id,
        DeviceRow.host,
        DeviceRow.model,
        DeviceRow.state,
        DeviceRow.reason,
        DeviceRow.canary_failed,
        (db_now() - DeviceRow.seen_at).label("seen_s"),
    ).order_by(DeviceRow.host, DeviceRow.device_id)
    running = select(RunRow.lease_owner, RunRow.run_id).where(RunRow.state == written(RunState.RUNNING))
    with store.transaction() as connection:
        runs = {device_of(row.lease_owner or ""): row.run_id for row in connection.execute(running)}
        return [
            Device(
                row.device_id,
                row.host,
                row.model,
                row.state,
                _why(row.reason, row.canary_failed),
                row.seen_s,
                run_id=runs.get(row.device_id),
            )
            for row in connection.execute(statement)
        ]


def host_of(owner: str) -> str:
    """The host of a runner, whose leases are held by `host/device/instance`."""
    return owner.partition("/")[0]


def device_of(owner: str) -> str:
    """Its device."""
    parts = owner.split("/")
    return parts[1] if len(parts) > 1 else "unknown"


def state_and_reason(store: Store, device_id: str) -> tuple[str | None, str | None]:
    """State of this device and why, as its steward or an operator left it; nothing when the store does not know it."""
    asked = select(DeviceRow.state, DeviceRow.reason, DeviceRow.canary_failed).where(DeviceRow.device_id == device_id)
    with store.transaction() as connection:
        found = connection.execute(asked).one_or_none()
    return (None, None) if found is None else (found.state, _why(found.reason, found.canary_failed))


def quarantined(connection: Connection) -> set[str]:
    """Ids of the devices that their stewards took out of service."""
    return set(connection.execute(select(DeviceRow.device_id).where(DeviceRow.state == QUARANTINED)).scalars())


def ready(store: Store) -> int:
    """How many devices may be counted on: ready, and heard of lately."""
    return sum(device.state == READY and device.seen_s < _SEEN_S for device in devices(store))


def _why(reason: str | None, canary_failed: str | None) -> str | None:
    """Why it is not in service, and how its canary failed."""
    return "; ".join(filter(None, (reason, canary_failed))) or None


def change_state(
    connection: Connection,
    device_id: str,
    state: str,
    reason: str | None,
    actor: str,
    *where: ColumnElement[bool],
    told: str | None = None,
    **changes: Any,
) -> bool:
    """Changes the state of a device, and says so in the audit trail; False where there is none like it.

    Args:
        where: what must hold of it besides.
        told: why, for the audit trail; the reason if absent.
        changes: other columns.
    """
    changes |= {"state": state, "reason": reason, "canary_failed": None, "fence": DeviceRow.fence + 1}
    done = connection.execute(update(DeviceRow).where(DeviceRow.device_id == device_id, *where).values(**changes))
    if done.rowcount:
        record(connection, f"device_{state}", actor, device=device_id, reason=told or reason)
    return bool(done.rowcount)
