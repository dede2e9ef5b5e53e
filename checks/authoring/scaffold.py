"""Makes a new check from templates; nothing that is there already is overwritten."""

import builtins
import keyword
import re
import sys
from collections.abc import Mapping
from enum import StrEnum
from importlib.resources import files
from pathlib import Path
from string import Template

from checks import api
from checks.registry import Registry
from grader_service.errors import UsageError

_NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
_LONGEST = 40


class ProbeChoice(StrEnum):
    """What a new check observes with."""

    NONE = "none"
    """No probe: the evidence of a run is enough."""
    GRAPH = "graph"
    """A probe that runs the learner's graph on its own images: facts."""
    LEARNER = "learner"
    """A probe that looks into the learner's process: claims."""


def create_file(name: str, probe: ProbeChoice, into: Path) -> tuple[Path, Path]:
    """Writes the check's file and its tests.

    Args:
        name: id of the check, lower-case words with underscores.
        probe: which kind of check.
        into: an existing folder, or one to make.

    Returns:
        The two files, `NAME.py` and `test_NAME.py` in `into`.

    Raises:
        UsageError: the name cannot be used, or one of the files is there already.
    """
    _refuse_name(name)
    check, test = into / f"{name}.py", into / f"test_{name}.py"
    for path in (check, test):
        if path.exists():
            raise UsageError(f"{path} is there already; nothing was written")
    chosen = {f"check_{probe.value}.py": check.name, f"test_{probe.value}.py": test.name}
    _write(chosen, into, _words(name, module=name))
    return check, test


def create_package(name: str, probe: ProbeChoice, into: Path) -> Path:
    """Writes an installable package: the check, its controls, a lab, and tests; arguments as of `create_file`.

    Returns:
        The project's folder, `grader-check-NAME` in `into`.

    Raises:
        UsageError: the name cannot be used, or the folder is there already.
    """
    _refuse_name(name)
    folder = into / f"grader-check-{name.replace('_', '-')}"
    package = f"grader_check_{name}"
    if folder.exists():
        raise UsageError(f"{folder} is there already; nothing was written")
    _write(_project(name, probe, package), folder, _words(name, module=f"{package}.check"))
    return folder


def _words(name: str, module: str) -> dict[str, str]:
    return {
        "name": name,
        "dashed": name.replace("_", "-"),
        "package": f"grader_check_{name}",
        "title": name.replace("_", " ").capitalize(),
        "module": module,
    }


def _write(chosen: Mapping[str, str], folder: Path, words: Mapping[str, str]) -> None:
    try:
        for source, target in chosen.items():
            text = Template(_template(source)).substitute(words)
            path = folder / target
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("x", encoding="utf-8") as stream:
                stream.write(text)
    except OSError as error:
        raise UsageError(f"{folder} cannot be written: {error}") from error


def _refuse_name(name: str) -> None:
    if not _NAME.fullmatch(name) or len(name) > _LONGEST:
        raise UsageError(
            f"{name!r} cannot be the id of a check: expected lower-case words with underscores, such as batch_layout, "
            f"at most {_LONGEST} characters"
        )
    if keyword.iskeyword(name) or name in sys.stdlib_module_names or name in dir(builtins):
        raise UsageError(f"{name!r} is a word of Python's own; choose another one, such as {name}_layout")
    # A function of that name would hide what the same file uses.
    if name in api.__all__ or any(f"\ndef {name}(" in _template(f"check_{one.value}.py") for one in ProbeChoice):
        raise UsageError(f"{name!r} is used by the file of a check; choose another name, such as {name}_layout")
    taken = Registry()
    if name in taken.ids():
        raise UsageError(f"a check {name!r} is installed already, from {taken.origin(name)}; choose another name")


def _project(name: str, probe: ProbeChoice, package: str) -> dict[str, str]:
    """Template to place in the project."""
    source = f"src/{package}"
    kind = probe.value
    return {
        "pyproject.toml": "pyproject.toml",
        "README.md": "README.md",
        "gitignore": ".gitignore",
        "init.py": f"{source}/__init__.py",
        "py.typed": f"{source}/py.typed",
        "lab.toml": f"{source}/labs/{name.replace('_', '-')}-lab.toml",
        f"check_{kind}.py": f"{source}/check.py",
        f"observations_{kind}.jsonl": f"{source}/observations.jsonl",
        f"controls_{kind}.toml": f"{source}/controls/controls.toml",
        f"passing_{kind}.py": f"{source}/controls/passing/usual.py",
        f"failing_{kind}.py": f"{source}/controls/failing/{_FAILING[probe]}.py",
        f"test_{kind}.py": f"tests/test_{name}.py",
        "test_controls.py": "tests/test_controls.py",
    }


_FAILING = {
    ProbeChoice.GRAPH: "small_batches",
    ProbeChoice.LEARNER: "reset_by_hand",
    ProbeChoice.NONE: "no_workers",
}


def _template(name: str) -> str:
    return (files(__package__) / "templates" / f"{name}.tmpl").read_text(encoding="utf-8")
