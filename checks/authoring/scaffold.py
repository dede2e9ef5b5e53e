"""Makes the project of a new check from templates; nothing that is there already is overwritten."""

import keyword
import re
import sys
from enum import StrEnum
from importlib.resources import files
from pathlib import Path
from string import Template

from checks.probe_files import ProbeFiles
from checks.registry import Registry
from grader_service.errors import UsageError

_NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
_LONGEST = 40
_ENDING = ".tmpl"


class ProbeChoice(StrEnum):
    """What a new check observes with."""

    GRAPH = "graph"
    """A probe that runs the learner's graph on its own images: facts."""
    LEARNER = "learner"
    """A probe that looks into the learner's process: claims."""
    NONE = "none"
    """No probe: the evidence of a run is enough."""


def create(name: str, probe: ProbeChoice, into: Path) -> Path:
    """Writes the project.

    Args:
        name: id of the check, lower-case words with underscores.
        probe: which kind of check.
        into: an existing folder, or one to make.

    Returns:
        The project's folder, `grader-check-NAME` in `into`.

    Raises:
        UsageError: the name cannot be used, or the folder is there already.
    """
    _refuse_name(name, probe)
    folder = into / f"grader-check-{name.replace('_', '-')}"
    package = f"grader_check_{name}"
    words = {
        "name": name,
        "dashed": name.replace("_", "-"),
        "package": package,
        "title": name.replace("_", " ").capitalize(),
        "cls": "".join(part.capitalize() for part in name.split("_")),
    }
    try:
        folder.mkdir(parents=True)
    except FileExistsError:
        raise UsageError(f"{folder} is there already; nothing was written") from None
    except OSError as error:
        raise UsageError(f"{folder} cannot be made: {error}") from error
    for source, target in _files(probe, package, name).items():
        text = Template(_template(source)).substitute(words)
        path = folder / target
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as stream:
            stream.write(text)
    return folder


def _refuse_name(name: str, probe: ProbeChoice) -> None:
    if not _NAME.fullmatch(name) or len(name) > _LONGEST:
        raise UsageError(
            f"{name!r} cannot be the id of a check: expected lower-case words with underscores, such as batch_layout, "
            f"at most {_LONGEST} characters"
        )
    if keyword.iskeyword(name) or name in sys.stdlib_module_names:
        raise UsageError(f"{name!r} is a word of Python's own; choose another one, such as {name}_layout")
    taken = Registry()
    if name in taken.ids():
        raise UsageError(f"a check {name!r} is installed already, from {taken.origin(name)}; choose another name")
    if probe is not ProbeChoice.NONE and name in ProbeFiles().ids():
        raise UsageError(f"a probe {name!r} is installed already; choose another name")


def _files(probe: ProbeChoice, package: str, name: str) -> dict[str, str]:
    """Template to place in the project."""
    source = f"src/{package}"
    kind = probe.value
    chosen = {
        f"pyproject_{'none' if probe is ProbeChoice.NONE else 'probe'}.toml": "pyproject.toml",
        "README.md": "README.md",
        "gitignore": ".gitignore",
        "init.py": f"{source}/__init__.py",
        "py.typed": f"{source}/py.typed",
        "lab.toml": f"{source}/labs/{name.replace('_', '-')}-lab.toml",
        f"check_{kind}.py": f"{source}/check.py",
        f"observations_{kind}.jsonl": f"{source}/observations.jsonl",
        f"controls_{kind}.toml": f"{source}/controls/controls.toml",
        f"passing_{kind}.py": f"{source}/controls/passing/usual.py",
        f"failing_{kind}.py": f"{source}/controls/failing/{_failing(probe)}.py",
        f"test_{kind}.py": f"tests/test_{name}.py",
    }
    if probe is not ProbeChoice.NONE:
        chosen["probes_init.py"] = f"{source}/probes/__init__.py"
        chosen[f"probe_{kind}.py"] = f"{source}/probes/{name}.py"
    return chosen


def _failing(probe: ProbeChoice) -> str:
    return {
        ProbeChoice.GRAPH: "small_batches",
        ProbeChoice.LEARNER: "reset_by_hand",
        ProbeChoice.NONE: "no_workers",
    }[probe]


def _template(name: str) -> str:
    return (files(__package__) / "templates" / f"{name}{_ENDING}").read_text(encoding="utf-8")
