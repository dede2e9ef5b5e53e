"""The results of checks that could not look, because the learner's code did not get that far, or lacks a name."""

import difflib
from collections.abc import Mapping
from typing import Literal

from checks.results import Result, failed
from grader_service.model.base import ShortText, Wire
from grader_service.model.discovery import Discovery, NameFacts
from grader_service.model.feedback import Feedback, NextStep
from grader_service.model.verdict import NOT_REACHED, Outcome

RunEnd = Literal["completed", "ended", "needs_gpu"]
"""`ended`: the code stopped before its last line. `needs_gpu`: it did because a rehearsal has no GPU."""

_LONGEST_NAME = 200
_KIND: Mapping[str, str] = {
    "dataset_dir": "folder",
    "first_batch": "batch",
    "where_dali_wins": "texts",
    "where_dali_loses": "texts",
    "pytorch_throughput": "number",
    "dali_throughput": "number",
}
_ALIKE = 0.6
"""Share of equal letters from which on a name counts as meant."""
_ALONE = frozenset({"folder", "batch"})
"""Kinds of which a single variable is meant, whatever it is called."""
_SAYS = {
    "folder": "a folder with {count} JPEG files",
    "batch": "a batch of {count} images",
    "texts": "a list of {count} texts",
    "text": "one text, where a list is wanted",
    "number": "the number {shown}",
}


class Absent(Wire):
    """A name that is missing, and why that may be."""

    name: ShortText
    run: RunEnd = "completed"
    near: NameFacts | None = None
    """The variable that was probably meant."""


def absent(discovery: Discovery, name: str) -> Absent:
    """What is known about a name that is missing; of one that a lab made longer than is shown, the beginning."""
    return Absent(name=name[:_LONGEST_NAME], run=run_end(discovery), near=_nearest(discovery, name))


def run_end(discovery: Discovery) -> RunEnd:
    """How the run ended, as far as that matters to a check that could not look."""
    if discovery.ran == "completed":
        return "completed"
    return "needs_gpu" if discovery.needs_gpu else "ended"


def cut_short(run: RunEnd) -> Result | None:
    """`not_reached` where the run did not come to its end; None where it did."""
    return None if run == "completed" else not_reached(needs_gpu=run == "needs_gpu")


def not_reached(*, needs_gpu: bool = False) -> Result:
    """The result of a check that could not look because of how the run ended.

    It earns nothing where the code stopped by its own fault, and is left open where only a GPU was missing.
    """
    return Result(
        outcome=Outcome.SKIPPED,
        code=NOT_REACHED,
        score=None if needs_gpu else 0.0,
        parts=Feedback(outcome="Not reached."),
        details={},
    )


def missing(found: Absent, wanted: str, *, code: str = "") -> Result:
    """The result when a name that the check needs is not there: not reached, or a failure if the code ran to its end.

    Args:
        found: the name, and what else is known.
        wanted: what the name should hold.
        code: of the failure, if it is not the name with `_missing` behind it.
    """
    if (result := cut_short(found.run)) is not None:
        return result
    seen, action, line = "", f"Set `{found.name}` in your code.", ""
    if found.near is not None:
        holds = _SAYS[found.near.kind].format(count=found.near.count, shown=found.near.shown)
        seen = f"There is `{found.near.name}`, {holds}: you may mean that."
        action, line = "Add this line:", f"{found.name} = {found.near.name}"
    return failed(
        code or f"{found.name}_missing",
        Feedback(
            outcome=f"`{found.name}` is not defined.",
            seen=seen,
            wanted=f"It should hold {wanted}.",
            next=NextStep(text=action, code=line),
        ),
    )


def _nearest(discovery: Discovery, wanted: str) -> NameFacts | None:
    """The variable that was probably meant: of the right kind, or almost called so; None where nothing is like it."""
    kind = _KIND.get(wanted)
    fitting = [facts for facts in discovery.names if facts.kind == kind or (kind == "texts" and facts.kind == "text")]
    likeness = {facts.name: _alike(facts.name, wanted) for facts in fitting}
    best = max(fitting, key=lambda facts: likeness[facts.name], default=None)
    if best is None or not (likeness[best.name] >= _ALIKE or (len(fitting) == 1 and kind in _ALONE)):
        return None
    return best


def _alike(name: str, wanted: str) -> float:
    plain, other = (text.lower().replace("_", "") for text in (name, wanted))
    return difflib.SequenceMatcher(None, plain, other, autojunk=False).ratio()
