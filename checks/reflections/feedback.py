"""Says to the learner what counted, what did not and why, and what is wanted, with one example.

The example is recognised when it is handed in (`form.copied`).
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from checks.listing import listed
from checks.reflections.form.copied import EXAMPLES
from checks.reflections.items import Judged
from checks.reflections.reasons import Reason, Side
from grader_service.model.feedback import Advice, Feedback, NextStep, Severity

_QUOTED_CHARS = 64

_WANTED = {
    Side.WINS: "An entry of where_dali_wins names a situation (which data, which machine) and why the GPU pays off.",
    Side.LOSES: "An entry of where_dali_loses names a situation and why DALI brings nothing there, or costs more.",
}
_WHY = {
    Reason.EMPTY: "no words",
    Reason.TOO_SHORT: "too short to describe a situation",
    Reason.INJECTION: "addressed to the grader, which has no effect here; describe a situation",
    Reason.UNFILLED: "a placeholder or a template that is still to be filled in",
    Reason.QUESTION: "a question; say what you think happens",
    Reason.KEYWORDS: "terms in a row; make a statement of them",
    Reason.FRAGMENT: "a piece of a sentence that runs over several entries; put each situation into one entry",
    Reason.COPIED: "the text of the lab's pages or our example; use your own words and your own situation",
    Reason.DUPLICATE: "the same situation as an earlier entry",
    Reason.ON_BOTH_SIDES: "in the other list, too; one situation cannot stand on both sides",
    Reason.NONSENSE: "words that do not add up to a situation",
    Reason.VAGUE: "too general; say which situation you mean and what makes the difference there",
    Reason.UNTRUE: "does not fit how data is loaded and prepared; check which part does what, and where",
    Reason.OFF_TOPIC: "not about where the time goes when data is loaded and prepared",
    Reason.OTHER_SIDE: "what is said there belongs in the other list",
    Reason.UNREAD: "in a language, or in words, that the automatic reading does not know",
}
_FINE = frozenset({Reason.COUNTED, Reason.NOT_NEEDED})
_CODES = {
    Reason.INJECTION: "reflections.injection",
    Reason.COPIED: "reflections.copied",
    Reason.ON_BOTH_SIDES: "reflections.same_lists",
    Reason.DUPLICATE: "reflections.duplicate",
    Reason.OFF_TOPIC: "reflections.off_topic",
    Reason.VAGUE: "reflections.not_substantive",
    Reason.OTHER_SIDE: "reflections.swapped_sides",
}
"""Of as many reasons the first one names the failure (swapped lists are swapped throughout); those that are not here go
with `VAGUE`."""
_CAUSES = {
    "reflections.injection": "An entry addresses the grader, which has no effect",
    "reflections.copied": "Entries repeat the lab's page or our example",
    "reflections.same_lists": "The same entries stand in both lists",
    "reflections.duplicate": "Entries of one list describe the same situation",
    "reflections.off_topic": "Entries are not about loading and preparing data",
    "reflections.not_substantive": "Entries stay too general to count",
    "reflections.swapped_sides": "The two lists look swapped",
}
"""What a failure of a code comes from, before what is lacking."""


def code_of(judged: Sequence[Judged], needed: Mapping[Side, int]) -> str:
    """The code of a failure: the commonest reason in the lists that fell short."""
    short = [side for side in Side if counted(judged, side) < needed[side]]
    reasons = Counter(item.reason for item in judged if item.side in short and item.reason not in _FINE)
    if reasons[Reason.INJECTION]:
        return _CODES[Reason.INJECTION]
    if not reasons or all(
        len([item for item in judged if item.side is side and item.reason is not Reason.EMPTY]) == counted(judged, side)
        for side in short
    ):
        return "reflections.too_few"
    codes = Counter[str]()
    for reason, count in reasons.items():
        codes[_CODES.get(reason, _CODES[Reason.VAGUE])] += count
    order = list(_CODES.values())
    return min(codes, key=lambda code: (-codes[code], order.index(code)))


def praise(judged: Sequence[Judged]) -> Feedback:
    """Feedback for a pass."""
    wins, loses = counted(judged, Side.WINS), counted(judged, Side.LOSES)
    weak = [item for item in judged if not item.counted and item.reason is not Reason.NOT_NEEDED]
    return Feedback(
        outcome=f"{wins} situations where DALI wins and {loses} where it loses counted.",
        seen="Further entries were not needed." if weak else "",
        advice=_on_entries(weak, Severity.NOTE),
        numbers={"wins": wins, "loses": loses},
    )


def advice(judged: Sequence[Judged], needed: Mapping[Side, int], one_texts: Collection[Side] = ()) -> Feedback:
    """Feedback for a failure: what counted in each list, what each entry lacks, and an example.

    Args:
        judged: every entry of both lists.
        needed: how many have to count.
        one_texts: the lists that were one text.
    """
    short = [side for side in Side if counted(judged, side) < needed[side]]
    lacking = {side: needed[side] - counted(judged, side) for side in short}
    entries = " and ".join(f"{count} more in {side}" for side, count in lacking.items())
    weak = [item for item in judged if item.side in short and item.reason not in _FINE]
    code = code_of(judged, needed)
    cause = _CAUSES.get(code)
    action = f"{'Write them anew, or add others' if weak else 'Add entries'}: your own situations, and why."
    if swapped := code == "reflections.swapped_sides":
        given = {side: sum(item.side is side for item in judged) for side in Side}
        after = {side: needed[side] - given[other] for side, other in zip(Side, reversed(Side), strict=True)}
        short_then = [f"{count} more to {side}" for side, count in after.items() if count > 0]
        action = (
            f"Exchange the contents of the two lists{', and add ' + ' and '.join(short_then) if short_then else ''}."
        )
    return Feedback(
        outcome=f"The lists need {entries}." if cause is None else f"{cause}: {entries} are needed.",
        seen=" ".join(_counted(judged, side, needed[side]) for side in Side),
        next=NextStep(text=action),
        advice=(
            *(_one_text(side) for side in short if side in one_texts),
            *_on_entries(weak, Severity.WARNING),
            *(_example(side) for side in short if not swapped),
        ),
        numbers={f"{side.value}_lacking": count for side, count in lacking.items()},
    )


def waiting(judged: Sequence[Judged]) -> Feedback:
    """Feedback while a person has not decided yet."""
    doubtful = [item for item in judged if item.reason not in _FINE]
    return Feedback(
        outcome="A person will read both lists, because the automatic reading is not certain about them.",
        seen="No points are lost so far.",
        next=NextStep(text="Wait for the result: it comes again once it is decided."),
        advice=(
            *_on_entries(doubtful, Severity.NOTE, "perhaps "),
            *(_example(side) for side in Side if any(item.side is side for item in doubtful)),
        ),
    )


def _counted(judged: Sequence[Judged], side: Side, needed: int) -> str:
    given = sum(item.side is side for item in judged)
    return (
        f"{side} has {given} {'entry' if given == 1 else 'entries'}; {counted(judged, side)} of {needed} needed count."
    )


def _one_text(side: Side) -> Advice:
    return Advice(
        code="advice.one_text",
        text=f"`{side}` is one text in place of a list: it counts once, however many situations it names.",
        next=f'Write a list with a text for each situation: {side} = ["…", "…"].',
    )


def _example(side: Side) -> Advice:
    return Advice(
        code="advice.example",
        severity=Severity.NOTE,
        text=_WANTED[side],
        next=f"For instance: {EXAMPLES[side]}",
    )


def _on_entries(items: Sequence[Judged], severity: Severity, perhaps: str = "") -> tuple[Advice, ...]:
    """One piece of advice for each reason, with all entries that it is about, the commonest first."""
    groups: dict[Reason, list[Judged]] = {}
    for item in items:
        groups.setdefault(item.reason, []).append(item)
    return tuple(on_entries(group, severity, perhaps) for group in sorted(groups.values(), key=len, reverse=True))


def counted(judged: Sequence[Judged], side: Side) -> int:
    """How many entries of a list count."""
    return sum(item.counted for item in judged if item.side is side)


def on_entries(items: Sequence[Judged], severity: Severity, perhaps: str = "") -> Advice:
    """Why entries do not count, or `perhaps` do not: all for the same reason."""
    reason = items[0].reason
    if len(items) == 1:
        (item,) = items
        which = f"{item.side}, entry {item.number} ({_quote(item.text)})"
    else:
        sides = {side: [item.number for item in items if item.side is side] for side in Side}
        which = " and ".join(
            f"{side}, {'entry' if len(numbers) == 1 else 'entries'} {listed(numbers)}"
            for side, numbers in sides.items()
            if numbers
        )
    text = f"{which}: {perhaps}{_WHY[reason]}."
    return Advice(code=f"advice.entry_{reason.value}", severity=severity, text=text)


def _quote(text: str) -> str:
    shown = " ".join(text.split())
    return f'"{shown[:_QUOTED_CHARS]}{"..." if len(shown) > _QUOTED_CHARS else ""}"'
