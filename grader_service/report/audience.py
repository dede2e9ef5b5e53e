"""Who reads what is shown of a verdict."""

from enum import StrEnum


class Audience(StrEnum):
    """Who reads a page or a terminal."""

    LEARNER = "learner"
    STAFF = "staff"
    """With codes, details, provenance, and the seed of the held-out images."""
