"""Says to the learner what counted, what did not and why, and what is wanted, with one example.

The example is recognised when it is handed in (`checks.prose.copied`).
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from itertools import chain

from checks.api import Advice, Result, Severity, failed, inconclusive, passed
from checks.listing import listed
from checks.prose.copied import EXAMPLES
from checks.reflections.items import Item, Reason, Side
from checks.reflections.judging import Judgement

_QUOTED_CHARS = 64
_WANTED = {
    Side.WINS: "An entry of where_dali_wins names a situation (which data, which machine) and why the GPU pays off.",
    Side.LOSES: "An entry of where_dali_loses names a situation and why DALI brings nothing there, or costs more.",
}
_CODES = {Reason.ON_BOTH_SIDES: "same_lists", Reason.OTHER_SIDE: "swapped_sides"}
"""Of reasons that are no codes themselves; all others but those of `CAUSES` are `not_substantive`."""
CAUSES = {
    "injection": "An entry addresses the grader, which has no effect",
    "copied": "Entries repeat the lab's page or our example",
    "same_lists": "The same entries stand in both lists",
    "duplicate": "Entries of one list describe the same situation",
    "off_topic": "Entries are not about loading and preparing data",
    "not_substantive": "Entries stay too general to count",
    "swapped_sides": "The two lists look swapped",
}
"""Code of a failure → what it comes from, before what is lacking. Of as many reasons the first one names the failure,
swapped lists the last, which are swapped throughout."""


def praise(found: Judgement) -> Result:
    """A pass."""
    wins, loses = map(_counted, found.lists.values())
    weak = _weak(found)
    return passed(
        f"{wins} situations where DALI wins and {loses} where it loses counted.",
        seen="Further entries were not needed." if weak else "",
        advice=on_entries(weak, Severity.NOTE),
        numbers={"wins": wins, "loses": loses},
        details=found.details,
    )


def waiting(found: Judgement) -> Result:
    """While a person has not decided yet."""
    doubtful = _weak(found)
    return inconclusive(
        "needs_review",
        "A person will read both lists, because the automatic reading is not certain about them.",
        seen="No points are lost so far.",
        next="Wait for the result: it comes again once it is decided.",
        advice=(
            *on_entries(doubtful, Severity.NOTE, "perhaps "),
            *(_example(side) for side in Side if any(item.side is side for item in doubtful)),
        ),
        details=found.details,
    )


def shortfall(found: Judgement, needed: Mapping[Side, int], one_texts: Collection[Side]) -> Result:
    """A failure: what counted in each list, what each entry lacks, and an example."""
    lacking = {side: needed[side] - _counted(items) for side, items in found.lists.items()}
    lacking = {side: count for side, count in lacking.items() if count > 0}
    weak = [item for item in _weak(found) if item.side in lacking]
    code = _code(weak)
    entries = " and ".join(f"{count} more in {side}" for side, count in lacking.items())
    action = f"{'Write them anew, or add others' if weak else 'Add entries'}: your own situations, and why."
    examples = [_example(side) for side in lacking]
    if code == "swapped_sides":
        after = {side: needed[side] - len(found.lists[other]) for side, other in zip(Side, reversed(Side), strict=True)}
        adding = " and ".join(f"{count} more to {side}" for side, count in after.items() if count > 0)
        action = f"Exchange the contents of the two lists{adding and ', and add '}{adding}."
        examples = []
    total = sum(needed.values())
    return failed(
        code,
        f"{CAUSES[code]}: {entries} are needed." if code in CAUSES else f"The lists need {entries}.",
        score=(total - sum(lacking.values())) / total,
        seen=" ".join(_seen(side, items, needed[side]) for side, items in found.lists.items()),
        next=action,
        advice=(
            *(_one_text(side) for side in lacking if side in one_texts),
            *on_entries(weak, Severity.WARNING),
            *examples,
        ),
        numbers={f"{side}_lacking": count for side, count in lacking.items()},
        details=found.details,
    )


def _code(weak: Sequence[Item]) -> str:
    """The commonest reason in the lists that fell short names the failure; an order does so alone."""
    reasons = {item.reason for item in weak}
    if Reason.INJECTION in reasons:
        return "injection"
    if reasons <= {Reason.EMPTY}:
        return "too_few"
    codes = [_CODES.get(item.reason, item.reason.value) for item in weak]
    counts = Counter(code if code in CAUSES else "not_substantive" for code in codes)
    return max(CAUSES, key=lambda code: counts[code])


def _counted(items: Sequence[Item]) -> int:
    return sum(item.counted for item in items)


def _weak(found: Judgement) -> list[Item]:
    return [item for item in chain(*found.lists.values()) if item.reason.told]


def _seen(side: Side, items: Sequence[Item], needed: int) -> str:
    entries = "entry" if len(items) == 1 else "entries"
    return f"{side} has {len(items)} {entries}; {_counted(items)} of {needed} needed count."


def _one_text(side: Side) -> Advice:
    return Advice(
        code="advice.one_text",
        text=f"`{side}` is one text in place of a list: it counts once, however many situations it names.",
        next=f'Write a list with a text for each situation: {side} = ["…", "…"].',
    )


def _example(side: Side) -> Advice:
    told = f"For instance: {EXAMPLES[side]}"
    return Advice(code="advice.example", severity=Severity.NOTE, text=_WANTED[side], next=told)


def on_entries(items: Sequence[Item], severity: Severity, perhaps: str = "") -> tuple[Advice, ...]:
    """For each reason why entries do not count, or `perhaps` do not, all of them; the commonest first."""
    groups: dict[Reason, list[Item]] = {}
    for item in items:
        groups.setdefault(item.reason, []).append(item)
    return tuple(
        Advice(code=f"advice.entry_{reason}", severity=severity, text=f"{_named(group)}: {perhaps}{reason.told}.")
        for reason, group in sorted(groups.items(), key=lambda one: len(one[1]), reverse=True)
    )


def _named(items: Sequence[Item]) -> str:
    """One entry with its first words, several by their numbers."""
    if len(items) == 1:
        shown = " ".join(items[0].text.split())
        quoted = f"{shown[:_QUOTED_CHARS]}{'...' if len(shown) > _QUOTED_CHARS else ''}"
        return f'{items[0].side}, entry {items[0].number} ("{quoted}")'
    sides = {side: [item.number for item in items if item.side is side] for side in Side}
    return " and ".join(
        f"{side}, {'entry' if len(numbers) == 1 else 'entries'} {listed(numbers)}"
        for side, numbers in sides.items()
        if numbers
    )
