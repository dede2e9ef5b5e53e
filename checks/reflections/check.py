"""The check `reflections`: do both lists show that the learner knows where DALI wins and where it loses?"""

from collections.abc import Callable, Mapping
from typing import Annotated

from pydantic import Field

from checks.api import Result, Taken, absent, check, failed, missing, not_reached
from checks.reflections.feedback import CAUSES, praise, shortfall, waiting
from checks.reflections.items import Side
from checks.reflections.judging import judge_lists
from grader_service.model.base import LongText
from grader_service.model.discovery import TextList
from grader_service.model.evidence import Evidence
from grader_service.model.verdict import Outcome

_MOST_ITEMS = 64
_HOLDS = {
    Side.WINS: "a list of strings, each naming a situation where DALI is worth using and why",
    Side.LOSES: "a list of strings, each naming a situation where DALI does not help and why",
}


def _lists(evidence: Evidence) -> dict[Side, TextList] | Result:
    """Both lists as discovery found them, or the answer when one is not there or could not be read."""
    discovery = evidence.discovery
    if discovery is None:
        return not_reached()
    lists = {Side.WINS: discovery.where_dali_wins, Side.LOSES: discovery.where_dali_loses}
    for side, found in lists.items():
        if found.status == "missing":
            return missing(absent(discovery, side.value), _HOLDS[side], code="missing")
    broken = [side for side, found in lists.items() if found.status == "unreadable"]
    if broken:
        name = broken[0]
        return failed(
            "unreadable",
            f"`{name}` could not be read as a list of strings.",
            seen=f"It shows as `{lists[name].shown}`.",
            wanted=f"It should hold {_HOLDS[name]}.",
            next="Write a list with a text for each situation:",
            write=f'{name} = ["…", "…"]',
            details={"names": [side.value for side in broken]},
        )
    return lists


def _of_lists(part: Callable[[Mapping[Side, TextList]], object]) -> Taken:
    """Only what the learner wrote is observed: a chat model may be asked about it."""

    def take(evidence: Evidence) -> object:
        lists = _lists(evidence)
        return lists if isinstance(lists, Result) else part(lists)

    return Taken(take)


Items = Annotated[tuple[LongText, ...], Field(max_length=_MOST_ITEMS)]
Wins = Annotated[Items, _of_lists(lambda lists: lists[Side.WINS].items)]
Loses = Annotated[Items, _of_lists(lambda lists: lists[Side.LOSES].items)]
OneTexts = Annotated[
    tuple[Side, ...],
    Field(max_length=len(Side), default=()),
    _of_lists(lambda lists: tuple(side for side, found in lists.items() if found.one_text)),
]
"""Those that were one text in place of a list."""
Least = Annotated[int, Field(ge=1, le=_MOST_ITEMS)]


@check(
    version="2.1.0",
    title="Where DALI wins and where it loses",
    codes={
        "missing": "a list is not defined",
        "unreadable": "a list could not be read as texts",
        "too_few": "a list has too few entries",
        **{code: cause.lower() for code, cause in CAUSES.items()},
    },
    second_opinion="A learner of a lab on NVIDIA DALI (GPU-accelerated loading, decoding and augmentation of images, "
    "video and audio) names situations where DALI wins over a CPU data loader and situations where it loses or brings "
    "nothing. A good answer names concrete, different situations, each true and in the right list: compressed "
    "media whose decoding or augmentation on the CPU keeps the GPU waiting win; data without decoding, another "
    "bottleneck, or more cost than gain lose. Short and clumsy wording is fine. A bad answer is false, empty, off "
    "topic, a string of terms, or in the wrong list.",
)
def reflections(
    where_dali_wins: Wins, where_dali_loses: Loses, one_texts: OneTexts, *, min_wins: Least = 3, min_loses: Least = 2
) -> Result:
    """Judges whether both lists hold enough substantive, distinct situations of their side.

    Question: does each list name at least the required number of concrete, different situations, and do the two lists
    show the modality dependency (compressed media that starve the GPU against inputs without decoding, or another
    bottleneck)?
    Points: share of the required entries that count; a pass needs all of them. Extra weak entries cost nothing. Lists
    that are neither clearly good nor clearly not wait for a person (`reflections.needs_review`), without points lost.
    Error rates: of 160 lists written without sight of the check and of its training lists, 80 good ones gave 79
    passes, no failure and 1 for a person; 80 others no pass, 78 failures and 2 for a person, by
    `python bench/reflections_figures.py blind`; held by `tests/checks/reflections/test_labelled.py`. 10,000 lists take
    45 s of one core, by `python bench/reflections_figures.py train --speed`. More, and the card of its text model:
    [reflections.md](reflections.md).
    Cannot detect: whether a situation was lived through; the order of words, and so salads of the words of true entries
    and claims turned round; well-formed untrue claims in the words of true ones, some of which pass; copies from other
    sources than the lab's pages, from other learners, or translated. Text is data here: nothing in it is executed or
    obeyed.
    """
    needed = {Side.WINS: min_wins, Side.LOSES: min_loses}
    found = judge_lists(where_dali_wins, where_dali_loses, needed)
    if found.outcome is Outcome.PASSED:
        return praise(found)
    return waiting(found) if found.outcome is Outcome.INCONCLUSIVE else shortfall(found, needed, one_texts)
