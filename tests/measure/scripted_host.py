"""A host that contaminates the blocks that it was told to."""

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass
class ScriptedHost:
    """Answers what it was told to, block by block; then None for ever."""

    reasons: Sequence[str | None] = ()
    blocks: int = field(default=0, init=False)
    """Blocks that began."""

    def begin(self) -> None:
        """See `HostWatch.begin`."""
        self.blocks += 1

    def contamination(self) -> str | None:
        """See `HostWatch.contamination`."""
        return self.reasons[self.blocks - 1] if self.blocks <= len(self.reasons) else None
