"""What is wrong with a text whatever it is about: rules that know no language."""

import re
from base64 import b64decode
from binascii import Error
from collections import Counter
from collections.abc import Sequence
from difflib import SequenceMatcher
from itertools import pairwise

from checks.prose.text import clean, is_unspaced, length, words

_SLOT = re.compile(
    r"\[[^\W\d][^\[\]().=_/,]{2,120}\](?!\()|(?<!\w)<[^\W\d][^<>|/=\d,]{2,120}>|\{\{?\s?[^\W\d][^{}:\"=,]{2,120}\}\}?|_{3,}"
)
_LABEL = re.compile(r"^\W*\[[^\[\]]{1,40}\]")
"""What an entry is about, before the entry: `[large videos] clips on few cores`."""
_WORDS_IN_BRACKETS = 2
"""A single word in brackets is a label as well."""
_MOST_BESIDE = 6
"""Words outside the slots, up to which an entry is its template."""
_DOTS, _MOST_BESIDE_DOTS = re.compile(r"\.{4,}"), 2
_MARKS = re.compile(
    r"^\W*(?:to-?do|tbd|tba|fixme|wip|xxx+|n/?a|none|null|nan|placeholder|lorem ipsum\b.*|foo|bar|baz|test\s?\d*"
    r"|(?:\w+ )?(?:scenario|situation|example|case|item|entry|reason|point|answer|bullet)"
    r"s? ?(?:no\.? ?|nr\.? ?|number ?|#|n)?[\d\W]*(?:[a-e]|one|two|three|here|goes here)?"
    r"|(?:your|my|insert|add|write|put|enter|fill)(?: \w+){0,6} here|to be (?:done|filled|written|added|completed).*"
    r"|(?:see )?(?:above|below|same as above|ditto|idem))\W*$"
)
_MARKED = re.compile(
    r"\b(?:TODO|TBD|FIXME)\b(?=\s*(?:[:.!]|$))|(?i:\blorem ipsum\b|\byour (?:answer|text|reason) here\b)"
)
_MARKED_WORDS = 10


def is_unfilled(text: str) -> bool:
    """Whether it is a placeholder, or a template whose slots are still open."""
    said = clean(text).strip()
    if _MARKS.match(said) or (_MARKED.search(text) and length(said) <= _MARKED_WORDS):
        return True
    if _DOTS.search(said) and length(said) <= _MOST_BESIDE_DOTS:
        return True
    label = _LABEL.match(said)
    if label and length(said[label.end() :]) > 1:
        said = said[label.end() :]
    slots = [slot for slot in _SLOT.findall(said) if slot[0] != "[" or length(slot) >= _WORDS_IN_BRACKETS]
    beside, within = length(_SLOT.sub(" ", said)), sum(map(length, slots))
    return bool(slots) and (beside <= _MOST_BESIDE or (len(slots) > 1 and beside <= 3 * within))


_FOR_MACHINES = re.compile(
    r"<\|/?(?:im_start|im_end|system|user|assistant|inst|learner|verdict|endoftext|s)\b|\[/?inst\]"
    r"|\"(?:role|outcome|verdict|passed)\"\s*:"
    r"|#{2,}\s*(?:(?:new|end of) )?(?:instructions?|submission|grader|system prompt)\b"
    r"|(?m:^\s*(?:system|assistant)\s*:)"
)
_RUN = re.compile(r"(?<![\w/.:+=-])[A-Za-z0-9+/]{24,}={0,2}(?![\w/.-])")


def is_for_machines(text: str) -> bool:
    """Whether it holds marks that only a program would read: of chat turns, verdicts in JSON, encoded messages.

    Nothing here obeys; such a text just says nothing. Orders in plain words are left to the text model.
    """
    return bool(_FOR_MACHINES.search(clean(text))) or any(map(_is_encoded, _RUN.findall(text)))


def _is_encoded(run: str) -> bool:
    """Whether a run of letters and digits is readable text in Base64; a long name or a path is not."""
    try:
        return b64decode(run.rstrip("=") + "=" * (-len(run.rstrip("=")) % 4), validate=True).decode().isprintable()
    except (Error, UnicodeDecodeError):
        return False


