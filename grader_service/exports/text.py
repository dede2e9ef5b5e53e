"""Text of learners made fit for documents of other platforms; pure.

Nothing here writes entities such as `&lt;`: texts for Gradescope become HTML in `parts` alone, PrairieLearn escapes
what it shows, and the XML writer escapes what it writes. A second escaping would be read as text.
"""

import re

from grader_service.model.base import neutralise

_NOT_XML = re.compile("[\ufffe\uffff]")
_SPACES = re.compile(r"\s+")


def plain(text: str, most: int = 8192) -> str:
    """At most `most` characters; control, reordering and non-XML characters are replaced by U+FFFD.

    Without the escape character no platform finds ANSI sequences in it, and it is valid in XML 1.0.
    """
    safe = _NOT_XML.sub("\ufffd", neutralise(text))
    return safe if len(safe) <= most else f"{safe[: most - 1]}…"


def one_line(text: str, most: int) -> str:
    """The same on one line, for attributes."""
    return plain(_SPACES.sub(" ", plain(text, 4 * most)).strip(), most)
