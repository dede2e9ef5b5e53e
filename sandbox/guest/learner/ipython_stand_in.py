"""`IPython` for pods whose image has none: `from IPython.display import display` must not stop a run.

Found last, so that an installed IPython is the one that is imported.
"""

import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Any


class _StandIn(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Makes `IPython` and every module below it out of nothing."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """See `importlib.abc.MetaPathFinder.find_spec`."""
        del path, target
        if name.partition(".")[0] != "IPython":
            return None
        return importlib.util.spec_from_loader(name, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        del spec
        return None

    def exec_module(self, module: ModuleType) -> None:
        module.__dict__.update(
            version_info=(9, 0, 0, ""),
            __version__="9.0.0",
            get_ipython=_shell,
            display=show,
            clear_output=lambda *_, **__: None,
            __getattr__=_anything,
        )


class Shown:
    """Any of IPython's display objects; printing it shows what it was made of."""

    def __init__(self, *parts: Any, **_: Any) -> None:
        self.data = parts[0] if parts else None

    def __repr__(self) -> str:
        return f"<{type(self.data).__name__} to display>"

    def __call__(self, *_: Any, **__: Any) -> None:
        """Does nothing: `handle.update(...)`, `events.register(...)`."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Shown()


def install() -> None:
    """Makes the stand-in available behind everything that is installed."""
    sys.meta_path.append(_StandIn())


def show(*values: Any, display_id: Any = None, **_: Any) -> Any:
    """`display`: prints."""
    for value in values:
        print(value)
    return Shown() if display_id is not None else None


_running: list[Any] = []


def use(shell: Any) -> None:
    """From now on `IPython.get_ipython()` returns this shell."""
    _running[:] = [shell]


def _shell() -> Any:
    """The shell of the running notebook, or None as in a plain Python."""
    return _running[0] if _running else None


def _anything(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return Shown
