"""Whether this process may keep its state in a folder. Asked at start and by health checks; nothing is ever chowned."""

import os
import pwd
from collections.abc import Iterator
from pathlib import Path

from grader_service.errors import ConfigurationError

_SHARED = ("runs", "runs.lock", "devices")
"""What every grader of a state folder writes to, beside the folder itself."""

_ELSEWHERE = "name another folder with GRADER_STATE_DIR"


def default() -> Path:
    """Where this user's graders keep their state unless GRADER_STATE_DIR says otherwise."""
    if os.geteuid() == 0:
        return Path("/var/lib/grader")
    base = os.environ.get("XDG_STATE_HOME")
    return (Path(base) if base else Path.home() / ".local" / "state") / "grader"


def require_own(state_dir: Path) -> None:
    """Refuses a folder that another user's processes keep their state in, or that cannot be written to.

    Raises:
        ConfigurationError: with the path that does not fit, and the command that mends it.
    """
    if (problem := misfit(state_dir)) is not None:
        raise ConfigurationError(problem)


def misfit(state_dir: Path) -> str | None:
    """What keeps this process from using the folder, with the command that mends it; None when it fits.

    A folder that is not there fits where it can be made. Nothing is written.
    """
    uid = os.geteuid()
    if not os.path.lexists(state_dir):
        parent = next(path for path in state_dir.absolute().parents if os.path.exists(path))  # noqa: PTH110 - False where it may not look
        if _writable(parent):
            return None
        return (
            f"the state folder {state_dir} cannot be made in {parent}, which {_name(uid)} may not write to: "
            f"`install -d -o {uid} -g {os.getegid()} -m 750 {state_dir}` as root makes it; {_ELSEWHERE}"
        )
    if not state_dir.is_dir():
        return f"the state folder {state_dir} is no folder; remove it, or {_ELSEWHERE}"
    return next((found for path in _of(state_dir) if (found := _misfit_of(path, state_dir, uid))), None)


def _of(state_dir: Path) -> Iterator[Path]:
    yield state_dir
    yield from (path for name in _SHARED if (path := state_dir / name).exists())


def _misfit_of(path: Path, state_dir: Path, uid: int) -> str | None:
    owner = path.stat().st_uid
    whose = f"{path} belongs to {_name(owner)} and this process runs as {_name(uid)}"
    new = f"{uid}:{os.getegid()}"
    if uid == 0 and owner != 0:
        # Root may write everywhere; whom the folder belongs to could then open nothing of what it leaves there. What
        # else is below it, such as the service's folder, stays as it is.
        ours = " ".join(str(one) for one in _of(state_dir))
        return (
            f"{whose}, whose files {_name(owner)} could not open: {_ELSEWHERE}, or take it over, where nobody else "
            f"uses it, with `chown {new} {ours}`"
        )
    if _writable(path):
        return None
    if owner == uid:
        return f"{path} cannot be written to: `chmod -R u+rwX {state_dir}`, or mount its file system writable"
    return f"{whose}, which cannot write to it: `chown -R {new} {state_dir}` as root mends it; or {_ELSEWHERE}"


def _writable(path: Path) -> bool:
    wanted = os.R_OK | os.W_OK | (os.X_OK if path.is_dir() else 0)
    return os.access(path, wanted, effective_ids=True)


def _name(uid: int) -> str:
    try:
        return f"{pwd.getpwuid(uid).pw_name} (uid {uid})"
    except KeyError:
        return f"uid {uid}"
