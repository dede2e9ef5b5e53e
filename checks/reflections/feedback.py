"""Says to the learner what counted, what did not and why, and what is wanted, with one example.

The example is recognised when it is handed in (`form.copied`).
"""

from collections import Counter
from collections.abc import Mapping, Sequence

from checks.reflections.form.copied import EXAMPLES
from checks.reflections.items import Judged
from checks.reflections.reasons import Reason, Side
from grader_service.model.feedback import Advice, Feedback, NextStep, Severity

_QUOTED_CHARS = 64
_LISTED_ITEMS = 8

_WANTED = {
    Side.WINS: "Each should name a situation (which data, which machine) in which the GPU pays off, and why.",
    Side.LOSES: "Each should name a situation in which DALI brings nothing or costs more, and why.",
}
_WHY = {
    Reason.EMPTY: "it holds no words",
    Reason.TOO_SHORT: "it is too short to describe a situation",
    Reason.INJECTION: "it reads as if it addressed the grader, which has no effect here; describe a situation",
    Reason.UNFILLED: "it reads like a placeholder or a template that is still to be filled in",
    Reason.QUESTION: "it asks a question; say what you think happens",
    Reason.KEYWORDS: "it strings terms together; make it a statement",
    Reason.FRAGMENT: "it is a piece of a sentence that runs over several entries; put each situation into one entry",
    Reason.COPIED: "it repeats the text of the lab's pages or our example; use your own words and your own situation",
    Reason.DUPLICATE: "it describes the same situation as entry {twin}",
    Reason.ON_BOTH_SIDES: "entry {twin} of where_dali_wins says the same; one situation cannot stand on both sides",
    Reason.NONSENSE: "its words do not add up to a situation",
    Reason.VAGUE: "it stays general; say which situation you mean and what makes the difference there",
    Reason.UNTRUE: "what it says does not fit how data is loaded and prepared; check which part does what, and where",
    Reason.OFF_TOPIC: "it is not about where the time goes when data is loaded and prepared",
    Reason.OTHER_SIDE: "what it describes speaks for the other list",
    Reason.UNREAD: "it is in a language, or in words, that the automatic reading does not know",
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
        seen="They are concrete, distinct and on their side." + " Further entries were not needed." * bool(weak),
        advice=_on_entries(weak, Severity.NOTE),
        numbers={"wins": wins, "loses": loses},
    )


def advice(judged: Sequence[Judged], needed: Mapping[Side, int]) -> Feedback:
    """Feedback for a failure: what counted in each list, what each entry lacks, and an example."""
    short = [side for side in Side if counted(judged, side) < needed[side]]
    lacking = {side: needed[side] - counted(judged, side) for side in short}
    entries = " and ".join(f"{count} more in {side}" for side, count in lacking.items())
    weak = [item for item in judged if item.side in short and item.reason not in _FINE]
    cause = _CAUSES.get(code_of(judged, needed))
    first, *others = short
    return Feedback(
        outcome=f"The lists need {entries}." if cause is None else f"{cause}: {entries} are needed.",
        seen=f"Counted: {' and '.join(_counted(judged, side) for side in Side)}.",
        wanted=_WANTED[first],
        next=NextStep(text=f"Write entries for {first} like this one, from your own work:", code=EXAMPLES[first]),
        advice=(*(_example(side) for side in others), *_on_entries(weak, Severity.WARNING)),
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
            *(_example(side) for side in Side if any(item.side is side for item in doubtful)),
            *_on_entries(doubtful, Severity.NOTE, "perhaps "),
        ),
    )


def counted(judged: Sequence[Judged], side: Side) -> int:
    """How many entries of a list count."""
    return sum(item.counted for item in judged if item.side is side)


def _counted(judged: Sequence[Judged], side: Side) -> str:
    return f"{counted(judged, side)} of {sum(item.side is side for item in judged)} in {side}"


def _example(side: Side) -> Advice:
    return Advice(
        code="advice.example",
        severity=Severity.NOTE,
        text=f"In {side}, an entry like this one needs nobody to guess:",
        next=EXAMPLES[side],
    )


def _on_entries(items: Sequence[Judged], severity: Severity, perhaps: str = "") -> tuple[Advice, ...]:
    told = tuple(on_entry(item, severity, perhaps) for item in items[:_LISTED_ITEMS])
    if more := len(items) - len(told):
        told += (Advice(code="advice.more_entries", severity=severity, text=f"And {more} more entries like these."),)
    return told


def on_entry(item: Judged, severity: Severity, perhaps: str = "") -> Advice:
    """Why an entry does not count, or `perhaps` does not."""
    why = _WHY[item.reason].format(twin=item.twin)
    text = f"{item.side}, entry {item.number} ({_quote(item.text)}): {perhaps}{why}."
    return Advice(code=f"advice.entry_{item.reason.value}", severity=severity, text=text)


def _quote(text: str) -> str:
    shown = " ".join(text.split())
    return f'"{shown[:_QUOTED_CHARS]}{"..." if len(shown) > _QUOTED_CHARS else ""}"'
