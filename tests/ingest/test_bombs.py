"""Archives made to exhaust the host: each ends as a rejection after a bounded number of bytes and members."""

import gzip
import tarfile

import pytest

from grader_service.ingest.limits import IngestLimits
from tests.ingest.packing import SMALL, SOURCE, crowded_zip, pack, quoted_overlap_bomb, tar_bytes, zip_bytes

ZEROS = bytes(32 << 20)


def written(target):
    """Bytes that unpacking left on disk."""
    return sum(map(len, target.files().values()))


@pytest.mark.parametrize("kind", ["zip", "tar.gz"])
def test_a_bomb_is_cut_at_the_limit(target, kind):
    """32 MiB from 32 KiB: no more than the limit reaches the disk, and the message has the limit in it."""
    content = pack(kind, [("submission.py", SOURCE), ("zeros.bin", ZEROS)])
    assert len(content) < 100_000
    code, feedback = target.rejection(content, kind)
    assert code == "archive.too_large"
    assert "more than 1 MiB" in feedback
    assert "Let the notebook write its data set" in feedback
    assert written(target) <= SMALL.unpacked_bytes


@pytest.mark.parametrize("method", [12, 14], ids=["bzip2", "lzma"])
def test_a_bomb_of_another_method(target, method):
    """Methods whose decompressor cannot be told to stop are cut, too."""
    assert target.rejection(zip_bytes([("zeros.bin", ZEROS)], method=method))[0] == "archive.too_large"
    assert written(target) <= SMALL.unpacked_bytes


@pytest.mark.parametrize("kind", ["zip", "tar", "tar.gz"])
def test_the_budget_is_for_all_members_together(target, kind):
    """Twenty files of a tenth of the limit each are too large, ten are not."""
    members = [(f"{number}.bin", bytes(100_000)) for number in range(20)]
    assert target.rejection(pack(kind, members), kind)[0] == "archive.too_large"
    assert written(target) <= SMALL.unpacked_bytes


@pytest.mark.parametrize("kind", ["zip", "tar", "tar.gz"])
def test_what_fits_exactly_is_taken(target, kind):
    """The limit itself is allowed."""
    target.unpack(pack(kind, [("a.bin", bytes(SMALL.unpacked_bytes - 7)), ("b.bin", bytes(7))]), kind)
    assert written(target) == SMALL.unpacked_bytes


def test_overlapping_members(target):
    """90 members of which each holds all later ones: 12 kB that claim 360 MiB."""
    content = quoted_overlap_bomb(90, 4 << 20)
    assert len(content) < 20_000
    code, _ = target.rejection(content, limits=IngestLimits(unpacked_bytes=8 << 20))
    assert code in ("archive.unreadable", "archive.too_large")  # newer zipfile modules refuse overlaps themselves
    assert written(target) <= 8 << 20


@pytest.mark.parametrize("members", [101, 100_000])
def test_too_many_members_in_a_zip(target, members):
    """Members are counted before the first is written."""
    code, feedback = target.rejection(crowded_zip(members))
    assert code == "archive.too_many_members"
    assert str(members) in feedback
    assert "at most 100 are unpacked" in feedback
    assert not target.files()


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("name", ["f", "__pycache__/f"], ids=["plain", "junk"])
def test_too_many_members_in_a_tar(target, packed, name):
    """Reading stops at the limit, whether the members are wanted or not: a tar has no list to count first."""
    one = tarfile.TarInfo(name).tobuf(tarfile.USTAR_FORMAT)
    if name == "f":
        content = b"".join(tarfile.TarInfo(f"f{number}").tobuf(tarfile.USTAR_FORMAT) for number in range(101))
    else:
        content = one * 100_000
    code, feedback = target.rejection(gzip.compress(content, 1) if packed else content, "tar")
    assert code == "archive.too_many_members"
    assert "has 101 or more entries" in feedback
    assert len(target.files()) <= 100


@pytest.mark.parametrize("kind", ["zip", "tar", "tar.gz"])
def test_the_most_members_are_taken(target, kind):
    """The limit itself is allowed."""
    members = [(f"{number:03d}.txt", b"") for number in range(100)]
    assert len(target.unpack(pack(kind, members), kind)) == 100


def test_a_huge_pax_header(target):
    """A header that is longer than any name is not taken for one."""
    info = tarfile.TarInfo("submission.py")
    info.pax_headers = {"path": "x" * (3 << 20)}
    code, feedback = target.rejection(tar_bytes([(info, b"")]), "tar")
    assert code == "archive.bad_name"
    assert len(feedback) < 300


def test_a_header_that_promises_gigabytes(target):
    """The size of a header block is only a promise; what does not come is not waited for."""
    header = tarfile.TarInfo("x")
    header.type, header.size = tarfile.GNUTYPE_LONGNAME, 6 << 30
    assert target.rejection(header.tobuf(tarfile.GNU_FORMAT) + bytes(5000), "tar")[0] == "archive.unreadable"


def test_headers_about_headers(target):
    """A chain of PAX headers ends when Python's stack does, as an unreadable archive."""
    header = tarfile.TarInfo("x")
    header.type = tarfile.XHDTYPE
    assert target.rejection(header.tobuf(tarfile.USTAR_FORMAT) * 3000, "tar")[0] == "archive.unreadable"


def test_a_sparse_member_counts_what_it_unpacks_to(target):
    """A terabyte of holes takes one block in a tar."""
    header = bytearray(tarfile.TarInfo("sparse.bin").tobuf(tarfile.GNU_FORMAT))
    header[156:157] = tarfile.GNUTYPE_SPARSE
    header[386:398] = b"%011o\0" % 0  # one piece of no length at offset 0
    header[398:410] = b"%011o\0" % 0
    header[483:495] = b"\x80" + (1 << 40).to_bytes(11, "big")
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    assert target.rejection(bytes(header) + bytes(1024), "tar")[0] == "archive.too_large"
    assert written(target) <= SMALL.unpacked_bytes
