"""Goes through both lists and finds the entries that do not count whatever they are about, and the doubtful ones."""

from collections.abc import Mapping, Sequence

from checks.reflections.form.copied import is_copied
from checks.reflections.form.cut import pieces_of_a_sentence
from checks.reflections.form.injection import is_for_machines
from checks.reflections.form.keywords import is_keywords
from checks.reflections.form.question import is_question
from checks.reflections.form.repeated import same_words
from checks.reflections.form.unfilled import is_unfilled
from checks.reflections.items import Item
from checks.reflections.reasons import Finding, Place, Reason, Side
from checks.reflections.text import is_unspaced, words

_FEWEST_LETTERS = 3
_REPEATED = 2
"""One entry may be a list of terms."""


def sift(lists: Mapping[Side, Sequence[Item]]) -> dict[Place, Finding]:
    """Side and number of each entry that does not count, and why."""
    found: dict[Place, Finding] = {}
    for side in Side:
        for item in lists[side]:
            reason = _problem(item)
            if reason:
                found[item.place] = reason, None
    found.update(_repeated(lists, found))
    return found


def doubts(lists: Mapping[Side, Sequence[Item]]) -> dict[Place, Finding]:
    """Side and number of entries whose form a person should look at before they count.

    Pieces of one sentence, lists of terms and questions: honest lists may look like each of them.
    """
    every = [item for side in Side for item in lists[side]]
    listing = [item for item in every if is_keywords(item.read)]
    asking = [item for item in every if is_question(item.text)]
    found: dict[Place, Finding] = {}
    for side in Side:
        for place in pieces_of_a_sentence([item.read for item in lists[side]]):
            found[lists[side][place].place] = Reason.FRAGMENT, None
    for item in listing if len(listing) >= _REPEATED else []:
        found[item.place] = Reason.KEYWORDS, None
    for item in asking if 2 * len(asking) > len(every) else []:
        found[item.place] = Reason.QUESTION, None
    return found


def _problem(item: Item) -> Reason | None:
    """What is wrong with one entry by itself."""
    if not words(item.read):
        return Reason.EMPTY
    if is_for_machines(item.text):
        return Reason.INJECTION
    if is_unfilled(item.read):
        return Reason.UNFILLED
    if _letters(item.read) < _FEWEST_LETTERS:
        return Reason.TOO_SHORT
    return Reason.COPIED if is_copied(item.read) else None


def _letters(text: str) -> int:
    """How many letters a text has; one that stands for a syllable or a word counts as several."""
    return sum(len(word) * (_FEWEST_LETTERS if is_unspaced(word) else 1) for word in words(text) if not word.isdigit())


def _repeated(lists: Mapping[Side, Sequence[Item]], known: Mapping[Place, Finding]) -> dict[Place, Finding]:
    """Entries that say in the same words what an earlier one, or one of the other list, says."""
    left = {side: [item for item in lists[side] if item.place not in known] for side in Side}
    found: dict[Place, Finding] = {}
    for item in left[Side.LOSES]:
        twin = next((won.number for won in left[Side.WINS] if same_words(item.read, won.read, numbers=True)), None)
        if twin:
            found[item.place] = Reason.ON_BOTH_SIDES, twin
    for side in Side:
        kept: list[Item] = []
        for item in left[side]:
            twin = next((earlier.number for earlier in kept if same_words(item.read, earlier.read)), None)
            if twin:
                found.setdefault(item.place, (Reason.DUPLICATE, twin))
            else:
                kept.append(item)
    return found
