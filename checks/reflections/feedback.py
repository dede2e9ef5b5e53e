"""Says to the learner what counted, what did not and why, and what is wanted.

The reasons are named, the words that the judge looks for are not.
"""

from collections import Counter
from collections.abc import Sequence

from checks.reflections.judging import Judged
from checks.reflections.reasons import Reason, Side

_QUOTED_CHARS = 64
_LISTED_ITEMS = 8

_WANTED = {
    Side.WINS: (
        "Each entry should name one concrete situation (which data, which machine or model) in which moving the "
        "preparation of media to the GPU pays off, and hint at why."
    ),
    Side.LOSES: (
        "Each entry should name one concrete situation in which DALI brings nothing or costs more than it gives, and "
        "hint at why: there is little to decode or transform, or something else sets the pace."
    ),
}
_WHY = {
    Reason.EMPTY: "it is empty",
    Reason.TOO_SHORT: "it is too short to describe a situation",
    Reason.INJECTION: "it addresses the grader instead of describing a situation; such text has no effect here",
    Reason.FILLER: "it reads like a placeholder",
    Reason.QUESTION: "it asks a question; say what you think happens",
    Reason.KEYWORDS: "it strings terms together; make it a statement",
    Reason.NONSENSE: "its words do not add up to a situation",
    Reason.CONTRADICTION: "it contradicts itself",
    Reason.VAGUE: "it stays general; say which situation you mean and what makes the difference there",
    Reason.OFF_TOPIC: "it is not about where the time goes when data is loaded and prepared",
    Reason.NO_MODALITY: "it is neither about the kind of data nor about another bottleneck or cost",
    Reason.OTHER_SIDE: "what it describes speaks for the other list",
    Reason.FRAGMENT: "it is a piece of a sentence that runs over several entries; put each situation into one entry",
    Reason.COPIED: "it repeats the text of the lab's pages; use your own words and your own situation",
    Reason.DUPLICATE: "it describes the same situation as entry {twin}",
    Reason.ON_BOTH_SIDES: "entry {twin} of where_dali_wins says the same; one situation cannot stand on both sides",
}
_CODES = {
    Reason.INJECTION: "reflections.injection",
    Reason.COPIED: "reflections.copied",
    Reason.ON_BOTH_SIDES: "reflections.same_lists",
    Reason.OTHER_SIDE: "reflections.swapped_sides",
    Reason.DUPLICATE: "reflections.duplicate",
    Reason.NO_MODALITY: "reflections.no_modality",
    Reason.OFF_TOPIC: "reflections.off_topic",
}
"""Most telling first; every other reason is `reflections.not_substantive`."""
_NOT_SUBSTANTIVE = "reflections.not_substantive"


def code_of(judged: Sequence[Judged], needed: dict[Side, int]) -> str:
    """The code of a failure: the commonest reason in the lists that fell short."""
    short = [side for side in Side if _good(judged, side) < needed[side]]
    reasons = Counter(item.reason for item in judged if item.side in short and not item.counted)
    if reasons[Reason.INJECTION]:
        return _CODES[Reason.INJECTION]
    if not reasons or all(
        len([item for item in judged if item.side is side and item.reason is not Reason.EMPTY]) == _good(judged, side)
        for side in short
    ):
        return "reflections.too_few"
    codes = Counter[str]()
    for reason, count in reasons.items():
        codes[_CODES.get(reason, _NOT_SUBSTANTIVE)] += count
    order = [*_CODES.values(), _NOT_SUBSTANTIVE]
    return min(codes, key=lambda code: (-codes[code], order.index(code)))


def praise(judged: Sequence[Judged]) -> str:
    """Feedback for a pass."""
    wins, loses = _good(judged, Side.WINS), _good(judged, Side.LOSES)
    text = (
        f"{wins} situations where DALI wins and {loses} where it loses counted: concrete, distinct and on their side."
    )
    weak = [item for item in judged if not item.counted and item.reason is not Reason.NOT_NEEDED]
    if weak:
        text += " Further entries were not needed; not counted: " + "; ".join(map(_line, weak[:_LISTED_ITEMS])) + "."
    return text


def advice(judged: Sequence[Judged], needed: dict[Side, int]) -> str:
    """Feedback for a failure, one paragraph for each list."""
    parts = []
    for side in Side:
        good = _good(judged, side)
        if good >= needed[side]:
            parts.append(f"{side}: {good} entries count, which is enough.")
            continue
        own = [item for item in judged if item.side is side]
        given = f"{len(own)} {'entry' if len(own) == 1 else 'entries'} given"
        parts.append(f"{side}: {good} of at least {needed[side]} needed entries count ({given}). {_WANTED[side]}")
        weak = [item for item in own if not item.counted]
        parts.extend(f"- {_line(item)}." for item in weak[:_LISTED_ITEMS])
        if len(weak) > _LISTED_ITEMS:
            parts.append(f"- and {len(weak) - _LISTED_ITEMS} more.")
    return "\n".join(parts)


def _line(item: Judged) -> str:
    return (
        f"entry {item.number} ({_quote(item.text)}): {_WHY.get(item.reason, item.reason.value).format(twin=item.twin)}"
    )


def _quote(text: str) -> str:
    shown = " ".join(text.split())
    return f'"{shown[:_QUOTED_CHARS]}{"..." if len(shown) > _QUOTED_CHARS else ""}"'


def _good(judged: Sequence[Judged], side: Side) -> int:
    return sum(item.counted for item in judged if item.side is side)
