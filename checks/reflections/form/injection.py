"""Text that speaks to a machine that grades: marks of chat turns, verdicts in JSON, encoded messages.

Nothing here obeys; such an entry just says nothing about DALI. Orders in plain words are left to the text model.
"""

import re
from base64 import b64decode
from binascii import Error

from checks.reflections.text import clean

_MARKS = re.compile(
    r"<\|/?(?:im_start|im_end|system|user|assistant|inst|learner|verdict|endoftext|s)\b|\[/?inst\]"
    r"|\"(?:role|outcome|verdict|passed)\"\s*:"
    r"|#{2,}\s*(?:(?:new|end of) )?(?:instructions?|submission|grader|system prompt)\b"
    r"|(?m:^\s*(?:system|assistant)\s*:)"
)
_RUN = re.compile(r"(?<![\w/.:+=-])[A-Za-z0-9+/]{24,}={0,2}(?![\w/.-])")


def is_for_machines(text: str) -> bool:
    """Whether it holds marks that only a program would read."""
    return bool(_MARKS.search(clean(text))) or any(map(_is_encoded, _RUN.findall(text)))


def _is_encoded(run: str) -> bool:
    """Whether a run of letters and digits is readable text in Base64; a long name or a path is not."""
    try:
        return b64decode(run.rstrip("=") + "=" * (-len(run.rstrip("=")) % 4), validate=True).decode().isprintable()
    except (Error, UnicodeDecodeError):
        return False
