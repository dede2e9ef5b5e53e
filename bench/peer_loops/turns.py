"""The conversation of a loop with `bench/peers.py`: a line in, a line of JSON out. Needs the standard library only."""

import json
import sys
import time
from collections.abc import Callable


def take_turns(grade: Callable[[], str]) -> None:
    """Grades once per line that comes in; what it prints itself goes to standard error.

    Args:
        grade: grades the payload and returns what it printed, which proves that it ran.
    """
    answers, sys.stdout = sys.stdout, sys.stderr
    for _ in sys.stdin:
        since = time.monotonic()
        said = grade()
        answers.write(json.dumps({"seconds": time.monotonic() - since, "said": said.strip()}) + "\n")
        answers.flush()
