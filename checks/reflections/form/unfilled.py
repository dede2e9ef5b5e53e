"""Entries that were to be written later: placeholders and templates that nobody filled in."""

import re

from checks.reflections.text import clean, length

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