_QUESTION_ENDS = ("?", "？", "؟")
_GREEK_QUESTION = re.compile("[\u0370-\u03ff][^\\w]*[;\u037e]$")
_CLOSERS = " \t\r\n\"'»”)*_`"


def is_question(text: str) -> bool:
    """Whether it ends in asking. One may be rhetorical; what a list of them is, a person decides."""
    said = text.rstrip(_CLOSERS)
    return said.endswith(_QUESTION_ENDS) or bool(_GREEK_QUESTION.search(said[-3:]))


_HASHTAG = re.compile(r"(?<!\w)#[^\W\d]\w+")
_FEWEST_HASHTAGS = 3
_SEPARATORS = re.compile(r"[,;|/+•·、，؛،\n]+|\s[-–—>]+\s")
_FEWEST_TERMS, _LONGEST_TERM = 5, 2


def is_keywords(text: str) -> bool:
    """Whether it only names terms: hashtags, or single terms between commas, with no statement around them."""
    said = clean(text)
    tags = _HASHTAG.findall(said)
    if len(tags) >= _FEWEST_HASHTAGS and length(_HASHTAG.sub(" ", said)) <= len(tags):
        return True
    terms = [length(part) for part in _SEPARATORS.split(said) if part.strip()]
    return len(terms) >= _FEWEST_TERMS and max(terms) <= _LONGEST_TERM


_ENDS = (".", "!", "?", "。", "！", "？", "।", "…", "؟", "۔")
_ABBREVIATED = ("etc.", "usw.", "и т.д.")
_OPEN_ENDS = (",", "，", "、", "،")


def pieces_of_a_sentence(texts: Sequence[str]) -> set[int]:
    """Positions of entries that are pieces of one sentence.

    Signs are a comma at the end before an entry that goes on in lower case, and a list that opens with a capital, goes
    on in lower case throughout and has its only full stop at the end.
    """
    texts = [text.strip() for text in texts]
    if (
        len(texts) > 1
        and texts[0][:1].isupper()
        and texts[-1].endswith(_ENDS)
        and not texts[-1].endswith(_ABBREVIATED)
        and not texts[0].split()[0].isupper()
        and not any(text.endswith(_ENDS) for text in texts[:-1])
        and all(text[:1].islower() for text in texts[1:])
    ):
        return set(range(len(texts)))
    return {
        number
        for first, (before, after) in enumerate(pairwise(texts))
        if before.endswith(_OPEN_ENDS) and before[:1].isupper() and after[:1].islower()
        for number in (first, first + 1)
    }


_FEWEST_WORDS = 4
_CHANGED_PER = 20
"""One word in so many may be another one."""
_MOST_ADDED = 3
_MOST_WORDS = 200
"""The comparison takes time in the square of it."""


def same_words(one: str, other: str, *, numbers: bool = False) -> bool:
    """Whether one text is nearly the other, in the same order, also with a number, a label or a "not" added.

    Numbers tell them apart only if asked to. The same words in another order may say the opposite ("fast CPU, slow
    GPU"), and entries that share a frame differ where it matters: nearly all of the shorter one must stand in the
    longer one.
    """
    left, right = _units(one, numbers=numbers), _units(other, numbers=numbers)
    if numbers and sorted(filter(str.isdigit, left)) != sorted(filter(str.isdigit, right)):
        return False
    if left == right:
        return bool(left)
    shorter = min(len(left), len(right))
    least = shorter - shorter // _CHANGED_PER
    if shorter < _FEWEST_WORDS or max(len(left), len(right)) > shorter + _MOST_ADDED:
        return False
    if (Counter(left) & Counter(right)).total() < least:
        return False  # spares the costlier comparison
    blocks = SequenceMatcher(None, left, right, autojunk=False).get_matching_blocks()
    return sum(block.size for block in blocks) >= least


def _units(text: str, *, numbers: bool) -> list[str]:
    """Its first words, single characters where no spaces are written."""
    found = (word for word in words(text) if numbers or is_unspaced(word) or not word.isdigit())
    return [unit for word in found for unit in (word if is_unspaced(word) else (word,))][:_MOST_WORDS]
