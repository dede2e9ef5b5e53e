"""Every case, and every attack of the catalogue with the case or the reason that it has none."""

import importlib
import pkgutil
import tomllib
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from types import ModuleType

from tests.corpus import cheats, honest
from tests.corpus.case import Case

FAMILIES = {
    "V": ("forged variables", 10),
    "T": ("fake tensors and batches", 13),
    "C": ("clocks", 9),
    "M": ("patched libraries and imports", 11),
    "B": ("a baseline held back", 12),
    "D": ("an inflated DALI arm", 38),
    "S": ("fake data sets", 15),
    "R": ("reflections without substance", 15),
    "H": ("the harness and its channel", 19),
    "X": ("exhaustion", 12),
    "I": ("what is handed in", 13),
    "N": ("network and neighbours", 9),
    "Z": ("statistics and procedure", 8),
    "K": ("honest kinds", 60),
}
"""Letter → name and number of attacks, 180 in all, and of kinds of honest submissions."""


@cache
def cases() -> tuple[Case, ...]:
    """All cases, in the order of their ids.

    Raises:
        ValueError: two cases have the same id.
    """
    found: list[Case] = [case for module in modules() for case in module.CASES]
    ids = [case.id for case in found]
    twice = {one for one in ids if ids.count(one) > 1}
    if twice:
        raise ValueError(f"these ids are used twice: {', '.join(sorted(twice))}")
    return tuple(sorted(found, key=lambda case: case.id))


def modules() -> Iterator[ModuleType]:
    """Those that hold cases, as `CASES`."""
    for package in (cheats, honest):
        for module in pkgutil.iter_modules(package.__path__):
            yield importlib.import_module(f"{package.__name__}.{module.name}")


def kinds() -> Iterator[str]:
    """Ids of all attacks and of all honest kinds."""
    for letter, (_, number) in FAMILIES.items():
        for place in range(1, number + 1):
            yield f"{letter}{place:02d}"


def absent() -> dict[str, str]:
    """Attacks without a case → the reason, and where they are run instead."""
    return tomllib.loads((Path(__file__).parent / "absent.toml").read_text())["absent"]


def selected(only: Iterable[str]) -> tuple[Case, ...]:
    """The cases that have one of these ids, or whose id begins with one of these texts (all, when there are none).

    Raises:
        ValueError: one of them names no case.
    """
    chosen: set[str] = set()
    for text in tuple(only) or ("",):
        found = {case.id for case in cases() if case.id == text}
        found = found or {case.id for case in cases() if case.id.startswith(text)}
        if not found:
            raise ValueError(f"no case's id begins with {text!r}; ids look like V01, S03-copies or K17")
        chosen |= found
    return tuple(case for case in cases() if case.id in chosen)
