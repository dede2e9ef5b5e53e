"""PostgreSQL's advisory locks of this service, in one place: two that shared a number would shut each other out."""

from enum import IntEnum, unique


@unique
class AdvisoryLock(IntEnum):
    """A number never changes: versions that work beside each other must mean the same."""

    MIGRATE = 728451
    """Whoever migrates holds it."""
    CLAIM = 728452
    """One claim at a time."""
    BACKUP = 728453
    """Whoever makes a backup or removes old ones holds it."""
