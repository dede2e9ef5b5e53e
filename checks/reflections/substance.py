"""Decides whether one item, taken alone, is a scenario for its side.

An item counts with enough evidence for its side and none that outweighs it. One with a little less is *weak*: honest
texts use words that no list knows, so it may stand beside items that are beyond doubt.
"""

from dataclasses import dataclass

from checks.reflections.form import problem_of_form
from checks.reflections.reading import Reading
from checks.reflections.reasons import Reason, Side
from checks.reflections.sides import LOSS_NEEDED, LOSS_WEIGHTS, MEDIA, OTHER_INPUTS, WIN_NEEDED, Evidence, weigh

_TOPICS = frozenset(
    {
        *("image", "jpeg", "video", "audio", "hires", "rawformat", "photoset", "features", "text", "tabular"),
        "series",
        *("decode", "augment", "resize", "preproc", "loader", "pillow", "views", "hwdec", "infer"),
        *("gpu", "cpu", "core", "multi", "model", "lightmodel", "bigmodel", "storage", "memory", "bottle", "fast"),
        "dali",
    }
)  # fmt: skip
"""Concepts that only a text about computing names."""
_OTHER_TOPICS = frozenset(
    {
        *("effort", "overhead", "custom", "array", "server", "cloud", "util", "task", "datawords", "plainmemory"),
        *("scale", "seconds", "step", "slow", "idle"),
    }
)  # fmt: skip
_TELLING_WORDS, _TERSE_WORDS = 6.0, 4.0
_WEAK_WIN, _TERSE_LOSS, _OFF_TOPIC = 0.75, 0.25, 0.5
_OTHER_COSTS = frozenset(
    {"effort", "overhead", "faulty", "rawformat", "little_loading", "hidden", "slow_gpu", "sufficient"}
)
_LESS_TELLING = frozenset({"many_cores", "cached", "array", "compute", "smalldata"})
_FAR_AHEAD = 3.0
_OF_ANY_TALK = frozenset({"otherdata", "smalldata"})
"""Signs that a remark about the course may show as well."""
_DOUBTFUL = frozenset({Reason.VAGUE, Reason.OFF_TOPIC, Reason.NO_MODALITY, Reason.TOO_SHORT})


@dataclass(frozen=True)
class Assessment:
    """What became of one item by itself."""

    reason: Reason
    weak: bool = False
    """Not quite enough evidence, and none against it: it may stand beside items that are beyond doubt."""


def assess(reading: Reading, side: Side, raw: str, *, foreign: bool = False) -> Assessment:
    """Whether the item counts, or why it does not; `foreign` means a language that the lexicon does not cover."""
    evidence = weigh(reading)
    reason = problem_of_form(reading, raw) or _meaning(reading, evidence, side)
    weak = (
        reason in _DOUBTFUL
        and "claim" not in reading.concepts
        and (_may_win if side is Side.WINS else _may_lose)(reading, evidence)
    )
    if foreign and reason in _DOUBTFUL:
        weak = weak or (len(reading.concepts & _TOPICS) > 1 and reading.length >= _TELLING_WORDS)
    return Assessment(reason, weak)


def _may_win(reading: Reading, evidence: Evidence) -> bool:
    technical = len(reading.concepts & _TOPICS)
    return (
        evidence.win >= (_WEAK_WIN if reading.length < _TELLING_WORDS else _WEAK_WIN / 2)
        and evidence.loss <= evidence.win
        and technical > 0
        and "about" not in reading.concepts
    )


def _may_lose(reading: Reading, evidence: Evidence) -> bool:
    if "about" in reading.concepts:
        return False
    technical = len(reading.all & (_TOPICS | _OTHER_TOPICS | evidence.hard_losses))
    if evidence.loss >= LOSS_NEEDED / 2:
        return technical > 0 and evidence.win - evidence.loss < WIN_NEEDED
    return technical > 0 and reading.length >= _TELLING_WORDS / 2 and not evidence.hard_wins


