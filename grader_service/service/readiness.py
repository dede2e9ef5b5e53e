"""Whether a worker can do its work, looked at in each round of its sweeper.

Health checks of containers read the result in a file (`pulse`); operators, the admin page and metrics read it in the
store (`store.workers`).
"""

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import structlog

from grader_service import state_folder
from grader_service.errors import GraderError, InfrastructureError, StoreUnavailable
from grader_service.host.disk_use import disk_use
from grader_service.service import pulse
from grader_service.signer.signatures import Signer
from grader_service.store import canaries, devices, workers
from grader_service.store.engine import Store

log = structlog.get_logger(__name__)

_LONGEST = 600
DATABASE = "database"
BROKER = "broker"
RESULTS = "results"


@dataclass(frozen=True)
class Requirement:
    """One thing that a worker needs."""

    name: str
    look: Callable[[], object]
    """Raises when it is missing; a `GraderError` says what was found and what to do."""
    after: str | None = None
    """A requirement without which this one need not be looked at."""


def problems(requirements: Sequence[Requirement]) -> dict[str, str]:
    """What is missing, by the name of the requirement; empty where the worker can do its work."""
    found: dict[str, str] = {}
    for requirement in requirements:
        if requirement.after in found:
            continue
        try:
            requirement.look()
        except GraderError as error:
            found[requirement.name] = str(error)[:_LONGEST]
        except Exception as error:  # noqa: BLE001 - whatever fails, the worker lacks it
            found[requirement.name] = f"{type(error).__name__}: {error}"[:_LONGEST]
    return found


def database_requirement(store: Store) -> Requirement:
    """The database answers, with a schema that this version can work with."""
    return Requirement(DATABASE, store.check_schema)


def judging_requirements(state_dir: Path, store: Store, signer: Signer) -> list[Requirement]:
    """What a worker that judges needs: its own state folder, the database, and a signer."""
    folder = Requirement("state folder", lambda: state_folder.require_own(state_dir))
    return [folder, database_requirement(store), Requirement("signer", signer.keys)]


def device_requirement(store: Store, device_id: str, *, canary: bool = False) -> Requirement:
    """The device's steward has not taken it out of service; it may come back by a canary of its runner's."""

    def look() -> None:
        state, reason = devices.state_and_reason(store, device_id)
        if state == devices.QUARANTINED:
            remedy = f"mend that, then `grader devices ready {device_id}`"
            if canary and canaries.quarantine_of(store, device_id) is not None:
                remedy = f"a canary puts it back by itself once it grades again; or {remedy}"
            raise InfrastructureError(f"{device_id} is quarantined: {reason}; {remedy}")

    return Requirement("device", look, after=DATABASE)


class Readiness:
    """Reports whether one worker can do its work, to the store and to files that health checks read.

    Args:
        state_dir: folder of the files that health checks read.
        files: their names.
        requirements: looked at in this order.
        memory: how full each Redis is, by its name; said with the rest.
        folders: where it keeps things beside the state folder, by name; how full their disks are is said as well.
        chores: those of its sweepers that fail, by name; said, too.
    """

    def __init__(
        self,
        identity: workers.Identity,
        store: Store,
        state_dir: Path,
        files: Sequence[str],
        requirements: Sequence[Requirement],
        memory: Callable[[], Mapping[str, float]] = dict,
        folders: Mapping[str, Path] = MappingProxyType({}),
        chores: Callable[[], Mapping[str, workers.Failing]] = dict,
    ) -> None:
        self._identity = identity
        self._store = store
        self._state_dir = state_dir
        self._files = tuple(files)
        self._requirements = tuple(requirements)
        self._memory = memory
        self._folders = {"state": state_dir, **folders}
        self._chores = chores
        self.missing: Mapping[str, str] = {}
        """What was missing in the last look, by the name of the requirement."""

    def look(self) -> None:
        """Looks at everything and says it. A chore of its sweeper."""
        found = problems(self._requirements)
        said = tuple(f"{name}: {what}" for name, what in found.items())
        if found != self.missing:
            self.missing = found
            if said:
                log.error("not_ready", problems=said)
            else:
                log.info("ready_again")
        for file in self._files:
            try:
                pulse.beat(self._state_dir, said, file)
            except OSError as error:  # then health checks see that the file is old
                log.error("pulse_not_written", file=file, error=str(error))  # noqa: TRY400 - no traceback
        if DATABASE not in found:
            with contextlib.suppress(StoreUnavailable):
                used = disk_use(self._folders)
                workers.say(self._store, self._identity, said, self._memory(), used, self._chores())

    def end(self) -> None:
        """The worker ends as it should."""
        with contextlib.suppress(StoreUnavailable):
            workers.forget(self._store, self._identity)


class Host:
    """What a runner knows of the host that it is to begin a run on. Nobody watches this one: runs show if it is fit."""

    def fit(self) -> bool:
        """Whether a run may be begun here, by what is known; asks nobody."""
        return True

    def misfit(self) -> str | None:
        """Looks, after a run could not be begun: why none can be now; None where it was that run's own bad luck."""
        return None
