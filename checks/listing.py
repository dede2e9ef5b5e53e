"""Lists in feedback, of which only the first things are named."""

from collections.abc import Sequence

MOST_LISTED = 3


def listed(items: Sequence[object]) -> str:
    """Such as `a, b and c`; of more than three things `a, b, c and 2 more`."""
    shown = [str(item) for item in items[:MOST_LISTED]]
    if len(items) > MOST_LISTED:
        return f"{', '.join(shown)} and {len(items) - MOST_LISTED} more"
    return " and ".join(filter(None, (", ".join(shown[:-1]), *shown[-1:])))


def pipeline_named(name: str) -> str:
    """A DALI pipeline by the variable that holds it, as `dali_iter`; one that no variable holds has no name."""
    return f"`{name}`" if name else "your DALI pipeline"
