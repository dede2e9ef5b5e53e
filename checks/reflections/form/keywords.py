"""Terms in a row: hashtags, and lists of single terms between commas, with no statement around them."""

import re

from checks.reflections.text import clean, length

_HASHTAG = re.compile(r"(?<!\w)#[^\W\d]\w+")
_FEWEST_HASHTAGS = 3
_SEPARATORS = re.compile(r"[,;|/+•·、，؛،\n]+|\s[-–—>]+\s")
_FEWEST_TERMS, _LONGEST_TERM = 5, 2


def is_keywords(text: str) -> bool:
    """Whether it only names terms."""
    said = clean(text)
    tags = _HASHTAG.findall(said)
    if len(tags) >= _FEWEST_HASHTAGS and length(_HASHTAG.sub(" ", said)) <= len(tags):
        return True
    terms = [length(part) for part in _SEPARATORS.split(said) if part.strip()]
    return len(terms) >= _FEWEST_TERMS and max(terms) <= _LONGEST_TERM
