"""What an author names on the command line: an installed check, a check's file, or the folder of a project."""

import importlib
import re
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

from checks.probe_files import GROUP as PROBES
from checks.probe_files import ProbeFile, ProbeFiles
from checks.registry import GROUP, LoadedCheck, Registry, contract_problems, load_file
from grader_service.errors import ConfigurationError, UsageError
from grader_service.model.near import instead

_POINT = re.compile(r"[\w.]+:[\w.]+")


@dataclass(frozen=True)
class Target:
    """A check that is looked at, and where its probes and its material are."""

    text: str
    """Names this one check for another process, see `load_target`."""
    name: str
    """For people: an id, or a path as it was given."""
    loaded: LoadedCheck
    probes: ProbeFiles
    folders: tuple[Path, ...]
    """Where its material may lie: the controls, the recorded observations and the lock."""
    kept_in: Path | None
    """Folder in which the author keeps its source; None for a check that is installed as a wheel."""

    def material(self, name: str) -> Path | None:
        """The file or folder of this name beside the check, if there is one."""
        return next((folder / name for folder in self.folders if (folder / name).exists()), None)

    def probe(self, probe_id: str) -> ProbeFile:
        """A probe that the check names.

        Raises:
            ConfigurationError: there is none, or it is no probe.
        """
        return self.loaded.probe(probe_id, self.probes)


def find_targets(text: str) -> list[str]:
    """Names each check that an argument stands for, in a form that `load_target` takes in any process.

    Raises:
        UsageError: there is no such check, file or project.
    """
    path = Path(text)
    if text in Registry().ids():
        return [f"id:{text}"]
    if path.is_file():
        return [f"file:{path.resolve()}"]
    if path.is_dir():
        declared = _declared(path)
        if declared:
            return [f"project:{path.resolve()}:{name}" for name in declared]
        if (path / "check.py").is_file():
            return [f"file:{(path / 'check.py').resolve()}"]
        raise UsageError(
            f"{path} holds no check: expected a pyproject.toml with entry points {GROUP!r}, or a file check.py"
        )
    known = instead(text, Registry().ids(), "installed checks")
    raise UsageError(f"{text!r} is no file or folder, and no installed check{known}")


def load_target(target: str) -> Target:
    """Loads a check by what `find_targets` answered. Code of its author runs.

    Raises:
        ConfigurationError: it does not load or breaks the contract of checks.
    """
    kind, _, rest = target.partition(":")
    if kind == "file":
        return _from_file(target, Path(rest))
    if kind == "project":
        folder, _, name = rest.rpartition(":")
        return _from_project(target, Path(folder), name)
    loaded = Registry().load(rest)
    source = source_of(loaded)
    return Target(target, rest, loaded, ProbeFiles(), _beside(source, source.parent), _kept_in(source))


def source_of(loaded: LoadedCheck) -> Path:
    """The file in which a check is written."""
    return loaded.check.file or Path.cwd()


def probe_folders(path: Path) -> tuple[Path, ...]:
    """Where probes of a check's file are looked for: beside it, and in a folder `probes` there."""
    return (path.parent, path.parent / "probes")


def _from_file(target: str, path: Path) -> Target:
    loaded = load_file(path)
    probes = ProbeFiles(folders=probe_folders(path))
    own = path.parent / path.stem
    folders = (own, path.parent) if own.is_dir() else (path.parent,)
    return Target(target, str(path), loaded, probes, folders, folders[0])


def _from_project(target: str, folder: Path, name: str) -> Target:
    value = _declared(folder).get(name, "")
    if not _POINT.fullmatch(value):
        raise ConfigurationError(f"entry point {name!r} is {value!r}; expected something like my_package.check:CHECK")
    roots = [str(root) for root in (folder / "src", folder) if root.is_dir()]
    sys.path[:0] = roots
    whose = f"check {name!r} of the project {folder}"
    try:
        module_name, _, attribute = value.partition(":")
        found: Any = importlib.import_module(module_name)
        source = Path(str(found.__file__)).resolve()
        for part in attribute.split("."):
            found = getattr(found, part)
    except (Exception, SystemExit) as error:
        raise ConfigurationError(f"{whose} does not load: {type(error).__name__}: {error}") from error
    if not source.is_relative_to(folder.resolve()):
        raise ConfigurationError(f"{whose} is imported from {source}, which is another package of the same name")
    problems = contract_problems(name, found)
    if problems:
        raise ConfigurationError(f"{whose} breaks the contract: {'; '.join(problems)}")
    project = _pyproject(folder).get("project", {})
    loaded = LoadedCheck(found, f"folder {project.get('name', folder.name)}", str(project.get("version", "0")))
    own = [EntryPoint(probe, module, PROBES) for probe, module in _points(folder, PROBES).items()]
    installed = [point for point in entry_points(group=PROBES) if point.name not in {mine.name for mine in own}]
    probes = ProbeFiles([*own, *installed])
    return Target(target, f"{name} in {folder}", loaded, probes, (source.parent, folder), source.parent)


def _declared(folder: Path) -> dict[str, str]:
    return _points(folder, GROUP)


def _points(folder: Path, group: str) -> dict[str, str]:
    points = _pyproject(folder).get("project", {}).get("entry-points", {}).get(group, {})
    return {str(name): str(value) for name, value in points.items()}


def _pyproject(folder: Path) -> Mapping[str, Any]:
    path = folder / "pyproject.toml"
    if not path.is_file():
        return {}
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} cannot be read: {error}") from error


def _beside(source: Path, folder: Path) -> tuple[Path, ...]:
    """The folder of an installed check, and that of its project where it is installed in place."""
    project = next((parent for parent in source.parents if (parent / "pyproject.toml").is_file()), None)
    return (folder,) if project is None else (folder, project)


def _kept_in(source: Path) -> Path | None:
    """The folder of a check's source, unless it was copied there from a wheel."""
    root = source.parent
    while (root / "__init__.py").is_file():
        root = root.parent
    return None if any(root.glob("*.dist-info")) else source.parent
