"""Questions. One may be rhetorical; what a list of them is, a person decides (`judging`)."""

import re

_QUESTION_ENDS = ("?", "？", "؟")
_GREEK_QUESTION = re.compile("[\u0370-\u03ff][^\\w]*[;\u037e]$")
_CLOSERS = " \t\r\n\"'»”)*_`"


def is_question(text: str) -> bool:
    """Whether it ends in asking."""
    said = text.rstrip(_CLOSERS)
    return said.endswith(_QUESTION_ENDS) or bool(_GREEK_QUESTION.search(said[-3:]))
