"""Names the stages of a run and times them by the host's monotonic clock."""

import time

from grader_service.run.progress import Progress


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
