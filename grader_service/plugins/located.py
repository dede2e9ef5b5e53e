"""Finds the folders of an installed package, and the files of its modules, without importing it or its parents.

`importlib.util.find_spec("a.b")` imports `a`. Here the finders on `sys.meta_path` are asked part by part, each time
with the folders that the part before was found in, so that no code of a plugin runs.
"""

import re
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

_DOTTED = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")


def is_package_name(name: str) -> bool:
    """Whether this is a dotted name such as `my_package.labs`."""
    return _DOTTED.fullmatch(name) is not None


def package_folders(name: str) -> list[Path]:
    """The folders that make up a package: one, or several for a namespace; none when it is not installed."""
    folders: list[str] | None = None
    parts = name.split(".")
    for index in range(len(parts)):
        folders = _folders(".".join(parts[: index + 1]), parts[index], folders)
        if not folders:
            return []
    return [Path(folder) for folder in folders or []]


def module_file(name: str) -> Path | None:
    """The source file of a module; None where it is not installed, or no Python source."""
    parent, _, _ = name.rpartition(".")
    folders = [str(folder) for folder in package_folders(parent)] if parent else None
    if folders == []:
        return None
    specs = (_spec(finder, name, folders) for finder in sys.meta_path)
    spec = next((found for found in specs if found is not None), None)
    return Path(spec.origin) if spec is not None and spec.origin is not None and spec.origin.endswith(".py") else None


def _folders(name: str, part: str, parents: Sequence[str] | None) -> list[str]:
    for finder in sys.meta_path:
        found = _asked(finder, name, parents)
        if found is not None:
            return found
    return [str(path) for parent in parents or [] if (path := Path(parent) / part).is_dir()]


def _asked(finder: Any, name: str, parents: Sequence[str] | None) -> list[str] | None:
    """The folders of a package by one finder; none for a plain module, None where it knows nothing of that name."""
    spec = _spec(finder, name, parents)
    if spec is None or (spec.loader is None and spec.submodule_search_locations is None):
        return None
    try:
        return list(spec.submodule_search_locations or [])
    except KeyError:
        return None  # a folder without `__init__.py` looks its parent up among the imported modules


def _spec(finder: Any, name: str, parents: Sequence[str] | None) -> ModuleSpec | None:
    try:
        found: ModuleSpec | None = finder.find_spec(name, parents)
    except (AttributeError, ImportError, KeyError):
        return None  # as above
    return found
