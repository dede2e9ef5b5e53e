"""Decides on lists from what the text model says of their entries: good, not good, or for a person to read.

A few numbers ("signals") describe both lists; their weighted sum is compared with two thresholds. Weights and
thresholds come from `bench/reflections_train.py`, which sees the signals that are made here.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import combinations
from math import log2

from checks.reflections.items import Item
from checks.reflections.meaning.model import (
    HEADS,
    Model,
    compare,
    model,
    order_in,
    scores,
    weigh,
)
from checks.reflections.reasons import Finding, Place, Reason, Side
from checks.reflections.text import length

FLAWS = HEADS[3:]
_FAR = 6.0
"""Log-odds beyond which more says nothing."""
_REASONS = {
    "untrue": Reason.UNTRUE,
    "vague": Reason.VAGUE,
    "off_topic": Reason.OFF_TOPIC,
    "keywords": Reason.KEYWORDS,
    "salad": Reason.NONSENSE,
    "dream": Reason.NONSENSE,
    "injection": Reason.INJECTION,
}
_CLEARLY = 1.0
"""Log-odds from which on something is named that speaks against an entry."""
_SAME = 1.0
"""Log-odds from which on two entries are named as one situation."""
_TOWARDS = {Side.WINS: 1.0, Side.LOSES: -1.0}


class Decision(Enum):
    """What becomes of both lists."""

    GOOD = "good"
    NOT_GOOD = "not_good"
    OPEN = "open"
    """A person decides."""


@dataclass(frozen=True)
class Weighed:
    """An entry as the text model sees it."""

    item: Item
    scores: Mapping[str, float]
    """Flaw, or `side` (positive when it speaks for the list it stands in), to log-odds within ±6."""

    @property
    def trouble(self) -> float:
        """How much speaks against it; 0 is even."""
        return max(self.reasons.values())

    @property
    def reasons(self) -> dict[Reason, float]:
        """Reason to how much speaks for it."""
        found = {Reason.OTHER_SIDE: -self.scores["side"]}
        for flaw, reason in _REASONS.items():
            found[reason] = max(self.scores[flaw], found.get(reason, -_FAR))
        return found

    @property
    def likeliest(self) -> Reason:
        """The reason that most speaks for; the other side only for what would stand there, an order only for orders."""
        elsewhere = self.scores["loss" if self.item.side is Side.WINS else "win"]
        found = self.reasons
        if order_in(self.item.read) < model().thresholds["maybe_order_from"]:
            del found[Reason.INJECTION]
        found[Reason.OTHER_SIDE] = min(found[Reason.OTHER_SIDE], elsewhere)
        return max(found, key=lambda reason: found[reason])


@dataclass(frozen=True)
class Opinion:
    """What the model says of both lists."""

    decision: Decision
    figures: Mapping[str, float]
    """What was compared: `sum` with its thresholds, `side` and `same` of each list, `across.likeness`, `known`."""
    against: Mapping[Place, Finding]
    """Side and number of entries that something speaks against: why, and of which entry it says the same."""


def weigh_item(item: Item, weighed_by: Model | None = None) -> Weighed:
    """Scores of one entry, by the shipped model unless another is given."""
    found = {head: clipped(value) for head, value in scores(item.read, weighed_by).items()}
    fits = found["win"] if item.side is Side.WINS else found["loss"]
    return Weighed(item, found | {"side": _TOWARDS[item.side] * found["side"], "fits": fits})


def clipped(value: float) -> float:
    """Log-odds within ±6."""
    return max(-_FAR, min(_FAR, value))


def chosen(items: Sequence[Weighed], needed: int, weighed_by: Model | None = None) -> list[Weighed]:
    """The best entries of a list, in their order, as many as are needed: further ones cost nothing.

    Of entries that tell of one situation the better one is taken, as long as others are left.
    """
    best: list[Weighed] = []
    spare: list[Weighed] = []
    for item in sorted(items, key=lambda item: (item.trouble, item.item.number)):
        again = len(items) > needed and any(
            compare(item.item.read, taken.item.read, weighed_by)[0] > _SAME for taken in best
        )
        (spare if again or len(best) >= needed else best).append(item)
    return sorted([*best, *spare][:needed], key=lambda item: item.item.number)


def signals(lists: Mapping[Side, Sequence[Weighed]], weighed_by: Model | None = None) -> dict[str, float]:
    """Describes both lists; each holds at least one entry. See `weigh_item` for the model."""
    found: dict[str, float] = {}
    for side in Side:
        own = lists[side]
        for flaw in FLAWS:
            values = sorted((item.scores[flaw] for item in own), reverse=True)
            found[f"{side}.{flaw}.most"] = values[0]
            found[f"{side}.{flaw}.mean"] = sum(values) / len(values)
            found[f"{side}.{flaw}.over"] = max(0.0, values[0])
        values = sorted(item.scores["side"] for item in own)
        found[f"{side}.side.least"] = values[0]
        found[f"{side}.side.mean"] = sum(values) / len(values)
        found[f"{side}.side.against"] = min(0.0, values[0])
        values = sorted(item.scores["fits"] for item in own)
        found[f"{side}.fits.least"] = values[0]
        found[f"{side}.fits.next"] = values[1] if len(values) > 1 else values[0]
        found[f"{side}.fits.mean"] = sum(values) / len(values)
        found[f"{side}.fits.against"] = min(0.0, values[0])
        found[f"{side}.trouble.most"] = max(item.trouble for item in own)
        found[f"{side}.trouble.over"] = max(0.0, *(item.trouble for item in own))
        same = [clipped(value) for value, _ in _pairs(own, weighed_by)] or [-_FAR]
        found[f"{side}.same.most"] = max(same)
        found[f"{side}.same.mean"] = sum(same) / len(same)
        found[f"{side}.same.over"] = max(0.0, *same)
        found[f"{side}.length"] = log2(1 + min(length(item.item.read) for item in own))
    texts = [(won.item.read, lost.item.read) for won in lists[Side.WINS] for lost in lists[Side.LOSES]]
    compared = [compare(*pair, weighed_by) for pair in texts]
    same, alike = [clipped(value) for value, _ in compared], [value for _, value in compared]
    found["across.likeness.most"] = max(alike)
    found["across.likeness.mean"] = sum(alike) / len(alike)
    found["across.same.most"] = max(same)
    found["across.same.mean"] = sum(same) / len(same)
    return found


def decide(lists: Mapping[Side, Sequence[Weighed]], known: float) -> Opinion:
    """Decides on the chosen entries of both lists, of whose words this share (0 to 1) is known."""
    used = model()
    seen = signals(lists)
    total = weigh(seen)
    limits = used.thresholds
    read = known >= limits["known_from"]
    if total >= limits["good_from"]:
        decision = Decision.GOOD
    else:
        decision = Decision.NOT_GOOD if read and total <= limits["not_good_to"] else Decision.OPEN
    figures = {
        "sum": total,
        "good_from": limits["good_from"],
        "not_good_to": limits["not_good_to"],
        "known": known,
        "known_from": limits["known_from"],
        **{f"{side}.side": seen[f"{side}.side.mean"] for side in Side},
        **{f"{side}.same": seen[f"{side}.same.most"] for side in Side},
        "across.likeness": seen["across.likeness.most"],
    }
    rounded = {name: round(value, 3) for name, value in figures.items()}
    if decision is Decision.GOOD:
        return Opinion(decision, rounded, {})
    if not read:
        return Opinion(decision, rounded, _all(lists, Reason.UNREAD))
    return Opinion(decision, rounded, _against(lists, seen, limits))


def _against(
    lists: Mapping[Side, Sequence[Weighed]], seen: Mapping[str, float], limits: Mapping[str, float]
) -> dict[Place, Finding]:
    """What speaks against entries; at least one is named."""
    found: dict[Place, Finding] = {}
    if all(seen[f"{side}.side.mean"] < 0 for side in Side):
        return _all(lists, Reason.OTHER_SIDE)
    for side in Side:
        for item in lists[side]:
            if item.trouble > _CLEARLY:
                found[item.item.place] = item.likeliest, None
        for same, (earlier, later) in _pairs(lists[side]):
            if same > _SAME:
                found.setdefault(later.item.place, (Reason.DUPLICATE, earlier.item.number))
    for lost in lists[Side.LOSES]:
        for won in lists[Side.WINS]:
            if compare(won.item.read, lost.item.read)[1] >= limits["alike_from"]:
                found.setdefault(lost.item.place, (Reason.ON_BOTH_SIDES, won.item.number))
    if not found:
        worst = max((item for side in Side for item in lists[side]), key=lambda item: item.trouble)
        found[worst.item.place] = worst.likeliest, None
    return found


def _all(lists: Mapping[Side, Sequence[Weighed]], reason: Reason) -> dict[Place, Finding]:
    return {item.item.place: (reason, None) for side in Side for item in lists[side]}


def _pairs(items: Sequence[Weighed], weighed_by: Model | None = None) -> list[tuple[float, tuple[Weighed, Weighed]]]:
    """Every two entries of a list, with the log-odds that they tell of the same situation."""
    return [
        (compare(one.item.read, other.item.read, weighed_by)[0], (one, other)) for one, other in combinations(items, 2)
    ]
