"""Unpacks an archive member by member under a budget: no traversal, links, devices, duplicates or bombs.

Declared sizes are never trusted: what is counted is what comes out of the decompressor.
"""

import errno
import stat
import tarfile
import tempfile
import unicodedata
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import IO, NoReturn

from grader_service.errors import SubmissionRejected
from grader_service.ingest.limits import IngestLimits

_JUNK_FOLDERS = frozenset({"__macosx", ".git", ".ipynb_checkpoints", "__pycache__", ".venv", ".idea", ".vscode"})
_JUNK_NAMES = frozenset({".ds_store", "thumbs.db", "desktop.ini"})
_JUNK_SUFFIXES = (".pyc", ".pyo")
_APPLE_DOUBLE = "._"
"""What macOS packs beside a file `name`, as `._name`; left in, it would look like a second entry point."""
_CHUNK = 1 << 16
_ENCRYPTED = 0x41
"""Zip flags for a member with a password, and for the strong kind."""


@dataclass
class _Member:
    """One entry of an archive, before anything of it is written."""

    name: str
    is_folder: bool
    open: Callable[[], IO[bytes]]


@dataclass
class _Names:
    """What was unpacked, by name with case and Unicode forms folded, so that no file can hide behind another."""

    files: dict[str, str] = field(default_factory=dict)
    folders: set[str] = field(default_factory=set)

    def add(self, parts: list[str], *, is_folder: bool) -> str:
        """Takes one more name, as a path; rejects it where another one stands in its place."""
        path = "/".join(parts)
        folded = _folded(path).split("/")
        above = {"/".join(folded[:depth]) for depth in range(1, len(folded))}
        key = "/".join(folded)
        if not is_folder and key in self.files:
            _reject(
                "duplicate_member",
                f"{_shown(path)} and {_shown(self.files[key])} are the same name once case and Unicode forms are "
                "folded. Keep one of them.",
            )
        if self.files.keys() & above or (key in self.files if is_folder else key in self.folders):
            _reject("duplicate_member", f"{_shown(path)}: one name is both a file and a folder. Rename one of them.")
        self.folders |= above
        if is_folder:
            self.folders.add(key)
        else:
            self.files[key] = path
        return path


