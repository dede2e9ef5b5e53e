"""Leaves out of a page what already stands on it: a sentence is read once."""

from collections.abc import Iterable

from grader_service.model.feedback import Feedback
from grader_service.model.verdict import CheckVerdict, Outcome, Verdict


def told_once(verdict: Verdict, checks: Iterable[CheckVerdict]) -> dict[tuple[str, str], Feedback]:
    """What each check says that neither the run, at the top of the page, nor a check before it has said.

    Returns:
        (step, check id) to its feedback. One that says what another check said points to that one.
    """
    run = verdict.stopped
    said = set() if run is None else {run.cause, run.remedy}
    titles = {step.id: step.title or step.id for step in verdict.steps}
    outcomes: dict[str, str] = {}
    pages = {}
    for check in checks:
        told = check.told
        if check.unreached:
            pages[check.step, check.id] = told
            continue
        if (earlier := outcomes.get(told.outcome)) is not None:
            there = f"The reason stands at “{titles.get(earlier, earlier)}”."
            above = earlier == check.step
            told = told.model_copy(update={"outcome": "It is the reason above." if above else there})
        else:
            outcomes[told.outcome] = check.step
        pages[check.step, check.id] = _fresh(told, said)
    return pages


def decisive(verdict: Verdict) -> CheckVerdict | None:
    """The check that kept a submission from passing whose code ran to its end, for the top of a page.

    None where none did, where the run's own report stands at the top, or where the lab hides which check it was.
    """
    if verdict.stopped is not None:
        return None
    open_checks = (check for check in verdict.checks if check.outcome is not Outcome.PASSED)
    return next((check for check in open_checks if check.code == verdict.code), None)


def _fresh(told: Feedback, said: set[str]) -> Feedback:
    def new(text: str) -> str:
        if not text or text in said:
            return ""
        said.add(text)
        return text

    step = told.next
    changed = {"seen": new(told.seen), "wanted": new(told.wanted)}
    plain = step is None or not (step.code or step.place)
    shown = step if step is None or new(step.text if plain else step.model_dump_json()) else None
    advice = tuple(one for one in told.advice if new(one.text or one.next))
    return told.model_copy(update=changed | {"next": shown, "advice": advice})
