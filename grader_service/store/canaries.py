"""Quarantined devices that a canary may put back into service, and when the next one is due."""

from dataclasses import dataclass
from datetime import UTC, datetime

from sqlalchemy import ColumnElement, select, update

from grader_service.store.clock import db_now
from grader_service.store.devices import QUARANTINED, READY, change_state
from grader_service.store.engine import Store
from grader_service.store.events import record
from grader_service.store.tables import DeviceRow

MOST_S = 4 * 3600.0
"""The longest wait for a canary."""
_MOST_DOUBLINGS = 20


@dataclass(frozen=True)
class Quarantine:
    """One stay of a device out of service."""

    device_id: str
    reason: str
    fence: int
    """Of the device: what is found about this stay counts while it stands."""
    tries: int
    waited_s: float

    def wait_s(self, first_s: float, *, more: int = 0) -> float:
        """Seconds from the beginning of the wait to the next canary; `more` failures from now on."""
        return float(min(first_s * 2 ** min(self.tries + more, _MOST_DOUBLINGS), MOST_S))


def quarantine_of(store: Store, device_id: str) -> Quarantine | None:
    """The quarantine of a device; None where it is in none, or one that only an operator ends."""
    asked = select(
        DeviceRow.device_id,
        DeviceRow.reason,
        DeviceRow.fence,
        DeviceRow.canary_tries.label("tries"),
        (db_now() - DeviceRow.canary_from).label("waited_s"),
    ).where(DeviceRow.device_id == device_id, DeviceRow.state == QUARANTINED, DeviceRow.canary_from.is_not(None))
    with store.transaction() as connection:
        found = connection.execute(asked).one_or_none()
    if found is None:
        return None
    return Quarantine(found.device_id, found.reason or "", found.fence, found.tries, found.waited_s)


def passed(store: Store, quarantine: Quarantine, actor: str) -> bool:
    """Puts the device back; False where somebody changed its state meanwhile, which stands."""
    why = f"its canary was graded as expected; it had been quarantined for: {quarantine.reason}"
    with store.transaction() as connection:
        return change_state(
            connection, quarantine.device_id, READY, None, actor, *_same(quarantine), told=why, canary_from=db_now()
        )


def failed(store: Store, quarantine: Quarantine, how: str, first_s: float, actor: str) -> bool:
    """Keeps the device where it is, says when and how, and doubles the wait; False where its state was changed."""
    next_s = quarantine.wait_s(first_s, more=1)
    at = datetime.now(UTC)
    said = f"its canary failed at {at:%Y-%m-%d %H:%M} UTC, the next one comes {next_s / 60:.0f} min later: {how}"
    same = DeviceRow.device_id == quarantine.device_id, *_same(quarantine)
    changes = {"canary_failed": said, "canary_tries": quarantine.tries + 1, "canary_from": db_now()}
    with store.transaction() as connection:
        done = bool(connection.execute(update(DeviceRow).where(*same).values(**changes)).rowcount)
        if done:
            record(connection, "canary_failed", actor, device=quarantine.device_id, reason=how)
    return done


def _same(quarantine: Quarantine) -> tuple[ColumnElement[bool], ...]:
    """Nobody changed its state meanwhile."""
    return DeviceRow.state == QUARANTINED, DeviceRow.fence == quarantine.fence
