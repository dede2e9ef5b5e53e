"""Judges both lists: form by rules, then meaning by the text model."""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from checks.reflections.decision import Decision, Weighed, chosen, decide, weigh_item
from checks.reflections.form.question import is_question
from checks.reflections.form.sifting import sift
from checks.reflections.items import Judged, items_of
from checks.reflections.meaning.model import model, order_in
from checks.reflections.reasons import Reason, Side

_SURELY = 2.0
"""Log-odds against an entry from which on it does not count in lists that fall short anyway."""


@dataclass(frozen=True)
class Judgement:
    """What became of both lists."""

    decision: Decision
    judged: Sequence[Judged]
    """Every entry. With `Decision.OPEN`, those that something speaks against are not counted yet."""
    figures: Mapping[str, float]
    """What was compared; empty where form alone decided."""


def judge_lists(wins: Sequence[str], loses: Sequence[str], needed: Mapping[Side, int]) -> Judgement:
    """Judges every entry of both lists; as many good ones as needed are enough."""
    lists = items_of(wins, loses)
    found = sift(lists)
    limits = model().thresholds
    orders = {(side, item.number): order_in(item.read) for side in Side for item in lists[side]}
    for place, strength in orders.items():
        if strength >= limits["order_from"]:
            found.setdefault(place, (Reason.INJECTION, None))
    left: dict[Side, list[Weighed]] = {
        side: [weigh_item(item) for item in lists[side] if (side, item.number) not in found] for side in Side
    }
    if any(len(left[side]) < needed[side] for side in Side):
        found |= _weak(left, _SURELY)
        judged = [
            Judged(side, item.number, item.text, *found.get((side, item.number), (Reason.COUNTED, None)))
            for side in Side
            for item in lists[side]
        ]
        return Judgement(Decision.NOT_GOOD, judged, {})
    best = {side: chosen(left[side], needed[side]) for side in Side}
    opinion = decide(best)
    if opinion.decision is Decision.GOOD:
        doubts = _doubts(best, {place for place, strength in orders.items() if strength >= limits["maybe_order_from"]})
        opinion = replace(opinion, decision=Decision.OPEN, against=doubts) if doubts else opinion
    found = _weak({side: [item for item in left[side] if item not in best[side]] for side in Side}, 0.0) | found
    taken = {(item.item.side, item.item.number) for side in Side for item in best[side]}
    judged = []
    for side in Side:
        for item in lists[side]:
            place = side, item.number
            reason = found.get(place) or opinion.against.get(place)
            if not reason:
                reason = (Reason.COUNTED if place in taken else Reason.NOT_NEEDED), None
            judged.append(Judged(side, item.number, item.text, *reason))
    return Judgement(opinion.decision, judged, opinion.figures)


def _weak(lists: Mapping[Side, Sequence[Weighed]], above: float) -> dict[tuple[Side, int], tuple[Reason, int | None]]:
    """Side and number of entries that more speaks against than `above`, and what."""
    return {
        (side, item.item.number): (item.likeliest, None)
        for side in Side
        for item in lists[side]
        if item.trouble > above
    }


def _doubts(
    best: Mapping[Side, Sequence[Weighed]], maybe_orders: AbstractSet[tuple[Side, int]]
) -> dict[tuple[Side, int], tuple[Reason, int | None]]:
    """What a person should look at in lists that are good otherwise: possible orders, and lists of questions.

    One question may be rhetorical. Lists of them may be statements in disguise, or the task asked back.
    """
    places = {(side, item.item.number): item.item for side in Side for item in best[side]}
    found = dict.fromkeys(places.keys() & maybe_orders, (Reason.INJECTION, None))
    asking = [place for place, item in places.items() if is_question(item.text)]
    return found | (dict.fromkeys(asking, (Reason.QUESTION, None)) if 2 * len(asking) > len(places) else {})
