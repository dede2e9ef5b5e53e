"""Imports the parts of scipy that a measurement needs, in a thread: a run waits for its pods meanwhile."""

import contextlib
import functools
import importlib
import threading

_NEEDED = ("scipy.special", "scipy.fft", "scipy.spatial")
"""By the sequential test, by registration and by identification; together about half a second of an idle core."""


@functools.cache
def import_ahead() -> threading.Thread:
    """Starts importing, once in a process, and returns at once; whoever needs a module sooner waits for it as usual.

    What cannot be imported is said to whoever imports it next.
    """
    thread = threading.Thread(target=_import, name="import-ahead", daemon=True)
    thread.start()
    return thread


def _import() -> None:
    for name in _NEEDED:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
