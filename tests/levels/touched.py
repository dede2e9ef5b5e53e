"""Which slow tests a change touches: those of the modules that it changes, and the defences that stand in them."""

import re
import subprocess
from collections.abc import Iterable
from pathlib import Path

from tests.levels.parts import ROOT
from tests.levels.shards import case_unit, defence_unit

SINCE_H = 24
"""Changes of so many hours before the newest commit are one change, where no base is named."""


def changed_files(base: str | None) -> list[str]:
    """Paths that differ between `base` and what is checked out.

    Args:
        base: a commit; None for the newest one that is a day older than HEAD.
    """
    if base is None:
        base = _git("rev-list", "-1", f"--before={commit_time() - SINCE_H * 3600}", "HEAD")
    return _git("diff", "--name-only", base, "HEAD").splitlines() if base else []


def commit_time() -> int:
    """When HEAD was committed, in seconds since 1970."""
    return int(_git("show", "-s", "--format=%ct", "HEAD"))


def touched(paths: Iterable[str], units: Iterable[str]) -> list[str]:
    """The units that these paths touch, of all units.

    A test's file is touched by itself, by a change of a module that it imports by name, by a page of `docs` that it
    reads, by whatever lies beside it and is no test (a conftest, recorded data), and, where it grades or runs examples,
    by these. A case of the corpus is touched by its own module; a defence by its entry and by the files that it is
    switched off in.
    """
    from tests.corpus import catalogue, defences

    changed = set(paths)
    modules = {path.removesuffix(".py").replace("/", ".") for path in changed if path.endswith(".py")}
    examples = {path for path in changed if path.startswith("examples/")}
    platforms = {path for path in examples if path.startswith("examples/platforms/")}
    if examples - platforms:
        modules.add("tests.e2e.conftest.EXAMPLES")
    if platforms:
        modules.add("tests.platform.platforms.PLATFORMS")
    pages = {f'"{Path(path).name}"' for path in changed if path.startswith("docs/")}
    in_tests = (Path(path) for path in changed if path.startswith("tests/"))
    folders = {str(path.parent) for path in in_tests if not path.match("test_*.py")}
    entered = {
        defence.id
        for path in defences.FOLDER.glob("*.toml")
        if str(path.relative_to(ROOT)) in changed
        for defence in defences.defences_in(path)
    }
    found = {
        defence_unit(defence.id)
        for defence in defences.defences()
        if defence.id in entered or {edit.file for edit in defence.edits} & changed
    }
    found |= {
        case_unit(case.id)
        for module in catalogue.modules()
        if module.__name__.replace(".", "/") + ".py" in changed
        for case in module.CASES
    }
    for unit in units:
        if "::" in unit:
            continue
        text = (ROOT / unit).read_text()
        beside = str(Path(unit).parent) in folders
        if unit in changed or beside or _imported(text) & modules or any(page in text for page in pages):
            found.add(unit)
    return sorted(found & set(units))


def _imported(text: str) -> set[str]:
    """Dotted names of the modules that a file of this text imports."""
    found = set()
    for module, names in re.findall(r"^\s*from ([\w.]+) import ([^\n(]+|\([^)]*\))", text, re.MULTILINE):
        found.add(module)
        found |= {f"{module}.{name}" for name in re.findall(r"\w+", names)}
    return found


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.strip()
