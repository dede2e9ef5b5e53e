"""Words of the pages about many verdicts; pure."""

from grader_service.model.diff import CHANGED, COMPARED, Kind
from grader_service.model.measurement import Arm
from grader_service.model.regrade import BatchState
from grader_service.model.verdict import Outcome, Status
from grader_service.report import formats, words

KINDS = {
    Kind.NEWLY_FAILING: ("▼", "newly failing", "Failed or rejected now, and neither before."),
    Kind.NEWLY_PASSING: ("▲", "newly passing", "Passed now, and not before."),
    Kind.NEWLY_UNDECIDED: ("≈", "newly undecided", "Decided before, and now it is not."),
    Kind.OTHERWISE_CHANGED: ("↔", "otherwise changed", "Other status, score or check; none of the groups before."),
    Kind.UNCHANGED: ("=", "unchanged", "A learner would see no difference."),
    Kind.PENDING: ("…", "pending", "No new verdict yet."),
    Kind.NEEDS_ATTENTION: ("!", "needs attention", "No new verdict: our own failures used up the tries."),
    Kind.CANCELLED: ("–", "cancelled", "No new verdict, and there will be none."),
    Kind.OUTDATED: ("↷", "outdated", "Another verdict came in force meanwhile; applying leaves it alone."),
}
"""Sign, name and meaning of each group, in the order in which a page shows them."""

STATES = {
    BatchState.PLANNED: "Nothing has run. The verdicts from before are in force.",
    BatchState.RUNNING: "It runs. The verdicts from before are in force until it is applied.",
    BatchState.PAUSED: "It is paused. The verdicts from before are in force.",
    BatchState.FINISHED: "No work is left. The verdicts from before are in force until it is applied.",
    BatchState.CANCELLED: "It was stopped for good. The verdicts from before are in force.",
    BatchState.APPLIED: "The new verdicts are in force.",
    BatchState.REVERTED: "It was applied and undone. The verdicts from before are in force again.",
    BatchState.DISCARDED: "It was thrown away. The verdicts from before are in force.",
}

MARKS = {**words.MARKS, "absent": "∅"}
"""One sign per status and outcome, and for a check that a verdict lacks."""

LEVELS = {
    "auto": "from stored evidence where that suffices, else run again",
    "judge": "from stored evidence only, without a GPU",
    "run": "all run again",
}

ARMS = {
    Arm.DALI.value: "DALI",
    Arm.LEARNER.value: "learner’s DataLoader",
    Arm.DECLARED.value: "reference at the learner’s settings",
    Arm.FAIR.value: "reference at fair settings",
}
"""Each arm's name for staff."""
_OUTCOMES = [outcome.value for outcome in Outcome]
_STATUSES = [status.value for status in Status]


def arm(name: str) -> str:
    """An arm's name for staff."""
    return ARMS.get(name) or str(formats.tidy(words.title(name)))


def arm_class(name: str) -> str:
    """The arm's part of a CSS class; `other` for one that this page has no colour for."""
    return name if name in ARMS else "other"


def arm_sign(name: str) -> str:
    """The arm's sign on the page of one verdict."""
    return words.ARM_SIGNS[Arm(name)] if name in ARMS else "+"


def arm_order(name: str) -> tuple[int, str]:
    """Known arms first, in the order in which the page of one verdict shows them."""
    known = list(ARMS)
    return (known.index(name) if name in ARMS else len(known), name)


def moment(at: float | None) -> str:
    """Seconds since 1970 as a time in UTC; a dash for none, and for one that no calendar has."""
    found = formats.utc_of(at)
    return formats.ABSENT if found is None else found.strftime("%Y-%m-%d %H:%M UTC")


def percent(part: float, whole: float) -> str:
    """A share as per cent; only all is 100 %, and only none is 0 %."""
    if not whole:
        return formats.ABSENT
    if part in {0, whole}:
        return "100%" if part else "0%"
    shown = f"{part / whole * 100:.1f}%"
    return {"0.0%": "< 0.1%", "100.0%": "> 99.9%"}.get(shown, shown)


def several(count: int, one: str) -> str:
    """A count with its noun."""
    return f"{count:,} {one if count == 1 else one + 's'}"


def outcome_order(outcome: str) -> int:
    """Passed and failed first, then what is undecided; unknown ones last."""
    return _OUTCOMES.index(outcome) if outcome in _OUTCOMES else len(_OUTCOMES)


def status_order(status: str) -> int:
    """In the order of the contract; unknown ones last."""
    return _STATUSES.index(status) if status in _STATUSES else len(_STATUSES)


def said() -> dict[str, object]:
    """What the page's script needs of these words."""
    return {
        "marks": MARKS | {kind.value: mark for kind, (mark, _, _) in KINDS.items()},
        "kinds": [kind.value for kind in KINDS],
        "groups": {"changed": [kind.value for kind in CHANGED], "compared": [kind.value for kind in COMPARED]},
    }
