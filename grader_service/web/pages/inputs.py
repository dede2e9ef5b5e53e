"""What an operator answers when an action asks: who is told, why, and how much GPU time."""

from collections.abc import Mapping

from grader_service.errors import UsageError
from grader_service.store.regrade_apply import Notify, checked_reason
from grader_service.web.failures import BadForm
from grader_service.web.forms import Fields

NOTIFY: Mapping[Notify, str] = {
    "changed": "learners of whom the verdict says something else now",
    "all": "everybody whose verdict comes in force",
    "none": "nobody",
}
"""Who is told, and what the choice is called."""
_CHOICES: Mapping[str, Notify] = {choice: choice for choice in NOTIFY}
_MOST_HOURS = 1e6
_HOUR_S = 3600.0


def notify_of(fields: Fields) -> Notify:
    """Who is told.

    Raises:
        BadForm: nothing was chosen.
    """
    chosen = _CHOICES.get(fields.one("notify"))
    if chosen is None:
        raise BadForm(f"choose who is told: {', '.join(NOTIFY)}; {fields.one('notify')[:50]!r} came")
    return chosen


def reason_of(fields: Fields) -> str:
    """Why; empty when nothing was said.

    Raises:
        BadForm: it is too long.
    """
    try:
        return checked_reason(fields.one("reason"))
    except UsageError as error:
        raise BadForm(str(error)) from None


def gpu_budget_of(fields: Fields, name: str = "gpu_hours") -> float | None:
    """A budget of GPU seconds for the whole batch, from a field with hours; None when none was given.

    Raises:
        BadForm: it is no number of hours.
    """
    text = fields.one(name)
    if not text:
        return None
    try:
        hours = float(text)
    except ValueError:
        hours = -1.0
    if not 0 <= hours <= _MOST_HOURS:
        raise BadForm(f"the GPU budget is a number of hours from 0 to a million such as 2.5, got {text[:50]!r}")
    return hours * _HOUR_S
