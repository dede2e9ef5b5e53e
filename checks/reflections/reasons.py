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
    FILLER = "filler"
    QUESTION = "question"
    KEYWORDS = "keywords"
    NONSENSE = "nonsense"
    CONTRADICTION = "contradiction"
    VAGUE = "vague"
    OFF_TOPIC = "off_topic"
    NO_MODALITY = "no_modality"
    OTHER_SIDE = "other_side"
    FRAGMENT = "fragment"
    COPIED = "copied"
    DUPLICATE = "duplicate"
    ON_BOTH_SIDES = "on_both_sides"
    NOT_NEEDED = "not_needed"
