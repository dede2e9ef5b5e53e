"""The two lists, and why an item of them does or does not count."""

from enum import StrEnum


class Side(StrEnum):
    """Which list an item stands in."""

    WINS = "where_dali_wins"
    LOSES = "where_dali_loses"


class Reason(StrEnum):
    """Why an item does or does not count; stable, for staff."""

    COUNTED = "counted"
    EMPTY = "empty"
    TOO_SHORT = "too_short"
    INJECTION = "injection"
    UNFILLED = "unfilled"
    QUESTION = "question"
    KEYWORDS = "keywords"
    FRAGMENT = "fragment"
    COPIED = "copied"
    DUPLICATE = "duplicate"
    ON_BOTH_SIDES = "on_both_sides"
    NONSENSE = "nonsense"
    VAGUE = "vague"
    UNTRUE = "untrue"
    OFF_TOPIC = "off_topic"
    OTHER_SIDE = "other_side"
    UNREAD = "unread"
    NOT_NEEDED = "not_needed"


Place = tuple[Side, int]
"""Of an entry: its list, and its position there from 1."""
Finding = tuple[Reason, int | None]
"""Why an entry does or does not count, and the number of the entry that it repeats."""
