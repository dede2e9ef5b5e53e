"""Finds the labs that are installed: those of the grader, and those of plugins, whose code is never imported.

A plugin declares a lab in the entry-point group `grader.labs`: the name is the lab's id, the value the package in which
its file lies, as `ID.toml`, `ID.yaml` or `ID.yml`.
"""

from collections.abc import Iterable
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

GROUP = "grader.labs"
_IDENTIFIER: TypeAdapter[str] = TypeAdapter(Identifier)
_SUFFIX_NAMES = ", ".join(SUFFIXES)


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
    """Distribution and version that it came with."""


class Shelf:
    """The labs that are installed. Listing reads metadata only; a file is read when its lab is asked for."""

    def __init__(self, points: Iterable[EntryPoint] | None = None) -> None:
        """Takes the entry points of the group; those that are installed if none are given."""
        self._own = {
            entry.name.removesuffix(suffix): (Path(str(entry)), form)
            for entry in files(__package__).iterdir()
            for suffix, form in SUFFIXES.items()
            if entry.name.endswith(suffix)
        }
        self._declared = Declared(GROUP, points)

    def ids(self) -> list[str]:
        """Every declared id, broken labs included: those of the grader first, then those of plugins."""
        return sorted(self._own) + sorted(set(self._declared.names()) - set(self._own))

    def origin(self, lab_id: str) -> str:
        """Distributions and versions that declare this lab."""
        own = [f"grader-service {__version__}"] if lab_id in self._own else []
        return ", ".join(own + sorted(map(origin, self._declared.of(lab_id))))

    def text(self, lab_id: str) -> LabText:
        """The specification of one lab as it is written.

        Raises:
            UsageError: there is no such lab.
            ConfigurationError: its declaration or its file is wrong; the message names the distribution.
        """
        points = self._declared.of(lab_id)
        if len(points) + (lab_id in self._own) > 1:
            raise ConfigurationError(
                f"lab {lab_id!r} is declared by {self.origin(lab_id)}; uninstall all of them but one"
            )
        if lab_id in self._own:
            path, form = self._own[lab_id]
        elif points:
            path, form = _file_of(points[0])
        else:
            raise UsageError(f"there is no lab {lab_id!r}{instead(lab_id, self.ids(), 'labs')}")
        try:
            content = read_at_most(path)
        except OSError as error:
            raise ConfigurationError(f"lab {lab_id!r} of {self.origin(lab_id)} cannot be read: {error}") from error
        return LabText(lab_id, content, form, path.name, self.origin(lab_id))


@cache
def installed() -> Shelf:
    """The labs that are installed; looked up once in a process, as installing takes effect with the next one."""
    return Shelf()


def read_at_most(path: Path) -> bytes:
    """A regular file's content, cut one byte behind the limit that every specification keeps.

    Raises:
        OSError: it cannot be read, or is no regular file.
    """
    if path.exists() and not path.is_file():
        raise OSError(f"{path} is no regular file")
    with path.open("rb") as stream:
        return stream.read(MAX_BYTES + 1)


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
