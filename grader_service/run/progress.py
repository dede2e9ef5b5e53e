"""What a grading tells whoever waits for it, and the time of its stages; the grading itself never prints."""

import time
from typing import Protocol


class Progress(Protocol):
    """Hears about stages and figures as they happen. It raises nothing, and returns at once."""

    def stage(self, name: str, *, key: str = "", limit_s: float | None = None) -> None:
        """A new stage begins; the one before it has ended.

        Args:
            name: what a person reads.
            key: the stage's word in the verdict (`provenance.timings_s`); empty where the stage is not part of a run.
            limit_s: seconds after which it is ended by us; None where none is set.
        """
        ...

    def note(self, text: str) -> None:
        """A line worth reading while the stage runs, such as a block's rates."""
        ...

    def running(self, elapsed_s: float, limit_s: float | None, line: str) -> None:
        """The stage goes on; called every second or two, by another thread than the one that calls `stage`.

        Args:
            elapsed_s: seconds since the stage began.
            limit_s: as in `stage`.
            line: what the learner's code printed last, in one line, safe to show; empty before it printed anything.
        """
        ...


class Silent:
    """Tells nobody."""

    def stage(self, name: str, *, key: str = "", limit_s: float | None = None) -> None:
        """See `Progress.stage`."""

    def note(self, text: str) -> None:
        """See `Progress.note`."""

    def running(self, elapsed_s: float, limit_s: float | None, line: str) -> None:
        """See `Progress.running`."""


class StageClock:
    """Adds up seconds per stage; the stage that is open when a new one starts ends there."""

    def __init__(self, progress: Progress) -> None:
        self.progress = progress
        self._seconds: dict[str, float] = {}
        self._open: tuple[str, float] | None = None

    def start(self, key: str, label: str, *, limit_s: float | None = None) -> None:
        """Ends the open stage and starts another one; see `Progress.stage`."""
        self.stop()
        self._open = (key, time.monotonic())
        self.progress.stage(label, key=key, limit_s=limit_s)

    def stop(self) -> None:
        """Ends the open stage."""
        if self._open is not None:
            key, since = self._open
            self._seconds[key] = self._seconds.get(key, 0.0) + time.monotonic() - since
            self._open = None

    @property
    def seconds(self) -> dict[str, float]:
        """Stage to seconds, rounded to milliseconds."""
        return {key: round(value, 3) for key, value in self._seconds.items()}
