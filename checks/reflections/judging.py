"""Judges both lists: form by rules, then meaning by the text model. They are good, or not, or for a person to read.

A few numbers ("signals") describe both lists; their weighted sum is compared with two thresholds. Weights and
thresholds come from `bench/reflections_train.py`, which sees the signals that are made here.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, combinations, product
from math import log2

from pydantic import JsonValue

from checks.prose.text import length
from checks.reflections.items import Item, Lists, Reason, Side, items_of
from checks.reflections.meaning.model import HEADS, Model, model
from checks.reflections.sifting import doubt, sift
from grader_service.model.verdict import Outcome

FLAWS = {flaw: Reason.NONSENSE if flaw in ("salad", "dream") else Reason(flaw) for flaw in HEADS[3:]}
"""Heads of the text model that speak against an entry, and what is said of it then."""
_FAR = 6.0
"""Log-odds beyond which more says nothing."""
_CLEARLY = 1.0
"""Log-odds from which on something is named that speaks against an entry."""
_SURELY = 2.0
"""Log-odds against an entry from which on it does not count in lists that fall short anyway."""
_SAME = 1.0
"""Log-odds from which on two entries are named as one situation."""
_WAYS: Mapping[str, Callable[[Sequence[float]], float]] = {
    "most": max,
    "least": min,
    "next": lambda values: sorted(values)[:2][-1],
    "mean": lambda values: sum(values) / len(values),
    "over": lambda values: max(0.0, *values),
    "against": lambda values: min(0.0, *values),
}
"""How a signal sums values up."""


@dataclass(frozen=True)
class Judgement:
    """What became of both lists."""

    outcome: Outcome
    """Passed, failed, or inconclusive: a person decides."""
    lists: Lists
    """Every entry. Where a person decides, those that something speaks against are not counted yet."""
    figures: Mapping[str, float]
    """What was compared: `sum` with its thresholds, `side` and `same` of each list, `across.likeness`, `known`; empty
    where form alone decided."""

    @property
    def details(self) -> dict[str, JsonValue]:
        """For staff: each entry, and what was compared."""
        entries = {side.value: [_entry(item) for item in items] for side, items in self.lists.items()}
        return {**entries, "figures": dict(self.figures)}


def _entry(item: Item) -> JsonValue:
    twin = {} if item.twin is None else {"twin": item.twin}
    return {"index": item.number, "counted": item.counted, "reason": item.reason.value, **twin}


def judge_lists(wins: Sequence[str], loses: Sequence[str], needed: Mapping[Side, int]) -> Judgement:
    """Judges every entry of both lists; as many good ones as needed are enough."""
    used, lists = model(), items_of(wins, loses)
    limits, every = used.thresholds, list(chain(*lists.values()))
    sift(lists)
    known = used.share_known([item.read for item in every if item.counted])
    read = known >= limits["known_from"]
    orders = {item: used.order_in(item.read) for item in every}
    for item in every:
        if read and orders[item] >= limits["order_from"]:
            item.drop(Reason.INJECTION)
    left = {side: [item for item in items if item.counted] for side, items in lists.items()}
    for item in chain(*left.values()):
        item.scores = scores_of(item, used.scores(item.read))
    if any(len(left[side]) < needed[side] for side in Side):
        if read:
            _drop_weak(chain(*left.values()), _SURELY)
        return Judgement(Outcome.FAILED, lists, {})
    best = {side: chosen(left[side], needed[side], used) for side in Side}
    taken = list(chain(*best.values()))
    rest = [item for item in chain(*left.values()) if item not in taken]
    _drop_weak(rest, _SURELY)
    for item in rest:
        item.drop(Reason.NOT_NEEDED)
    seen = signals(best, used)
    total = used.weigh(seen)
    if total >= limits["good_from"]:
        doubt(best)
        for item in taken:
            if orders[item] >= limits["maybe_order_from"]:
                item.drop(Reason.INJECTION)
        outcome = Outcome.PASSED if all(item.counted for item in taken) else Outcome.INCONCLUSIVE
    elif read:
        _drop_faulty(best, seen, used)
        outcome = Outcome.FAILED if total <= limits["not_good_to"] else Outcome.INCONCLUSIVE
    else:
        for item in taken:
            item.drop(Reason.UNREAD)
        outcome = Outcome.INCONCLUSIVE
    figures = {
        "sum": total,
        "known": known,
        **{name: limits[name] for name in ("good_from", "not_good_to", "known_from")},
        **{f"{side}.side": seen[f"{side}.side.mean"] for side in Side},
        **{f"{side}.same": seen[f"{side}.same.most"] for side in Side},
        "across.likeness": seen["across.likeness.most"],
    }
    return Judgement(outcome, lists, {name: round(value, 3) for name, value in figures.items()})


def scores_of(item: Item, said: Mapping[str, float]) -> dict[str, float]:
    """Head to log-odds within ±6, of an entry of whose text the model says this.

    `side` is positive when it speaks for the list it stands in, `fits` when it would stand there as a good one.
    """
    found = {head: _near(value) for head, value in said.items()}
    own, towards = ("win", 1.0) if item.side is Side.WINS else ("loss", -1.0)
    return found | {"side": towards * found["side"], "fits": found[own]}


def chosen(items: Sequence[Item], needed: int, used: Model) -> list[Item]:
    """The best entries of a list, in their order, as many as are needed: further ones cost nothing.

    Of entries that tell of one situation the better one is taken, as long as others are left.
    """
    best: list[Item] = []
    spare: list[Item] = []
    for item in sorted(items, key=lambda item: (_trouble(item), item.number)):
        again = len(items) > needed and any(used.compare(item.read, taken.read)[0] > _SAME for taken in best)
        (spare if again or len(best) >= needed else best).append(item)
    return sorted([*best, *spare][:needed], key=lambda item: item.number)


def signals(lists: Lists, used: Model) -> dict[str, float]:
    """Describes both lists; each holds at least one entry."""
    found: dict[str, float] = {}
    for side, own in lists.items():
        for flaw in FLAWS:
            values = sorted((item.scores[flaw] for item in own), reverse=True)
            found |= _summed(f"{side}.{flaw}", values, "most", "mean", "over")
        found |= _summed(f"{side}.side", sorted(item.scores["side"] for item in own), "least", "mean", "against")
        fits = sorted(item.scores["fits"] for item in own)
        found |= _summed(f"{side}.fits", fits, "least", "next", "mean", "against")
        found |= _summed(f"{side}.trouble", [_trouble(item) for item in own], "most", "over")
        same = [_near(value) for value, _ in _pairs(own, used)] or [-_FAR]
        found |= _summed(f"{side}.same", same, "most", "mean", "over")
        found[f"{side}.length"] = log2(1 + min(length(item.read) for item in own))
    compared = [used.compare(won.read, lost.read) for won, lost in product(lists[Side.WINS], lists[Side.LOSES])]
    found |= _summed("across.likeness", [alike for _, alike in compared], "most", "mean")
    return found | _summed("across.same", [_near(same) for same, _ in compared], "most", "mean")


def _summed(name: str, values: Sequence[float], *ways: str) -> dict[str, float]:
    return {f"{name}.{way}": _WAYS[way](values) for way in ways}


def _near(value: float) -> float:
    """Log-odds within ±6."""
    return max(-_FAR, min(_FAR, value))


def _trouble(item: Item) -> float:
    """How much speaks against an entry; 0 is even."""
    return max(-item.scores["side"], *(item.scores[flaw] for flaw in FLAWS))


def _likeliest(item: Item) -> Reason:
    """The reason that most speaks for; the other side only for what would stand there, an order only for orders."""
    orders = model().order_in(item.read) >= model().thresholds["maybe_order_from"]
    elsewhere = item.scores["loss" if item.side is Side.WINS else "win"]
    found = [(min(-item.scores["side"], elsewhere), Reason.OTHER_SIDE)]
    found += [(item.scores[flaw], reason) for flaw, reason in FLAWS.items() if flaw != "injection" or orders]
    return max(found, key=lambda one: one[0])[1]


def _drop_weak(items: Iterable[Item], above: float) -> None:
    """Those that more speaks against than `above`."""
    for item in items:
        if _trouble(item) > above:
            item.drop(_likeliest(item))


def _drop_faulty(lists: Lists, seen: Mapping[str, float], used: Model) -> None:
    """Those that something speaks against, at least one."""
    every = list(chain(*lists.values()))
    if all(seen[f"{side}.side.mean"] < 0 for side in Side):
        for item in every:
            item.drop(Reason.OTHER_SIDE)
    _drop_weak(every, _CLEARLY)
    for items in lists.values():
        for same, (earlier, later) in _pairs(items, used):
            if same > _SAME:
                later.drop(Reason.DUPLICATE, earlier.number)
    for lost, won in product(lists[Side.LOSES], lists[Side.WINS]):
        if used.compare(won.read, lost.read)[1] >= used.thresholds["alike_from"]:
            lost.drop(Reason.ON_BOTH_SIDES, won.number)
    if all(item.counted for item in every):
        worst = max(every, key=_trouble)
        worst.drop(_likeliest(worst))


def _pairs(items: Sequence[Item], used: Model) -> list[tuple[float, tuple[Item, Item]]]:
    """Every two entries of a list, with the log-odds that they tell of the same situation."""
    return [(used.compare(one.read, other.read)[0], (one, other)) for one, other in combinations(items, 2)]
