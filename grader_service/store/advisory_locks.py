"""PostgreSQL's advisory locks of this service, in one place: two that shared a number would shut each other out."""

from enum import IntEnum, unique


@unique
class AdvisoryLock(IntEnum):
    """A number never changes: versions that work beside each other must mean the same."""

    MIGRATE = 728451
    """Held while the schema is migrated."""
    CLAIM = 728452
    """One claim at a time."""
    BACKUP = 728453
    """Held while a backup is made, or old ones are removed."""