def unpack(archive: Path, kind: str, into: Path, limits: IngestLimits) -> list[str]:
    """Writes the archive's regular files below `into`; returns their relative paths, sorted.

    One enclosing folder is looked through. Modes, owners and times are not kept.

    Args:
        kind: `zip` or `tar` (compressed with gzip or not).

    Raises:
        SubmissionRejected: with an `archive.*` code.
        OSError: our disk failed or is full.
    """
    if kind == "zip":
        with _reading():
            opened = zipfile.ZipFile(archive)
        with opened:
            return _write(_zip_members(opened, limits), into, limits)
    with archive.open("rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
    with _reading():
        # Stream modes read forward only, so a bomb is met before its members are listed.
        tar = tarfile.open(archive, "r|gz" if packed else "r|")  # noqa: SIM115 - closed below
    with tar:
        return _write(_tar_members(tar, limits), into, limits)


def _zip_members(opened: zipfile.ZipFile, limits: IngestLimits) -> Iterator[_Member]:
    infos = opened.infolist()
    if len(infos) > limits.members:
        _too_many(len(infos), limits)
    for info in infos:
        # The name as stored: the other one ends at the first NUL byte.
        name = info.orig_filename
        mode = info.external_attr >> 16
        if info.flag_bits & _ENCRYPTED:
            _reject("encrypted", f"{_shown(name)} is encrypted. Pack the archive without a password.")
        if stat.S_ISLNK(mode):
            _link(name)
        if mode and stat.S_IFMT(mode) not in (0, stat.S_IFREG, stat.S_IFDIR):
            _special(name)
        yield _Member(name, name.endswith(("/", "\\")), partial(opened.open, info))


def _tar_members(tar: tarfile.TarFile, limits: IngestLimits) -> Iterator[_Member]:
    count = 0
    while True:
        with _reading():
            info = tar.next()
        if info is None:
            return
        count += 1
        if count > limits.members:
            _too_many(count, limits)
        if info.issym() or info.islnk():
            _link(info.name)
        if not (info.isfile() or info.isdir()):
            _special(info.name)
        yield _Member(info.name, info.isdir(), partial(_extracted, tar, info))


def _extracted(tar: tarfile.TarFile, info: tarfile.TarInfo) -> IO[bytes]:
    return tar.extractfile(info) or _special(info.name)


def _write(members: Iterator[_Member], into: Path, limits: IngestLimits) -> list[str]:
    # A name that no archive can know, so that none can hold a member that clashes with it.
    staging = Path(tempfile.mkdtemp(prefix=".unpacking-", dir=into))
    names = _Names()
    left = limits.unpacked_bytes
    for member in members:
        parts = _parts(member.name, limits)
        if not parts or is_junk(parts):
            continue
        names.add(parts, is_folder=member.is_folder)
        if member.is_folder:
            continue
        target = staging.joinpath(*parts)
        target.parent.mkdir(parents=True, exist_ok=True)
        left = _copy(member, target, left, limits)
    return _lift(staging, into, sorted(names.files.values()))


def _copy(member: _Member, target: Path, left: int, limits: IngestLimits) -> int:
    with _reading():
        source = member.open()
    with source, target.open("xb") as out:
        while True:
            with _reading():
                chunk = source.read(_CHUNK)
            if not chunk:
                return left
            left -= len(chunk)
            if left < 0:
                _reject(
                    "too_large",
                    f"The archive unpacks to more than {limits.unpacked_bytes >> 20} MiB. "
                    "Let the notebook write its data set, or send fewer and smaller files.",
                )
            out.write(chunk)


@contextmanager
def _reading() -> Iterator[None]:
    """Around every call that parses the archive: whatever a parser raises on hostile bytes is the archive's fault."""
    try:
        yield
    except (SubmissionRejected, MemoryError):
        raise
    except Exception as error:
        # The parsers' own OSErrors carry no number; a seek to a place that cannot be carries EINVAL.
        if isinstance(error, OSError) and error.errno not in (None, errno.EINVAL):
            raise
        reason = str(error).encode("ascii", "backslashreplace").decode()[:150]
        _reject("unreadable", f"The archive cannot be read ({reason}). Pack the files again and resend it.")


def _lift(staging: Path, into: Path, paths: list[str]) -> list[str]:
    """Moves the files to their place, without one enclosing folder if there is one."""
    enclosed = enclosing(paths)
    root = staging / enclosed
    for child in root.iterdir():
        child.rename(into / child.name)
    if enclosed:
        root.rmdir()
    staging.rmdir()
    return [path.removeprefix(enclosed) for path in paths]


def enclosing(paths: list[str]) -> str:
    """The one folder at the top in which all files lie, such as `lab/`; empty where there is none."""
    tops = {path.split("/", 1)[0] for path in paths}
    return f"{tops.pop()}/" if len(tops) == 1 and all("/" in path for path in paths) else ""


def _parts(name: str, limits: IngestLimits) -> list[str]:
    # Windows packers write backslashes; left alone they would be part of a name here.
    path = name.replace("\\", "/")
    if path.startswith("/") or (len(path) > 1 and path[1] == ":" and path[0].isalpha()):
        _traversal(name, "is an absolute path")
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if ".." in parts:
        _traversal(name, "leads out of the archive")
    if len(parts) > limits.depth:
        _reject(
            "too_deep",
            f"{_shown(name)} lies {len(parts)} folders deep; at most {limits.depth} are unpacked. "
            "Pack the files with fewer folders inside each other.",
        )
    if any(ord(char) < 32 or char == "\x7f" for char in path):
        _bad_name(name, "has control characters")
    try:
        sizes = [len(part.encode()) for part in parts]
    except UnicodeEncodeError:
        _bad_name(name, "is not valid Unicode")
    if max(sizes, default=0) > limits.name_bytes or sum(sizes) + len(sizes) > limits.path_bytes:
        _bad_name(name, f"is too long (at most {limits.name_bytes} bytes, {limits.path_bytes} with its folders)")
    return parts


def is_junk(parts: list[str]) -> bool:
    """Whether a file or folder is left out: what tools put beside one's work, given as the parts of its path."""
    # Compiled Python is left out so that what runs is the source that a person can read.
    name = parts[-1].lower()
    return (
        any(part.lower() in _JUNK_FOLDERS for part in parts)
        or name in _JUNK_NAMES
        or name.endswith(_JUNK_SUFFIXES)
        or name.startswith(_APPLE_DOUBLE)
    )


def _folded(path: str) -> str:
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", path).casefold())


def _shown(name: str) -> str:
    text = name.encode("ascii", "backslashreplace").decode()
    return repr(text if len(text) <= 80 else text[:77] + "...")


def _reject(reason: str, feedback: str) -> NoReturn:
    raise SubmissionRejected(f"archive.{reason}", feedback)


def _traversal(name: str, why: str) -> NoReturn:
    _reject("traversal", f"{_shown(name)} {why}. Pack the files with paths relative to your project folder.")


def _bad_name(name: str, why: str) -> NoReturn:
    _reject("bad_name", f"The name {_shown(name)} {why}. Rename the file and pack it again.")


def _link(name: str) -> NoReturn:
    _reject("link", f"{_shown(name)} is a link. Pack the file itself instead of a link to it.")


def _special(name: str) -> NoReturn:
    _reject("special_file", f"{_shown(name)} is a device, pipe or socket. Only files and folders can be sent.")


def _too_many(count: int, limits: IngestLimits) -> NoReturn:
    _reject(
        "too_many_members",
        f"The archive has {count} or more entries; at most {limits.members} are unpacked. "
        "Let the notebook write its data set instead of packing it.",
    )
