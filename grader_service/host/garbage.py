"""How often Python looks for garbage in cycles: seldom, where small values are read by the thousand."""

import gc

_NEW_OBJECTS = 50_000
"""Since the last look, before the next one; of a verdict's evidence a thousand are made, which need no look to go."""


def look_seldom() -> None:
    """For processes that read or judge thousands of documents, which would else look half of their time.

    What exists when this is called is never looked at again: call it once, when a process has been set up.
    """
    gc.freeze()
    gc.set_threshold(_NEW_OBJECTS)
