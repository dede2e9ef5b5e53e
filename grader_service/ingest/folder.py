"""Packs a folder as its learner would, where it holds exactly one entry point."""

import os
import shutil
import stat
import zipfile
from collections.abc import Iterator
from pathlib import Path

from grader_service.errors import SubmissionRejected, UsageError
from grader_service.ingest.archive import enclosing, is_junk
from grader_service.ingest.entry import choose_entry
from grader_service.ingest.limits import IngestLimits


def pack(folder: Path, into: Path, limits: IngestLimits | None = None) -> tuple[Path, str]:
    """Makes an archive of a folder, the same bytes for the same files; what tools leave beside one's work stays out.

    Returns:
        The archive and, relative to its top, what of it will run.

    Raises:
        UsageError: it has no entry point or several, holds links or special files, is too large or cannot be read.
    """
    try:
        files = _files(folder, limits or IngestLimits())
        top = enclosing(files)
        entry = choose_entry([path.removeprefix(top) for path in files], "folder")
        archive = into / f"{folder.resolve().name[:60] or 'submission'}.zip"
        with zipfile.ZipFile(archive, "w") as packed:
            for path in files:
                info = zipfile.ZipInfo(path)  # with the first day that archives know, whenever it was written
                info.compress_type = zipfile.ZIP_DEFLATED
                with packed.open(info, "w") as out, (folder / path).open("rb") as source:
                    shutil.copyfileobj(source, out)
    except SubmissionRejected as error:
        raise _refused(folder, f"{error.feedback} Or give the one file in place of the folder") from None
    except (OSError, UnicodeEncodeError) as error:
        raise UsageError(f"{folder} cannot be packed: {error}. Give one file, or an archive of your own") from error
    return archive, entry


def _files(folder: Path, limits: IngestLimits) -> list[str]:
    """Paths of all files relative to the folder, sorted."""
    found: list[str] = []
    left = limits.unpacked_bytes
    for path in _walked(folder):
        mode = path.lstat()
        name = path.relative_to(folder).as_posix()
        if stat.S_ISLNK(mode.st_mode):
            raise _refused(folder, f"{name} is a link. Put the file itself in its place")
        if not stat.S_ISREG(mode.st_mode):
            raise _refused(folder, f"{name} is a device, pipe or socket. Move it elsewhere")
        left -= mode.st_size
        found.append(name)
        if left < 0 or len(found) > limits.members:
            most = f"{limits.members} files or {limits.unpacked_bytes >> 20} MiB"
            raise _refused(folder, f"it holds more than {most}. Give the one file, or a folder with your work alone")
    return sorted(found)


def _walked(folder: Path) -> Iterator[Path]:
    """All below it but folders that are folders, and what is left out."""
    for place, folders, files in os.walk(folder, onerror=_raise):
        inner = Path(place)
        parts = list(inner.relative_to(folder).parts)
        folders[:] = [name for name in folders if not is_junk([*parts, name])]
        links = [name for name in folders if (inner / name).is_symlink()]
        for name in (*links, *files):
            if not is_junk([*parts, name]):
                yield inner / name


def _raise(error: OSError) -> None:
    raise error


def _refused(folder: Path, why: str) -> UsageError:
    return UsageError(f"{folder} is not packed: {why}")
