"""The check `reflections`: do both lists show that the learner knows where DALI wins and where it loses?"""

from collections.abc import Mapping
from typing import Annotated

from pydantic import Field, JsonValue, StringConstraints

from checks.api import Check, Result, failed, passed, undecided
from checks.reflections.decision import Decision
from checks.reflections.feedback import advice, code_of, counted, praise, waiting
from checks.reflections.items import Judged
from checks.reflections.judging import judge_lists
from checks.reflections.reasons import Side
from checks.stopped import absent, missing, not_reached
from grader_service.model.base import Frozen, Wire
from grader_service.model.discovery import Discovery, TextList
from grader_service.model.evidence import Evidence, Need
from grader_service.model.feedback import Feedback, NextStep
from grader_service.model.verdict import Outcome

_MOST_ITEMS = 64
_LONGEST_ITEM = 8192
_HOLDS = {
    Side.WINS: "a list of strings, each naming a situation where DALI is worth using and why",
    Side.LOSES: "a list of strings, each naming a situation where DALI does not help and why",
}

Items = Annotated[
    tuple[Annotated[str, StringConstraints(max_length=_LONGEST_ITEM)], ...], Field(max_length=_MOST_ITEMS)
]


class ReflectionsParams(Frozen):
    """How many scenarios the lab asks for."""

    min_wins: Annotated[int, Field(ge=1, le=_MOST_ITEMS)] = 3
    min_loses: Annotated[int, Field(ge=1, le=_MOST_ITEMS)] = 2


class ReflectionsObservation(Wire):
    """Both lists as the learner's namespace held them, as plain strings (said by the guest)."""

    where_dali_wins: Items
    where_dali_loses: Items
    one_texts: Annotated[tuple[Side, ...], Field(max_length=len(Side))] = ()
    """Those that were one text in place of a list."""


class ReflectionsCheck(Check[ReflectionsParams, ReflectionsObservation]):
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

    id = "reflections"
    version = "2.1.0"
    title = "Where DALI wins and where it loses"
    needs = frozenset({Need.DISCOVERY})
    second_opinion = (
        "A learner of a lab on NVIDIA DALI (GPU-accelerated loading, decoding and augmentation of images, video and "
        "audio) names situations where DALI wins over a CPU data loader and situations where it loses or brings "
        "nothing. A good answer names concrete, different situations, each true and in the right list: compressed "
        "media whose decoding or augmentation on the CPU keeps the GPU waiting win; data without decoding, another "
        "bottleneck, or more cost than gain lose. Short and clumsy wording is fine. A bad answer is false, empty, off "
        "topic, a string of terms, or in the wrong list."
    )
    codes: Mapping[str, str] = {
        "reflections.ok": "both lists hold enough situations of their side",
        "reflections.needs_review": "inconclusive: neither clearly good nor clearly not, so that a person decides",
        "reflections.missing": "a list is not defined",
        "reflections.unreadable": "a list could not be read as texts",
        "reflections.too_few": "a list has too few entries",
        "reflections.injection": "an entry addresses the grader",
        "reflections.copied": "entries repeat the lab's pages",
        "reflections.same_lists": "entries stand in both lists",
        "reflections.swapped_sides": "entries speak for the other list",
        "reflections.duplicate": "entries describe the same situation",
        "reflections.off_topic": "entries are not about loading and preparing data",
        "reflections.not_substantive": "entries are no concrete situation",
    }
    params_model = ReflectionsParams
    observation_model = ReflectionsObservation

    def observe(self, evidence: Evidence) -> ReflectionsObservation | Result:
        """Takes both lists from what discovery found in the learner's namespace."""
        discovery = evidence.discovery
        if discovery is None:
            return not_reached()
        lists = {Side.WINS: discovery.where_dali_wins, Side.LOSES: discovery.where_dali_loses}
        return _absent(discovery, lists) or ReflectionsObservation(
            where_dali_wins=lists[Side.WINS].items,
            where_dali_loses=lists[Side.LOSES].items,
            one_texts=tuple(side for side, found in lists.items() if found.one_text),
        )

    def judge(self, observation: ReflectionsObservation, params: ReflectionsParams) -> Result:
        """Counts the entries that are concrete, distinct and on their side, or leaves them to a person."""
        needed = {Side.WINS: params.min_wins, Side.LOSES: params.min_loses}
        found = judge_lists(observation.where_dali_wins, observation.where_dali_loses, needed)
        details: dict[str, JsonValue] = {
            side.value: [_detail(item) for item in found.judged if item.side is side] for side in Side
        }
        details["figures"] = dict(found.figures)
        if found.decision is Decision.GOOD:
            return passed(praise(found.judged), details=details)
        if found.decision is Decision.OPEN:
            text = waiting(found.judged)
            return undecided(Outcome.INCONCLUSIVE, "reflections.needs_review", text, details=details)
        share = sum(min(counted(found.judged, side), needed[side]) for side in Side) / sum(needed.values())
        code, text = code_of(found.judged, needed), advice(found.judged, needed, observation.one_texts)
        return failed(code, text, score=share, details=details)


def _detail(item: Judged) -> dict[str, JsonValue]:
    """One entry for staff."""
    twin = {} if item.twin is None else {"twin": item.twin}
    return {"index": item.number, "counted": item.counted, "reason": item.reason.value, **twin}


def _absent(discovery: Discovery, lists: dict[Side, TextList]) -> Result | None:
    """The answer when a list is not there or could not be read."""
    lost = [side for side, found in lists.items() if found.status == "missing"]
    if lost:
        return missing(absent(discovery, lost[0].value), _HOLDS[lost[0]], code="missing")
    broken = [side for side, found in lists.items() if found.status == "unreadable"]
    if broken:
        name = broken[0]
        feedback = Feedback(
            outcome=f"`{name}` could not be read as a list of strings.",
            seen=f"It shows as `{lists[name].shown}`.",
            wanted=f"It should hold {_HOLDS[name]}.",
            next=NextStep(text="Write a list with a text for each situation:", code=f'{name} = ["…", "…"]'),
        )
        return failed("reflections.unreadable", feedback, details={"names": [name.value for name in broken]})
    return None


CHECK = ReflectionsCheck()
