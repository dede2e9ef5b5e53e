"""Finds the labs that can be named: those of the grader, those of an operator's folder, and those of plugins.

In the folder a lab lies as `ID.toml`, `ID.yaml` or `ID.yml`; it is looked into whenever a lab is asked for. A plugin,
whose code is never imported, declares a lab in the entry-point group `grader.labs`: the name is the lab's id, the value
the package in which its file lies.
"""

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint
from importlib.resources import files
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from grader_service import __version__
from grader_service.errors import ConfigurationError, UsageError
from grader_service.labs.documents import MAX_BYTES, SUFFIXES, Form
from grader_service.model.base import Identifier
from grader_service.model.near import instead
from grader_service.plugins.declared import Declared, origin
from grader_service.plugins.located import is_package_name, package_folders
from grader_service.settings import Settings

GROUP = "grader.labs"
_IDENTIFIER: TypeAdapter[str] = TypeAdapter(Identifier)
_SUFFIX_NAMES = ", ".join(SUFFIXES)
_SETTLED_S = 1.0
"""A file of the folder that is younger may still be written; one that is not there may be about to come back."""


@dataclass(frozen=True)
class LabText:
    """A specification as it is written, and where it came from."""

    id: str | None
    """Under which it is installed; None for a file of its own."""
    content: bytes
    form: Form
    name: str
    """Of the file, for messages."""
    origin: str
    """Distribution and version that it came with, or the folder."""


class LabDiscovery:
    """The labs that can be named. Listing reads no file; one is read when its lab is asked for."""

    def __init__(self, points: Iterable[EntryPoint] | None = None, folder: Path | None = None) -> None:
        """Reads metadata only.

        Args:
            points: the entry points of the group; those that are installed if none are given.
            folder: of the operator; may be filled and changed later.
        """
        self._own = dict(_files_in(Path(str(files(__package__)))))
        self._folder = folder
        self._declared = Declared(GROUP, points)

    def ids(self) -> list[str]:
        """Every id, broken labs included: those of the grader first, then the others.

        Raises:
            ConfigurationError: the operator's folder cannot be read.
        """
        others = {*self._declared.names(), *(lab_id for lab_id, _ in self._in_folder())}
        return sorted(self._own) + sorted(others - set(self._own))

    def origin(self, lab_id: str) -> str:
        """Distributions and versions that declare this lab, and the folder in which it lies."""
        own = [f"grader-service {__version__}"] if lab_id in self._own else []
        lying = [str(path) for path, _ in self._places(lab_id) if path.parent == self._folder]
        return ", ".join(own + lying + sorted(map(origin, self._declared.of(lab_id))))

    def text(self, lab_id: str) -> LabText:
        """The specification of one lab as it is written.

        Raises:
            UsageError: there is no such lab.
            ConfigurationError: its declaration or its file is wrong; the message names the distribution.
        """
        points = self._declared.of(lab_id)
        places = self._places(lab_id)
        if not points and not places and self._folder is not None:
            time.sleep(_SETTLED_S)  # `git checkout` and editors take a file away before they write it anew
            places = self._places(lab_id)
        if len(points) + len(places) > 1:
            raise ConfigurationError(
                f"lab {lab_id!r} is declared by {self.origin(lab_id)}; take all of them away but one"
            )
        if not points and not places:
            raise UsageError(f"there is no lab {lab_id!r}{instead(lab_id, self.ids(), 'labs')}")
        path, form = places[0] if places else _file_of(points[0])
        try:
            content = read_at_most(path) if path.parent != self._folder else _settled(path)
        except OSError as error:
            raise ConfigurationError(f"lab {lab_id!r} of {self.origin(lab_id)} cannot be read: {error}") from error
        return LabText(lab_id, content, form, path.name, self.origin(lab_id))

    def grader_text(self) -> LabText:
        """The first of the grader's own labs, whatever lies in the folder: for what any lab would do for."""
        lab_id, (path, form) = next(iter(self._own.items()))
        return LabText(lab_id, read_at_most(path), form, path.name, f"grader-service {__version__}")

    def _places(self, lab_id: str) -> list[tuple[Path, Form]]:
        """Files of this lab. A folder that is away takes no lab away that lies elsewhere."""
        own = [self._own[lab_id]] if lab_id in self._own else []
        try:
            return own + [place for known, place in self._in_folder() if known == lab_id]
        except ConfigurationError:
            if not own and not self._declared.of(lab_id):
                raise
            return own

    def _in_folder(self) -> list[tuple[str, tuple[Path, Form]]]:
        if self._folder is None:
            return []
        try:
            return list(_files_in(self._folder))
        except OSError as error:
            raise ConfigurationError(
                f"GRADER_LABS_DIR names {self._folder}, which cannot be read: {error.strerror}; expected a folder with "
                "labs, each as ID.toml, ID.yaml or ID.yml"
            ) from error


def _files_in(folder: Path) -> Iterator[tuple[str, tuple[Path, Form]]]:
    """(id, file and form) of each lab in a folder."""
    for path in sorted(folder.iterdir()):
        form = SUFFIXES.get(path.suffix)
        if form is not None and not path.name.startswith("."):  # such as the copies that editors and archives leave
            yield path.stem, (path, form)


@cache
def installed() -> LabDiscovery:
    """The labs that can be named here; plugins are looked up once in a process, as installing takes effect later."""
    return LabDiscovery(folder=Settings().labs_dir)


def read_at_most(path: Path) -> bytes:
    """A regular file's content, cut one byte behind the limit that every specification keeps.

    Raises:
        OSError: it cannot be read, or is no regular file.
    """
    if path.exists() and not path.is_file():
        raise OSError(f"{path} is no regular file")
    with path.open("rb") as stream:
        return stream.read(MAX_BYTES + 1)


def _settled(path: Path) -> bytes:
    """The content of a file that nobody writes at this moment: half of a lab may be a valid lab."""
    for _ in range(5):
        before = path.stat()
        age = time.time() - before.st_mtime
        if 0 <= age < _SETTLED_S:
            time.sleep(_SETTLED_S - age)
        content, after = read_at_most(path), path.stat()
        if (before.st_mtime_ns, before.st_size, before.st_ino) == (after.st_mtime_ns, after.st_size, after.st_ino):
            return content
    raise OSError(f"{path} changed while it was read")


def _file_of(point: EntryPoint) -> tuple[Path, Form]:
    whose = f"lab {point.name!r} of {origin(point)}"
    try:
        _IDENTIFIER.validate_python(point.name)
    except ValidationError:
        raise ConfigurationError(f"{whose} is not an id: 1 to 128 of the characters A-Z a-z 0-9 . _ : -") from None
    if not is_package_name(point.value):
        raise ConfigurationError(
            f"{whose} is declared as {point.value!r}; expected the package in which {point.name}.toml lies, "
            "such as 'my_package.labs'"
        )
    folders = package_folders(point.value)
    if not folders:
        raise ConfigurationError(f"{whose} is declared in the package {point.value}, which is not installed")
    found = [
        (path, form)
        for folder in folders
        for suffix, form in SUFFIXES.items()
        if (path := folder / f"{point.name}{suffix}").is_file()
    ]
    if len(found) == 1:
        return found[0]
    if found:
        names = ", ".join(str(path) for path, _ in found)
        raise ConfigurationError(f"{whose} has more than one file: {names}")
    raise ConfigurationError(
        f"{whose} has no file: {point.name} with {_SUFFIX_NAMES} was looked for in {', '.join(map(str, folders))}"
    )
