"""Makes archives and notebooks, honest and hostile, byte by byte where the standard library would refuse."""

import gzip
import io
import json
import struct
import tarfile
import zipfile
import zlib
from pathlib import Path

import pytest

from grader_service.errors import SubmissionRejected
from grader_service.ingest.archive import unpack
from grader_service.ingest.limits import IngestLimits

SOURCE = b"dataset_dir = 'data'\n"
SMALL = IngestLimits(unpacked_bytes=1 << 20, members=100, depth=4)


def zip_bytes(members, *, method=zipfile.ZIP_DEFLATED):
    """A zip of (name or ZipInfo, bytes) pairs."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, data in members:
            archive.writestr(name, data)
    return out.getvalue()


def zip_member(name, mode):
    """A member's description with a Unix mode, such as a symbolic link's."""
    info = zipfile.ZipInfo(name)
    info.create_system = 3
    info.external_attr = mode << 16
    return info


def tar_bytes(members, *, packed=False, form=tarfile.PAX_FORMAT):
    """A tar of (name or TarInfo, bytes) pairs."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=form) as archive:
        for member, data in members:
            info = tarfile.TarInfo(member) if isinstance(member, str) else member
            if info.isreg():
                info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return gzip.compress(out.getvalue(), mtime=0) if packed else out.getvalue()


def tar_member(name, kind, target=""):
    """A tar member of any type."""
    info = tarfile.TarInfo(name)
    info.type = kind
    info.linkname = target
    return info


def pack(kind, members):
    """The same members as `zip`, `tar` or `tar.gz`."""
    return zip_bytes(members) if kind == "zip" else tar_bytes(members, packed=kind == "tar.gz")


def quoted_overlap_bomb(count, kernel_bytes):
    """A zip whose members overlap: each one's data is a stored block that quotes the next one's header, then its data.

    The construction of D. Fifield, "A better zip bomb" (WOOT 2019).
    """
    squeeze = zlib.compressobj(9, zlib.DEFLATED, -15)
    packed = squeeze.compress(b"\0" * kernel_bytes) + squeeze.flush()
    plain_size, crc = kernel_bytes, zlib.crc32(b"\0" * kernel_bytes)
    tail, entries = packed, []
    for number in reversed(range(count)):
        name = f"{number:04d}.py".encode()
        fields = struct.pack("<HHHHHIIIHH", 20, 0, 8, 0, 33, crc, len(tail), plain_size, len(name), 0)
        header = b"PK\x03\x04" + fields + name
        entries.append((name, crc, len(tail), plain_size, len(header) + len(tail)))
        crc = zlib.crc32(_unpacked(tail), zlib.crc32(header)) if number else 0
        plain_size += len(header)
        tail = b"\x00" + struct.pack("<HH", len(header), len(header) ^ 0xFFFF) + header + tail
    body = tail[5:]
    directory = b""
    for name, checksum, size, plain, from_end in reversed(entries):
        directory += b"PK\x01\x02" + struct.pack(
            "<HHHHHHIIIHHHHHII", 20, 20, 0, 8, 0, 33, checksum, size, plain, len(name), 0, 0, 0, 0, 0,
            len(body) - from_end,
        ) + name  # fmt: skip
    end = b"PK\x05\x06" + struct.pack("<HHHHIIH", 0, 0, count, count, len(directory), len(body), 0)
    return body + directory + end


def _unpacked(raw):
    return zlib.decompressobj(-15).decompress(raw)


def crowded_zip(count):
    """A zip with `count` empty members, written without making them one by one."""
    header, directory = b"", []
    for number in range(count):
        name = f"f{number:07d}".encode()
        fields = struct.pack("<HHHHIIIHH", 0, 0, 0, 33, 0, 0, 0, 8, 0)
        directory.append(b"PK\x01\x02\x14\0\x14\0" + fields + struct.pack("<HHHII", 0, 0, 0, 0, 38 * number) + name)
        header += b"" if number else b"PK\x03\x04\x14\0" + fields + name
    listed = b"".join(directory)
    counted = min(count, 0xFFFF)
    return header + listed + b"PK\x05\x06" + struct.pack("<HHHHIIH", 0, 0, counted, counted, len(listed), 38, 0)


def notebook(*cells, **changes):
    """A notebook of code cells; a cell may be a source or a whole cell."""
    whole = {
        "nbformat": 4,
        "nbformat_minor": 5,
        "metadata": {"kernelspec": {"name": "python3", "language": "python", "display_name": "Python 3"}},
        "cells": [code_cell(cell, number) if isinstance(cell, str) else cell for number, cell in enumerate(cells)],
    }
    return json.dumps(whole | changes).encode()


def code_cell(source, number=0, outputs=()):
    """A code cell."""
    return {
        "cell_type": "code",
        "id": f"c{number}",
        "metadata": {},
        "execution_count": None,
        "outputs": list(outputs),
        "source": source,
    }


def refusal(call, *arguments):
    """(code, feedback) with which this call refuses a submission; learners can read every character of it."""
    with pytest.raises(SubmissionRejected) as raised:
        call(*arguments)
    assert raised.value.feedback.isprintable()
    return raised.value.code, raised.value.feedback


class Target:
    """A folder to unpack into, with files around it that no archive may touch."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.into = root / "deep" / "into"
        self.into.mkdir(parents=True)
        for folder in (root, root / "deep"):
            (folder / "sentinel.txt").write_text("untouched")
        self.before = self.outside()

    def outside(self):
        """Every path around the target, with its content."""
        return {
            path.relative_to(self.root): path.read_bytes() if path.is_file() else None
            for path in self.root.rglob("*")
            if self.into not in path.parents
        }

    def files(self):
        """Content of every unpacked file, by path."""
        return {
            path.relative_to(self.into).as_posix(): path.read_bytes()
            for path in sorted(self.into.rglob("*"))
            if path.is_file()
        }

    def unpack(self, content, kind="zip", limits=SMALL):
        """Unpacks these bytes; whatever happens, nothing outside may have changed."""
        archive = self.root / "archive"
        archive.write_bytes(content)
        try:
            return unpack(archive, "zip" if kind == "zip" else "tar", self.into, limits)
        finally:
            archive.unlink()
            assert self.outside() == self.before, "something outside the target was written"

    def outcome(self, content, kind="zip", limits=SMALL):
        """The unpacked paths, or the rejection itself."""
        try:
            return self.unpack(content, kind, limits)
        except SubmissionRejected as rejection:
            return rejection

    def rejection(self, content, kind="zip", limits=SMALL):
        """(code, feedback) with which these bytes are rejected."""
        return refusal(self.unpack, content, kind, limits)
