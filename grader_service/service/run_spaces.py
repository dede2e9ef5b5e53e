"""Tries out on a runner's host what every run begins with: state folder, engine, lab image, and a run space."""

import multiprocessing
import secrets
import time
from collections.abc import Callable
from pathlib import Path

from grader_service import state_folder
from grader_service.errors import Outdated
from grader_service.service.readiness import Host, Requirement, problems
from sandbox.api import SandboxRunner, SpaceLimits

RUN_SPACE = "run space"
_SMALL = SpaceLimits(workspace_mib=1, workspace_inodes=100, shm_mib=1)
_EVERY_S = 15.0
"""While all is well: a space is folders and volumes, and making them every few seconds for ever would be waste."""


def try_one(sandbox: SandboxRunner, state_dir: Path) -> None:
    """Makes a run space and removes it.

    Raises:
        ConfigurationError: the state folder is another user's.
        SandboxUnavailable: no run can be begun here; the message says what is missing.
    """
    state_folder.require_own(state_dir)
    sandbox.look()
    with sandbox.open_run(f"trial-{secrets.token_hex(8)}", _SMALL):
        pass


class HostFitness:
    """Whether a run can be begun on this host, in memory that a runner shares with its child; at first it cannot."""

    def __init__(self) -> None:
        self._fit = multiprocessing.RawValue("b", 0)

    @property
    def fit(self) -> bool:
        """By the last look of either."""
        return bool(self._fit.value)

    def doubt(self) -> None:
        """No run space can be made."""
        self._fit.value = 0

    def trust(self) -> None:
        """One was made."""
        self._fit.value = 1


class RunSpaceTrial:
    """Tries a run space now and then while nothing runs, and at once after a failure; else the last result holds.

    Nothing is tried beside a run: that shows by itself that it could be begun, and it is measured.

    Args:
        fitness: what was found last, by the runner or its child.
        idle: whether no run is in hand.
        every_s: seconds between two looks while all is well.
        outdated: called where only a worker that is started anew can begin runs here.
    """

    def __init__(
        self,
        sandbox: SandboxRunner,
        state_dir: Path,
        fitness: HostFitness,
        idle: Callable[[], bool],
        *,
        every_s: float = _EVERY_S,
        outdated: Callable[[], object] = bool,
    ) -> None:
        self._sandbox = sandbox
        self._state_dir = state_dir
        self._fitness = fitness
        self._idle = idle
        self._every_s = every_s
        self._outdated = outdated
        self._next = 0.0

    def look(self) -> None:
        """For `readiness.Requirement`."""
        if self._fitness.fit and not (self._idle() and time.monotonic() >= self._next):
            return
        try:
            try_one(self._sandbox, self._state_dir)
        except Exception as error:
            self._fitness.doubt()
            if isinstance(error, Outdated):
                self._outdated()
            raise
        self._fitness.trust()
        self._next = time.monotonic() + self._every_s


class WatchedHost(Host):
    """The host of a runner's child, by the fitness that it shares with its parent."""

    def __init__(self, fitness: HostFitness, sandbox: SandboxRunner, state_dir: Path) -> None:
        self._fitness = fitness
        self._requirement = Requirement(RUN_SPACE, lambda: try_one(sandbox, state_dir))

    def fit(self) -> bool:
        """See `Host.fit`."""
        return self._fitness.fit

    def misfit(self) -> str | None:
        """See `Host.misfit`; nothing is begun here from then on before the parent has made a run space."""
        found = problems([self._requirement]).get(RUN_SPACE)
        if found is not None:
            self._fitness.doubt()
        return found
