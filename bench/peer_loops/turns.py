"""The conversation of a loop with `bench/peers.py`: a line in, a line of JSON out. Needs the standard library only.

What a peer prints goes to standard error from the moment that this is imported.
"""

import json
import sys
import time
from collections.abc import Callable

_answers, sys.stdout = sys.stdout, sys.stderr


def take_turns(grade: Callable[[Callable[[], None]], str]) -> None:
    """Grades once per line that comes in.

    Args:
        grade: grades the payload and returns what it printed, which proves that it ran; calls its argument as soon as
            it has the result, if something is left to do then.
    """
    for _ in sys.stdin:
        since = time.monotonic()
        marks: list[float] = []

        def told(since: float = since, marks: list[float] = marks) -> None:
            marks.append(time.monotonic() - since)

        said = grade(told)
        seconds = time.monotonic() - since
        answer = {"seconds": seconds, "result_s": marks[0] if marks else seconds, "said": said.strip()}
        _answers.write(json.dumps(answer) + "\n")
        _answers.flush()
