"""Judges both lists: form by rules, then meaning by the text model."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from checks.reflections.decision import Decision, Weighed, chosen, decide, weigh_item
from checks.reflections.form.sifting import doubts, sift
from checks.reflections.items import Item, Judged, items_of
from checks.reflections.meaning.model import model, order_in, share_known
from checks.reflections.reasons import Finding, Place, Reason, Side

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
    known = share_known([item.read for side in Side for item in lists[side] if item.place not in found])
    read = known >= limits["known_from"]
    orders = {item.place: order_in(item.read) for side in Side for item in lists[side]}
    for place, strength in orders.items():
        if read and strength >= limits["order_from"]:
            found.setdefault(place, (Reason.INJECTION, None))
    left: dict[Side, list[Weighed]] = {
        side: [weigh_item(item) for item in lists[side] if item.place not in found] for side in Side
    }
    if any(len(left[side]) < needed[side] for side in Side):
        found |= _weak(left, _SURELY) if read else {}
        return Judgement(Decision.NOT_GOOD, _judged(lists, found, Reason.COUNTED), {})
    best = {side: chosen(left[side], needed[side]) for side in Side}
    opinion = decide(best, known)
    if opinion.decision is Decision.GOOD:
        maybe = {
            place: (Reason.INJECTION, None) for place, value in orders.items() if value >= limits["maybe_order_from"]
        }
        seen = maybe | doubts({side: [item.item for item in best[side]] for side in Side})
        taken = {item.item.place for side in Side for item in best[side]}
        against = {place: why for place, why in seen.items() if place in taken}
        opinion = replace(opinion, decision=Decision.OPEN, against=against) if against else opinion
    found = _weak({side: [item for item in left[side] if item not in best[side]] for side in Side}, _SURELY) | found
    counted = {item.item.place: (Reason.COUNTED, None) for side in Side for item in best[side]}
    return Judgement(
        opinion.decision, _judged(lists, {**counted, **opinion.against, **found}, Reason.NOT_NEEDED), opinion.figures
    )


def _judged(lists: Mapping[Side, Sequence[Item]], found: Mapping[Place, Finding], otherwise: Reason) -> list[Judged]:
    return [
        Judged(side, item.number, item.text, *found.get(item.place, (otherwise, None)))
        for side in Side
        for item in lists[side]
    ]


def _weak(lists: Mapping[Side, Sequence[Weighed]], above: float) -> dict[Place, Finding]:
    """Side and number of entries that more speaks against than `above`, and what."""
    return {item.item.place: (item.likeliest, None) for side in Side for item in lists[side] if item.trouble > above}
