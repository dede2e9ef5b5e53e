"""Numbers, times and free text as the report shows them; pure."""

import json
import math
from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal

from grader_service.model.base import neutralise
from grader_service.model.measurement import ClaimBesideMeasurement

ABSENT = "–"
_FACTS_SHOWN = 60
_FACT_LENGTH = 300
_MOST_DECIMALS = 4
_SMALLEST_DETAILS = 1000
_TIDY = 1e6
"""Numbers below this are written out; larger ones take an exponent."""


def tidy(text: object) -> object:
    """What the template prints for a value: control and reordering characters of plain strings are replaced.

    Markup passes unchanged, so that only our own SVG keeps its tags.
    """
    return neutralise(text) if type(text) is str else text


def points(score: float | None) -> str:
    """A score; `no score` where there is none, never 0."""
    if score is None:
        return "no score"
    return f"{score:.2f}".rstrip("0").rstrip(".") if score < _TIDY else f"{score:.6g}"


def ratio(value: float, beside: float | None = None, decimals: int = 2) -> str:
    """How many times, such as `1.39×`, with more digits where fewer would make it look equal to `beside`."""
    if value >= 1000 or 0 < value < 0.01:  # where two decimals say nothing
        return f"{value:.3g}×"
    if value >= 100:
        decimals = 1
    if beside is not None and value != beside:
        while decimals < _MOST_DECIMALS and float(f"{value:.{decimals}f}") == beside:
            decimals += 1
    return f"{value:.{decimals}f}×"


def rate(value: float | None) -> str:
    """Images per second; a dash where there is no measurement."""
    if value is None or not math.isfinite(value):
        return ABSENT
    if value >= 1e9:
        return f"{value:.3g}"
    return f"{value:,.0f}" if value >= 10 else f"{value:.3g}"


def claim(value: float | None) -> str:
    """A number that the learner stated, whatever its sign; a dash where there is none."""
    if value is None:
        return ABSENT
    return rate(value) if value > 0 else f"{value:.6g}"


def claim_ratio(stated: ClaimBesideMeasurement) -> str:
    """The claim over the measurement; a dash where one of them says nothing."""
    if stated.claimed is None or stated.measured is None or stated.claimed <= 0 or stated.measured <= 0:
        return ABSENT
    share = stated.claimed / stated.measured
    return ratio(share) if math.isfinite(share) else ABSENT


def seconds(value: float) -> str:
    """A duration with as many digits as mean something."""
    return f"{value:,.1f} s" if value >= 1 else f"{value:.3f} s"


def percent(value: float, digits: int = 4) -> str:
    """A share of one, such as 0.005, as `0.5%` with so many digits, and never with an exponent."""
    return f"{Decimal(f'{value * 100:.{digits}g}'):f}%"


def busy(value: float | None) -> str:
    """How much of the time a part of the GPU was in use, from 0 to 100; a dash where nobody says."""
    if value is None:
        return ABSENT
    return f"{value:.0f}%" if value >= 10 or value == 0 else f"{value:.2g}%"


def mebibytes(value: float | None) -> str:
    """An amount of memory; a dash where nobody says."""
    return ABSENT if value is None else f"{value:,.0f} MiB"


def utc(value: datetime) -> datetime:
    """The same time in UTC; one without a zone is taken to be UTC already."""
    return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


def utc_of(seconds: float | None) -> datetime | None:
    """Seconds since 1970 as a time in UTC; None for none, and for those that no calendar has."""
    try:
        return None if seconds is None else datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, ValueError, OSError):
        return None


def moment(value: datetime) -> str:
    """A time in UTC; one without a zone is taken to be UTC already."""
    return utc(value).strftime("%Y-%m-%d %H:%M:%S UTC")


def spans(text: str) -> list[tuple[bool, str]]:
    """The text as (is code, part): what stands between two backticks on one line is code."""
    parts = text.split("`")
    if len(parts) % 2 == 0:
        return [(False, text)]
    return [
        (index % 2 == 1, part) if index % 2 == 0 or "\n" not in part else (False, f"`{part}`")
        for index, part in enumerate(parts)
        if part
    ]


def facts(values: Mapping[str, object]) -> list[tuple[str, str]]:
    """Name and value of each entry as short text; at most 60 of them."""
    shown = [(str(name)[:_FACT_LENGTH], _shown(value)) for name, value in list(values.items())[:_FACTS_SHOWN]]
    left_out = len(values) - len(shown)
    return [*shown, ("left out", f"{left_out} more entries")] if left_out else shown


def details_json(details: Mapping[str, object], budget: int) -> str:
    """The details as indented JSON, cut to `budget` characters; says so where it cut."""
    text = json.dumps(details, indent=2, ensure_ascii=False, default=str)
    keep = max(_SMALLEST_DETAILS, budget)
    if len(text) <= keep:
        return text
    return f"{text[:keep]}\n… {len(text) - keep} more characters stand in the verdict itself"


def scalar(value: object) -> str:
    """One value of JSON; what is no text, number, truth value or null stays JSON."""
    if value is None:
        return ABSENT
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.6g}"
    return str(value) if isinstance(value, str | int) else json.dumps(value, ensure_ascii=False, default=str)


def _shown(value: object) -> str:
    if isinstance(value, list | tuple) and not any(isinstance(item, list | tuple | dict) for item in value):
        text = ", ".join(_shown(item) for item in value)
    else:
        text = scalar(value)
    return text if len(text) <= _FACT_LENGTH else f"{text[: _FACT_LENGTH - 1]}…"
