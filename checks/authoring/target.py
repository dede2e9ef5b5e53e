"""What an author names on the command line: an installed check, a check's file, or the folder of a project."""

import contextlib
import importlib
import re
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

from pydantic import BaseModel, PydanticUserError, create_model
from pydantic_core import to_json

from checks.contract import Check
from checks.probe_files import GROUP as PROBES
from checks.probe_files import ProbeFile, ProbeFiles
from checks.registry import GROUP, LoadedCheck, Registry, contract_problems, load_file
from grader_service.errors import ConfigurationError, UsageError
from grader_service.model.near import instead

_SAYABLE = "what a lab can say in TOML: numbers, text, booleans, lists, tables and enumerations of these"
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
    found = _found(target)
    if problem := _unsayable(found.loaded.check.params_model):
        raise ConfigurationError(f"check {found.name}: {problem}")
    return found


def _found(target: str) -> Target:
    kind, _, rest = target.partition(":")
    if kind == "file":
        return _from_file(target, Path(rest))
    if kind == "project":
        folder, _, name = rest.rpartition(":")
        return _from_project(target, Path(folder), name)
    loaded = Registry().load(rest)
    source = source_of(loaded)
    project = project_of(source)  # there is one where it is installed in place
    folders = (home_of(source), *([project] if project is not None else []))
    return Target(target, rest, loaded, ProbeFiles(), folders, _kept_in(source))


def load_anew(file: Path) -> Target:
    """Loads a check's file as it is now: by its project, so that it may import from its package; else alone.

    Raises:
        ConfigurationError: as `load_target`.
    """
    file = file.resolve()
    folder = project_of(file)
    declared = {} if folder is None else _declared_in(folder, file)
    if len(declared) != 1:
        return load_target(f"file:{file}")
    ((name, module),) = declared.items()
    package = module.rpartition(".")[0] or module
    for known in [one for one in sys.modules if one == package or one.startswith(f"{package}.")]:
        del sys.modules[known]
    importlib.invalidate_caches()
    # Compiled files are as old as the second in which they were written: a save within it would not be seen.
    before, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        return load_target(f"project:{folder}:{name}")
    finally:
        sys.dont_write_bytecode = before


def target_of(check: object) -> Target:
    """The check with its probes and material, for a test of its author's.

    Args:
        check: a check's object, whose project is looked for above its file; an id; or the path of a file or project.

    Raises:
        UsageError: there is no such check, or the path stands for several.
        ConfigurationError: it does not load.
    """
    if isinstance(check, (str, Path)):
        found = find_targets(str(check))
        if len(found) != 1:
            raise UsageError(f"{check} holds {len(found)} checks; name one of them by its file or id")
        return load_target(found[0])
    if not isinstance(check, Check) or check.file is None:
        raise ConfigurationError(f"{check!r} is no check that a module of its own defines")
    file = check.file.resolve()
    project = project_of(file)
    named = [f"id:{check.id}"] if project is None else [f"project:{project}:{check.id}", f"id:{check.id}"]
    for text in named:
        with contextlib.suppress(ConfigurationError):
            # Another check may have the same id: that of the file is meant.
            target = load_target(text)
            if source_of(target.loaded).resolve() == file:
                return target
    return load_target(f"file:{file}")


def project_of(file: Path) -> Path | None:
    """The folder of the project above a file."""
    return next((folder for folder in file.parents if (folder / "pyproject.toml").is_file()), None)


def _declared_in(folder: Path, file: Path) -> dict[str, str]:
    """Name → module of the checks of a project that are declared in this file."""
    modules = {name: value.partition(":")[0] for name, value in _declared(folder).items()}
    inside = [folder / "src", folder]
    return {
        name: module
        for name, module in modules.items()
        if file in [root / f"{module.replace('.', '/')}.py" for root in inside]
    }


def home_of(source: Path) -> Path:
    """Where the material of a check's file lies: beside a `check.py`, else in a folder of the file's name."""
    return source.parent if source.name in ("check.py", "__init__.py") else source.parent / source.stem


def source_of(loaded: LoadedCheck) -> Path:
    """The file in which a check is written."""
    return loaded.check.file or Path.cwd()


def probe_folders(path: Path) -> tuple[Path, ...]:
    """Where probes of a check's file are looked for: beside it, and in a folder `probes` there."""
    return (path.parent, path.parent / "probes")


def _from_file(target: str, path: Path) -> Target:
    probes, home = ProbeFiles(folders=probe_folders(path)), home_of(path)
    return Target(target, str(path), load_file(path), probes, (home,), home)


def _from_project(target: str, folder: Path, name: str) -> Target:
    value = _declared(folder).get(name, "")
    if not _POINT.fullmatch(value):
        raise ConfigurationError(f"entry point {name!r} is {value!r}; expected something like my_package.check:CHECK")
    roots = [str(root) for root in (folder / "src", folder) if root.is_dir()]
    sys.path[:] = [*roots, *(path for path in sys.path if path not in roots)]
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
    own = [EntryPoint(probe, module, PROBES) for probe, module in _declared(folder, PROBES).items()]
    installed = [point for point in entry_points(group=PROBES) if point.name not in {mine.name for mine in own}]
    probes = ProbeFiles([*own, *installed])
    return Target(target, f"{name} in {folder}", loaded, probes, (home_of(source), folder), home_of(source))


def _unsayable(params: type[BaseModel]) -> str:
    """Which parameter no lab can set or no record can hold, and what is expected; empty where there is none."""
    for name, field in params.model_fields.items():
        alone: dict[str, Any] = {name: (field.annotation, field)}
        try:
            if not field.is_required():
                to_json(field.get_default(call_default_factory=True, validated_data={}))
            create_model(name, __config__=params.model_config, **alone).model_json_schema()
        except (PydanticUserError, ValueError) as error:
            why = str(error).partition("\n")[0]
            return f"parameter `{name}`, of the type {field.annotation}: {why}; expected {_SAYABLE}"
    return ""


def _declared(folder: Path, group: str = GROUP) -> dict[str, str]:
    """Name → value of the entry points of a project's group."""
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


def _kept_in(source: Path) -> Path | None:
    """The folder of a check's source, unless it was copied there from a wheel."""
    root = source.parent
    while (root / "__init__.py").is_file():
        root = root.parent
    return None if any(root.glob("*.dist-info")) else home_of(source)
