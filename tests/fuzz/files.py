"""What a learner hands in: archives, notebooks, and the answer of the process that opens them."""

import os
import shutil
import tempfile
from pathlib import Path

from grader_service.ingest import artifact
from grader_service.ingest.archive import unpack
from grader_service.ingest.entry import choose_entry
from grader_service.ingest.limits import IngestLimits
from grader_service.ingest.notebook import read_cells

SMALL = IngestLimits(unpacked_bytes=1 << 20, members=200, depth=4, cells=50, source_bytes=64 << 10)


def folder(name: str) -> Path:
    """A new folder, in memory where there is one."""
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    return Path(tempfile.mkdtemp(prefix=f"grader-fuzz-{name}-", dir=memory))


def notebook(data: bytes) -> object:
    """The cells, which must travel to a pod as JSON in UTF-8."""
    cells = read_cells(data, SMALL)
    for _, source in cells:
        source.encode()
    return cells


def zip_archive(data: bytes) -> object:
    """What lies in the folder after a zip was unpacked."""
    return _unpacked(data, "zip")


def tar_archive(data: bytes) -> object:
    """The same for a tar, compressed or not."""
    return _unpacked(data, "tar")


def opener(data: bytes) -> object:
    """The answer of the process that opens submissions, should hostile bytes have taken it over."""
    return artifact._checked(data)


def _unpacked(data: bytes, kind: str) -> object:
    place = folder("unpack")
    try:
        archive, into = place / "a", place / "out"
        archive.write_bytes(data)
        into.mkdir()
        paths = unpack(archive, kind, into, SMALL)
        found = sorted(str(path.relative_to(into)) for path in into.rglob("*") if not path.is_dir())
        assert found == paths, (found, paths)
        assert not any(path.is_symlink() for path in into.rglob("*"))
        assert sorted(path.name for path in place.iterdir()) == ["a", "out"], "something lies outside"
        return choose_entry(paths)
    finally:
        shutil.rmtree(place)
