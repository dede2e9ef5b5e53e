"""Quarantined devices that a canary may put back into service, and when the next one is due."""

from dataclasses import dataclass
from datetime import UTC, datetime

from sqlalchemy import ColumnElement, select, update

from grader_service.retry_policy import RetryPolicy
from grader_service.store.clock import db_now
from grader_service.store.devices import QUARANTINED, READY, change_state
from grader_service.store.engine import Store
from grader_service.store.events import record
from grader_service.store.tables import DeviceRow


@dataclass(frozen=True)
class Quarantine:
    """One stay of a device out of service."""

    device_id: str
    reason: str
    fence: int
    """Of the device: what is found about this stay counts while it stands."""
    failures: int
    """Of the device: what it was taken out of service for, and each canary and each relapse since."""
    waited_s: float
    """Seconds since the latest one."""


def quarantine_of(store: Store, device_id: str) -> Quarantine | None:
    """The quarantine of a device; None where it is in none, or one that only an operator ends."""
    asked = select(
        DeviceRow.device_id,
        DeviceRow.reason,
        DeviceRow.fence,
        DeviceRow.canary_tries,
        (db_now() - DeviceRow.canary_from).label("waited_s"),
    ).where(DeviceRow.device_id == device_id, DeviceRow.state == QUARANTINED, DeviceRow.canary_from.is_not(None))
    with store.transaction() as connection:
        found = connection.execute(asked).one_or_none()
    if found is None:
        return None
    return Quarantine(found.device_id, found.reason or "", found.fence, found.canary_tries + 1, found.waited_s)


def passed(store: Store, quarantine: Quarantine, actor: str) -> bool:
    """Puts the device back; False where somebody changed its state meanwhile, which stands."""
    why = f"its canary was graded as expected; it had been quarantined for: {quarantine.reason}"
    with store.transaction() as connection:
        return change_state(
            connection, quarantine.device_id, READY, None, actor, *_same(quarantine), told=why, canary_from=db_now()
        )


def failed(store: Store, quarantine: Quarantine, how: str, policy: RetryPolicy, actor: str) -> bool:
    """Keeps the device where it is, and says when the next one comes and how; False where its state was changed."""
    next_s = policy.wait_s(quarantine.failures + 1)
    at = datetime.now(UTC)
    said = f"its canary failed at {at:%Y-%m-%d %H:%M} UTC, the next one comes {next_s / 60:.0f} min later: {how}"
    same = DeviceRow.device_id == quarantine.device_id, *_same(quarantine)
    changes = {"canary_failed": said, "canary_tries": quarantine.failures, "canary_from": db_now()}
    with store.transaction() as connection:
        done = bool(connection.execute(update(DeviceRow).where(*same).values(**changes)).rowcount)
        if done:
            record(connection, "canary_failed", actor, device=quarantine.device_id, reason=how)
    return done


def _same(quarantine: Quarantine) -> tuple[ColumnElement[bool], ...]:
    """Nobody changed its state meanwhile."""
    return DeviceRow.state == QUARANTINED, DeviceRow.fence == quarantine.fence