def _meaning(reading: Reading, evidence: Evidence, side: Side) -> Reason:
    if side is Side.WINS:
        return _as_win(reading, evidence)
    return _as_loss(reading, evidence)


def _as_win(reading: Reading, evidence: Evidence) -> Reason:
    if evidence.win < WIN_NEEDED or not evidence.anchored:
        losses = evidence.hard_losses - {"compute"}
        if evidence.loss >= max(LOSS_NEEDED, evidence.win) and losses and "generic" not in reading.concepts:
            return Reason.OTHER_SIDE
        return _too_little(evidence)
    if "claim" in reading.concepts and not evidence.hard_wins - {"light_model", "large_media"}:
        return Reason.VAGUE
    if evidence.hard_losses & OTHER_INPUTS and _is_other_input(reading):
        return Reason.OTHER_SIDE
    if "few_and_many" in reading.facts or ("no_decoding" in reading.facts and evidence.hard_wins <= {"video"}):
        return Reason.CONTRADICTION
    if "tiny" in evidence.hard_losses and not evidence.hard_wins - {"large_media", "slow_cpu", "keepup"}:
        return Reason.OTHER_SIDE
    against = evidence.loss - sum(LOSS_WEIGHTS[name] for name in ("nothing_to_do", "negation") if name in reading.all)
    if evidence.hard_losses and len(evidence.hard_wins) <= 1 and against > evidence.win:
        return Reason.OTHER_SIDE
    return Reason.COUNTED


def _is_other_input(reading: Reading) -> bool:
    """Whether its data are text, tables and the like, whatever tools for media it names beside them."""
    tools = {hit.piece for hit in reading.hits if hit.concept in {"hwdec", "pillow"}}
    media = [hit for hit in reading.hits if hit.concept in MEDIA and hit.piece not in tools]
    other = [hit for hit in reading.hits if hit.concept in OTHER_INPUTS]
    if not media:
        return True
    terms = {reading.words[hit.piece].text for hit in other}
    return (
        min(hit.at for hit in other) < min(hit.at for hit in media)
        and len(terms) > len({reading.words[hit.piece].text for hit in media})
        and not reading.concepts & {"aside", "aside_before", "contrast", "negation"}
    )


def _as_loss(reading: Reading, evidence: Evidence) -> Reason:
    if "about" in reading.concepts and not reading.concepts & _TOPICS and evidence.hard_losses <= _OF_ANY_TALK:
        return Reason.NO_MODALITY
    if evidence.loss < LOSS_NEEDED or (evidence.loss < LOSS_NEEDED + _TERSE_LOSS and reading.length < _TERSE_WORDS):
        if evidence.win >= WIN_NEEDED and evidence.hard_wins and not evidence.hard_losses:
            return Reason.OTHER_SIDE
        return Reason.NO_MODALITY if evidence.win + evidence.loss < WIN_NEEDED / 2 else _too_little(evidence)
    if evidence.hard_losses and evidence.hard_losses <= OTHER_INPUTS and "much_decoding" in reading.facts:
        return Reason.CONTRADICTION
    hard_wins = evidence.hard_wins - {"keepup"}
    if reading.concepts & {"aside", "aside_before"} and evidence.loss >= LOSS_NEEDED:
        return Reason.COUNTED  # what it sets itself off from may well be the other side
    if not evidence.hard_losses and hard_wins and not reading.all & _OTHER_COSTS:
        return Reason.OTHER_SIDE
    if evidence.hard_losses <= _LESS_TELLING and len(hard_wins) > 1 and evidence.win - evidence.loss >= _FAR_AHEAD:
        return Reason.OTHER_SIDE
    return Reason.COUNTED


def _too_little(evidence: Evidence) -> Reason:
    return Reason.OFF_TOPIC if evidence.win + evidence.loss <= _OFF_TOPIC else Reason.VAGUE
