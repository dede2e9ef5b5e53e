"""Runs a patch right after a module was first imported, so that learner code pays only for what it imports itself."""

import contextlib
import gc
import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Callable, Iterator, Sequence
from types import ModuleType
from typing import Any

Patch = Callable[[Any], None]
_LARGE = ("torch", "torchvision")
"""Packages whose import makes a million objects and next to no garbage."""


class _PatchingLoader(importlib.abc.Loader):
    """Loads with the real loader, then patches."""

    def __init__(self, loader: importlib.abc.Loader, patch: Callable[[ModuleType], None]) -> None:
        self._loader = loader
        self._patch = patch

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        # The module keeps its real loader: torch and inspect ask it for sources.
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        with no_collection():
            self._loader.exec_module(module)
        self._patch(module)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)


class PatchFinder(importlib.abc.MetaPathFinder):
    """Finds the modules that have a patch waiting; a look that ends without an import leaves the patch waiting.

    Args:
        patches: by the modules' full names.
    """

    def __init__(self, patches: dict[str, Patch]) -> None:
        self._waiting = dict(patches)

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """See `importlib.abc.MetaPathFinder.find_spec`."""
        del target
        if name not in self._waiting:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        if spec is not None and spec.loader is not None:
            spec.loader = _PatchingLoader(spec.loader, self._patch)
        return spec

    def _patch(self, module: ModuleType) -> None:
        patch = self._waiting.pop(module.__name__, None)
        if patch is not None:
            patch(module)


def after_import(patches: dict[str, Patch]) -> None:
    """Applies each patch now if its module is loaded, else when it is; large packages load faster."""
    waiting: dict[str, Patch] = dict.fromkeys(_LARGE, lambda _module: None) | patches
    for name in [name for name in waiting if name in sys.modules]:
        waiting.pop(name)(sys.modules[name])
    sys.meta_path.insert(0, PatchFinder(waiting))


@contextlib.contextmanager
def no_collection() -> Iterator[None]:
    """Without looking for garbage, which takes a tenth of the time of a large import."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
