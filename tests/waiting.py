"""Waiting for a condition: what tests do in place of sleeping."""

import time
from collections.abc import Callable
from typing import Any

PATIENCE = 4
"""How many times longer than stated a wait may take: what is stated is enough on a quiet machine."""


def wait_for(look: Callable[[], Any], timeout_s: float, every_s: float = 0.1) -> Any:
    """What `look` returns once it is truthy.

    Args:
        look: asked again and again.
        timeout_s: more than enough on a quiet machine; a busy one is given a multiple of it.
        every_s: between two looks.

    Raises:
        AssertionError: it was not in time.
    """
    deadline = time.monotonic() + PATIENCE * timeout_s
    while True:
        found = look()
        if found:
            return found
        if time.monotonic() > deadline:
            raise AssertionError(f"nothing came within {PATIENCE * timeout_s:g} s")
        time.sleep(every_s)
