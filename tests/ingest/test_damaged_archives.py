"""Broken, truncated and lying archives: a list of files or a rejection, never another error."""

import errno
import resource
import struct

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from grader_service.errors import SubmissionRejected
from grader_service.ingest.archive import unpack
from tests.ingest.packing import SMALL, SOURCE, Target, code_cell, notebook, pack, tar_bytes, zip_bytes
from tests.ingest.test_archive import KINDS


@pytest.mark.parametrize("kind", ["zip", "tar"])
@pytest.mark.parametrize(
    "content",
    [b"not an archive at all", b"\0" * 3, b"PK\x03\x04", b"\x1f\x8b", b"\x1f\x8b" + b"\xff" * 600, b"x" * 5000],
    ids=["text", "zeros", "zip-start", "gzip-start", "gzip-garbage", "long-text"],
)
def test_garbage(target, kind, content):
    """Bytes that are no archive are said to be none, and what to do."""
    code, feedback = target.rejection(content, kind)
    assert code == "archive.unreadable"
    assert "Pack the files again" in feedback
    assert str(target.root) not in feedback


@pytest.mark.parametrize(("named", "really"), [("zip", "tar"), ("zip", "tar.gz"), ("tar", "zip")])
def test_a_wrong_ending(target, named, really):
    """An archive of another kind than its name says cannot be read."""
    assert target.rejection(pack(really, [("submission.py", SOURCE)]), named)[0] == "archive.unreadable"


@KINDS
@pytest.mark.parametrize("share", [0.1, 0.4, 0.6, 0.9])
def test_truncated_archives(target, kind, share):
    """An upload that broke off is unreadable, never a smaller submission."""
    content = pack(kind, [("submission.py", SOURCE * 40), ("noise.bin", bytes(range(251)) * 40)])
    if kind == "tar":
        content = content.rstrip(b"\0")  # only padding follows
    assert target.rejection(content[: int(len(content) * share)], kind)[0] == "archive.unreadable"


@pytest.mark.parametrize("method", [0, 8, 12, 14], ids=["stored", "deflate", "bzip2", "lzma"])
def test_every_compression_method(target, method):
    """Whatever method a packer used, intact data arrives, and damaged data is the archive's fault."""
    noise = bytes(number * number % 251 for number in range(3000))
    content = zip_bytes([("submission.py", SOURCE), ("noise.bin", noise)], method=method)
    target.unpack(content)
    assert target.files()["noise.bin"] == noise
    damaged = bytearray(content)
    start = content.index(b"noise.bin") + 30
    damaged[start : start + 40] = b"\xff" * 40
    second = Target(target.root / "second")
    assert second.rejection(bytes(damaged))[0] == "archive.unreadable"


def test_an_unknown_compression_method(target):
    """Packers have methods that Python cannot unpack; the message says so."""
    content = zip_bytes([("submission.py", SOURCE)])
    directory = content.rindex(b"PK\x01\x02")
    changed = bytearray(content)
    changed[8:10] = changed[directory + 10 : directory + 12] = struct.pack("<H", 9)
    code, feedback = target.rejection(bytes(changed))
    assert code == "archive.unreadable"
    assert "compression method is not supported" in feedback


@pytest.mark.parametrize("field", ["offset", "size", "name length", "count"])
@pytest.mark.parametrize("value", [0, 1, 0x7FFFFFFF, 0xFFFFFFFE])
def test_absurd_numbers_in_a_zip(target, field, value):
    """Offsets, sizes and counts that lie end as a rejection or are overruled by what is there; nothing else happens."""
    content = bytearray(zip_bytes([("submission.py", SOURCE)]))
    directory = content.rindex(b"PK\x01\x02")
    start, form = {
        "offset": (directory + 42, "<I"),
        "size": (directory + 24, "<I"),
        "name length": (directory + 28, "<H"),
        "count": (len(content) - 12, "<H"),
    }[field]
    struct.pack_into(form, content, start, value & (0xFFFF if form == "<H" else 0xFFFFFFFF))
    outcome = target.outcome(bytes(content))
    assert outcome in ([], ["submission.py"]) or outcome.code == "archive.unreadable"


@pytest.mark.parametrize("size", [2**63 - 1, 2**64 - 1, 2**40])
def test_zip64_numbers_that_lie(target, size):
    """A zip64 record can claim more than any file system has."""
    content = zip_bytes([("submission.py", SOURCE)])
    directory = content.rindex(b"PK\x01\x02")
    end = content.rindex(b"PK\x05\x06")
    extra = struct.pack("<HHQQQ", 1, 24, size, size, size)
    entry = bytearray(content[directory:end])
    struct.pack_into("<II", entry, 20, 0xFFFFFFFF, 0xFFFFFFFF)
    struct.pack_into("<H", entry, 30, len(extra))
    struct.pack_into("<I", entry, 42, 0xFFFFFFFF)
    tail = bytearray(content[end:])
    struct.pack_into("<I", tail, 12, len(entry) + len(extra))
    code, _ = target.rejection(content[:directory] + bytes(entry) + extra + bytes(tail))
    assert code == "archive.unreadable"


@KINDS
def test_a_disk_that_refuses_is_not_the_learners_fault(target, kind):
    """An error of the file system is raised as it is: only the archive's own faults are rejections."""
    content = pack(kind, [("submission.py", bytes(100_000))])
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    archive = target.root / "archive"
    archive.write_bytes(content)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, hard))
    try:
        with pytest.raises(OSError, match="File too large") as raised:
            unpack(archive, "zip" if kind == "zip" else "tar", target.into, SMALL)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert raised.value.errno == errno.EFBIG


SEEDS = [
    zip_bytes([("submission.py", SOURCE * 20), ("data/a.txt", b"abc")]),
    zip_bytes([("submission.ipynb", notebook(code_cell("x = 1")))], method=0),
    tar_bytes([("submission.py", SOURCE), ("data/a.txt", b"abc" * 300)]),
    tar_bytes([("submission.py", SOURCE), ("ü" * 90, b"abc")]),
    tar_bytes([("submission.py", SOURCE)], packed=True),
]


@settings(deadline=None, max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(SEEDS), st.lists(st.tuples(st.floats(0, 0.999), st.binary(max_size=6)), min_size=1, max_size=6))
def test_damaged_archives_end_in_a_list_or_a_rejection(tmp_path_factory, seed, changes):
    """No damage makes unpacking raise anything else, or write anywhere else."""
    content = bytearray(seed)
    for place, patch in changes:
        start = int(place * len(content))
        content[start : start + len(patch)] = patch
    target = Target(tmp_path_factory.mktemp("fuzz"))
    kind = "zip" if seed.startswith(b"PK") else "tar"
    outcome = target.outcome(bytes(content), kind, SMALL)
    if isinstance(outcome, SubmissionRejected):
        assert outcome.code.startswith("archive.")
        assert outcome.feedback.isprintable()
    else:
        assert outcome == sorted(target.files())
