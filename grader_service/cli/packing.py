"""The submission that a command names, as the one file that is sent."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from grader_service.cli.output import tell
from grader_service.errors import UsageError

EXPECTED = "a .py, .ipynb, .zip, .tar or .tar.gz submission, or a folder with one entry point"
PATH_HELP = f"{EXPECTED[0].upper()}{EXPECTED[1:]}."


@contextmanager
def one_file(path: Path) -> Iterator[Path]:
    """The file itself, or an archive of the folder, which goes away afterwards.

    Raises:
        UsageError: it is neither, or a folder that cannot be packed.
    """
    if path.is_dir():
        from grader_service.ingest.folder import pack  # noqa: PLC0415 - a single file needs no archives

        with tempfile.TemporaryDirectory(prefix="grader-packed-") as place:
            archive, entry = pack(path, Path(place))
            tell(f"grader: packed the folder {path} as {archive.name}; its entry point is {entry}")
            yield archive
    elif path.is_file():
        yield path
    else:
        raise UsageError(f"{path} is not a file or folder; expected {EXPECTED}")
