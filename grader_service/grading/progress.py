"""What a grading tells whoever waits for it; the grading itself never prints."""

from typing import Protocol


class Progress(Protocol):
    """Hears about stages and figures as they happen."""

    def stage(self, name: str) -> None:
        """A new stage begins; the one before it has ended."""
        ...

    def note(self, text: str) -> None:
        """A line worth reading while the stage runs, such as a block's rates."""
        ...


class Silent:
    """Tells nobody."""

    def stage(self, name: str) -> None:
        """See `Progress.stage`."""

    def note(self, text: str) -> None:
        """See `Progress.note`."""
