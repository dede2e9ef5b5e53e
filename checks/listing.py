"""Lists in feedback, of which only the first things are named."""

from collections.abc import Sequence

MOST_LISTED = 3


def listed(items: Sequence[object]) -> str:
    """Such as `a, b and c`; of more than three things `a, b, c and 2 more`."""
    shown = [str(item) for item in items[:MOST_LISTED]]
    if len(items) > MOST_LISTED:
        return f"{', '.join(shown)} and {len(items) - MOST_LISTED} more"
    return " and ".join(filter(None, (", ".join(shown[:-1]), *shown[-1:])))
