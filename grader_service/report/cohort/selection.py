"""A batch's selection in words."""

from collections.abc import Sequence

from grader_service.model.regrade import Selection
from grader_service.report import formats
from grader_service.report.cohort.wording import moment

_MOST_NAMED = 6


def described(selection: Selection) -> list[str]:
    """One sentence part per condition; a single one says that there is none."""
    said = [
        *_named("cohort", selection.cohorts),
        *_named("lab", selection.labs),
        *_named("learner", selection.learners),
        *_named("submission", selection.submissions),
        *_named("status", [status.value for status in selection.statuses]),
        *_named("code", selection.codes),
        *_named("image", selection.image_digests),
        *(
            f"check {check}: {_either([outcome.value for outcome in outcomes]) if outcomes else 'any outcome'}"
            for check, outcomes in selection.checks.items()
        ),
        *(f"check {check}: judged by version {_either(names)}" for check, names in selection.check_versions.items()),
    ]
    if selection.received_from is not None:
        said.append(f"received from {moment(selection.received_from)} on")
    if selection.received_before is not None:
        said.append(f"received before {moment(selection.received_before)}")
    if selection.latest_only:
        said.append("only the latest submission of each learner to each lab")
    return [str(formats.tidy(part)) for part in said] or ["every graded submission"]


def _named(what: str, names: Sequence[str]) -> list[str]:
    return [f"{what} {_either(names)}"] if names else []


def _either(names: Sequence[str]) -> str:
    shown, beyond = list(names[:_MOST_NAMED]), len(names) - _MOST_NAMED
    if beyond > 0:
        shown.append(f"{beyond:,} more")
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} or {shown[-1]}"
