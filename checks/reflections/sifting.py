"""Goes through both lists and drops the entries that do not count whatever they are about, and the doubtful ones."""

from itertools import chain

from checks.prose.copied import is_copied
from checks.prose.form import is_for_machines, is_keywords, is_question, is_unfilled, pieces_of_a_sentence, same_words
from checks.prose.text import is_unspaced, words
from checks.reflections.items import Item, Lists, Reason, Side

_FEWEST_LETTERS = 3
_REPEATED = 2
"""One entry may be a list of terms."""


def sift(lists: Lists) -> None:
    """Drops the entries that do not count."""
    for item in chain(*lists.values()):
        item.drop(_problem(item))
    _drop_repeated({side: [item for item in items if item.counted] for side, items in lists.items()})


def doubt(lists: Lists) -> None:
    """Drops entries whose form a person should look at before they count.

    Pieces of one sentence, lists of terms and questions: honest lists may look like each of them.
    """
    every = list(chain(*lists.values()))
    asking = [item for item in every if is_question(item.text)]
    for item in asking if 2 * len(asking) > len(every) else []:
        item.drop(Reason.QUESTION)
    listing = [item for item in every if is_keywords(item.read)]
    for item in listing if len(listing) >= _REPEATED else []:
        item.drop(Reason.KEYWORDS)
    for items in lists.values():
        for place in pieces_of_a_sentence([item.read for item in items]):
            items[place].drop(Reason.FRAGMENT)


def _problem(item: Item) -> Reason:
    """What is wrong with one entry by itself; `COUNTED` where nothing is."""
    if not words(item.read):
        return Reason.EMPTY
    if is_for_machines(item.text):
        return Reason.INJECTION
    if is_unfilled(item.read):
        return Reason.UNFILLED
    if _letters(item.read) < _FEWEST_LETTERS:
        return Reason.TOO_SHORT
    return Reason.COPIED if is_copied(item.read) else Reason.COUNTED


def _letters(text: str) -> int:
    """How many letters a text has; one that stands for a syllable or a word counts as several."""
    return sum(len(word) * (_FEWEST_LETTERS if is_unspaced(word) else 1) for word in words(text) if not word.isdigit())


def _drop_repeated(lists: Lists) -> None:
    """Entries that say in the same words what an earlier one, or one of the other list, says."""
    for lost in lists[Side.LOSES]:
        for won in lists[Side.WINS]:
            if same_words(lost.read, won.read, numbers=True):
                lost.drop(Reason.ON_BOTH_SIDES, won.number)
    for items in lists.values():
        kept: list[Item] = []
        for item in items:
            twin = next((earlier.number for earlier in kept if same_words(item.read, earlier.read)), None)
            if twin:
                item.drop(Reason.DUPLICATE, twin)
            else:
                kept.append(item)
