"""Which submissions a command means, from the words of its options."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from pydantic import ValidationError

from grader_service.errors import UsageError
from grader_service.model.base import neutralise
from grader_service.model.regrade import Selection, alternatives
from grader_service.model.verdict import Outcome

_SHOWN = 80


def named(**conditions: Any) -> Selection:
    """A selection; None and lists that are empty are conditions that were not given.

    Raises:
        UsageError: a value is none that its condition can have.
    """
    given = {name: tuple(value) if isinstance(value, list) else value for name, value in conditions.items() if value}
    try:
        return Selection(**given)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise UsageError(f"{_quoted(first['input'])} does not fit {place}: {first['msg']}") from error


def check_outcomes(texts: Sequence[str]) -> Mapping[str, tuple[Outcome, ...]]:
    """`ID` or `ID=OUTCOME` each; of several outcomes of one check one has to be there, as with statuses.

    Raises:
        UsageError: there is no such outcome.
    """
    known = {outcome.value: outcome for outcome in Outcome}
    pairs: list[tuple[str, Outcome | None]] = []
    for text in texts:
        name, sign, outcome = text.partition("=")
        if sign and outcome not in known:
            raise UsageError(f"--check takes ID or ID=OUTCOME with one of {', '.join(known)}, got {_quoted(text)}")
        pairs.append((name, known[outcome] if sign else None))
    return alternatives(pairs)


def check_versions(texts: Sequence[str]) -> Mapping[str, tuple[str, ...]]:
    """`ID=VERSION` each; of several versions of one check one must have judged.

    Raises:
        UsageError: one is not of this form.
    """
    pairs = [text.partition("=") for text in texts]
    for name, sign, version in pairs:
        if not (name and sign and version):
            raise UsageError(f"--check-version takes ID=VERSION, got {_quoted(name + sign + version)}")
    return alternatives((name, version) for name, _, version in pairs)


def moment(text: str | None) -> float | None:
    """Seconds since 1970 of a day or a time; UTC where it names no other zone.

    Raises:
        UsageError: it is neither.
    """
    if text is None:
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError as error:
        example = "a day or a time such as 2026-09-21 or 2026-09-21T14:00Z"
        raise UsageError(f"expected {example}, got {_quoted(text)}") from error
    return (found.replace(tzinfo=UTC) if found.tzinfo is None else found).timestamp()


def _quoted(value: object) -> str:
    return repr(neutralise(str(value))[:_SHOWN])
