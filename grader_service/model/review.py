"""What people decided about answers of checks, and what they see before they decide."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field

MOST_SEEN = 512 * 1024
"""Characters of an observation that are kept for a person; of a longer one none are."""


@dataclass(frozen=True)
class Decision:
    """What a person decided about one subject."""

    accepted: bool
    by: str
    at: float
    """Seconds since 1970."""
    reason: str


@dataclass(frozen=True)
class Reviews:
    """Of one submission: goes into its judging with what was decided, and comes out with what is to be decided."""

    decided: Mapping[str, Decision] = field(default_factory=dict)
    """By subject."""
    seen: dict[str, str] = field(default_factory=dict)
    """By subject: what the check saw, as JSON in ASCII."""


def seen_text(observation: Mapping[str, object]) -> str:
    """An observation as it is kept: JSON in ASCII, the same text for the same values.

    Raises:
        ValueError: a number is none, or infinite.
    """
    return json.dumps(observation, sort_keys=True, separators=(",", ":"), allow_nan=False, default=str)


def subject_of(check_id: str, params: Mapping[str, object], seen: str) -> str:
    """Digest of what a decision is about.

    Args:
        check_id: of the check, whatever its version.
        params: the lab's, for this check.
        seen: as `seen_text` has it.
    """
    return hashlib.sha256(seen_text({"check": check_id, "params": params, "seen": seen}).encode()).hexdigest()
