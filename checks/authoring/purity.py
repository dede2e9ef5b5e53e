"""Watches a process while a check judges: files, network, processes, clocks, chance and the environment.

Python's own audit hook sees what goes to the system; clocks and chance, which raise no audit event, are seen by a
profile function. Nothing is prevented: what was seen is reported, since a judge must give the same result anywhere.
"""

import _thread
import os
import random
import sys
import time
import types
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, datetime
from pathlib import Path
from typing import Any

_EVENTS = {
    "open": "opens a file",
    "os.": "uses the system",
    "subprocess.": "starts a process",
    "shutil.": "changes files",
    "tempfile.": "makes temporary files",
    "glob.": "lists files",
    **dict.fromkeys(("socket.", "urllib.", "http.", "smtplib.", "ftplib."), "uses the network"),
    "sqlite3.": "uses a database",
    "ctypes.": "calls native code",
    "mmap.": "maps memory",
    "fcntl.": "locks files",
    "signal.": "sets signals",
    "builtins.input": "reads standard input",
}
_CLOCKS = (
    "time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns", "process_time",
    "process_time_ns", "thread_time", "thread_time_ns", "localtime", "ctime",
)  # fmt: skip
_CALLS: dict[object, str] = {
    **{getattr(time, name): f"reads a clock (time.{name})" for name in _CLOCKS},
    os.urandom: "draws at random (os.urandom)",
    time.sleep: "sleeps (time.sleep)",
    _thread.start_new_thread: "starts a thread (threading)",
    print: "prints (print)",
}
_NOW = frozenset({"now", "utcnow", "today"})
_SHARED_CHANCE = getattr(random.random, "__self__", None)
"""The generator behind the functions of `random`."""
_ENVIRONMENT = type(os.environ).__getitem__.__code__
_OWN = Path(__file__).resolve().parents[1]
"""The grader's part of a check, which reads its tables when it first needs them."""
_MOST = 20


class Watch:
    """What was seen while it was on. One per process: an audit hook cannot be taken away."""

    def __init__(self, own_code: tuple[Path, ...]) -> None:
        """Hooks into this process.

        Args:
            own_code: folders whose files may be read while a check judges for the first time, beside Python's own.
        """
        self.seen: dict[str, None] = {}
        self._on = False
        self._strict = False
        roots = {*own_code, _OWN, Path(sys.prefix), Path(sys.base_prefix), Path(os.__file__).parent}
        self._readable = tuple({str(root.resolve()) for root in roots})
        sys.addaudithook(self._audit)

    @contextmanager
    def on(self, *, strict: bool, closely: bool) -> Iterator[None]:
        """Watches what is done inside.

        Args:
            strict: otherwise code and data of installed packages may be read, as a check does the first time.
            closely: clocks and chance too, which makes the check many times slower.
        """
        self._strict = strict
        before = sys.getprofile()
        if closely:
            sys.setprofile(self._profile)
        self._on = True
        try:
            yield
        finally:
            self._on = False
            sys.setprofile(before)

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self._on:
            return
        what = next((text for start, text in _EVENTS.items() if event.startswith(start)), None)
        if what is None or (not self._strict and self._reads_code(event, arguments)):
            return
        self._note(f"{what} ({event}{_shown(arguments)})")

    def _reads_code(self, event: str, arguments: tuple[Any, ...]) -> bool:
        if event in ("os.listdir", "os.scandir"):
            return self._is_code(arguments[0])
        if event != "open":
            return False
        mode = arguments[1] if len(arguments) > 1 else "r"
        return (mode is None or not set(str(mode)) & set("wax+")) and self._is_code(arguments[0])

    def _is_code(self, path: object) -> bool:
        if isinstance(path, bytes):
            path = os.fsdecode(path)
        if not isinstance(path, str):
            return False
        whole = os.path.realpath(path)
        return any(whole.startswith(f"{root}{os.sep}") or whole == root for root in self._readable)

    def _profile(self, frame: types.FrameType, event: str, argument: Any) -> None:
        if not self._on:
            return
        if event == "call":
            if frame.f_code is _ENVIRONMENT:
                self._note("reads the environment (os.environ)")
            return
        if event != "c_call":
            return
        owner = getattr(argument, "__self__", None)
        if isinstance(owner, types.ModuleType):
            if argument in _CALLS:
                self._note(_CALLS[argument])
        elif isinstance(owner, type) and argument.__name__ in _NOW and issubclass(owner, date):
            self._note(f"reads a clock ({datetime.__name__}.{argument.__name__})")
        elif owner is _SHARED_CHANCE:
            self._note(f"draws at random (random.{argument.__name__}); a random.Random(seed) of its own is allowed")

    def _note(self, text: str) -> None:
        if len(self.seen) < _MOST:
            self.seen[text] = None


def _shown(arguments: tuple[Any, ...]) -> str:
    first = arguments[0] if arguments else None
    return f" {str(first)[:120]!r}" if isinstance(first, (str, int)) else ""
