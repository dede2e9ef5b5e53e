"""Text that speaks to a machine that grades: marks of chat turns, verdicts in JSON, encoded messages.

Nothing here obeys; such an entry just says nothing about DALI. Orders in plain words are left to the text model.
"""

import re

from checks.reflections.text import clean

_MARKS = re.compile(
    r"<\|?/?(?:im_start|im_end|system|user|assistant|inst|learner|verdict|endoftext|s)\b|\[/?inst\]"
    r"|\"(?:role|outcome|verdict|score|grade|passed|accept|check)\"\s*:"
    r"|#{2,}\s*(?:end|new|system|instruction|task|note|grader)|\b(?:system|assistant)\s*:"
)
_ENCODED = re.compile(r"(?<![\w/.:+=-])[A-Za-z0-9+/]{24,}={0,2}(?![\w/.-])")
_SORTS = (str.isdigit, str.islower, str.isupper)
"""Of characters, all of which a text in Base64 has, and hardly a long word or a path."""


def is_for_machines(text: str) -> bool:
    """Whether it holds marks that only a program would read."""
    runs = _ENCODED.findall(text)
    return bool(_MARKS.search(clean(text))) or any(all(any(map(sort, run)) for sort in _SORTS) for run in runs)
