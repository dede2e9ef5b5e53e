"""I: archives that reach out of their folder, hide one file behind another, or hold more than they say."""

import importlib.util
import marshal
import stat
import tarfile
from collections.abc import Callable
from functools import partial

from tests.corpus.case import NOT_REACHED, Cheat
from tests.corpus.parts import REFLECTIONS
from tests.corpus.parts_texts import refused_cheat, text_cheat
from tests.ingest import packing

GOOD = ("submission.py", REFLECTIONS.encode())
"""Passes; what is beside it is the attack."""


def _zip(*members: tuple[object, bytes]) -> Callable[[], bytes]:
    return partial(packing.zip_bytes, members)


def _tar(*members: tuple[object, bytes]) -> Callable[[], bytes]:
    return partial(packing.tar_bytes, members, packed=True)


def _refused(case_id: str, title: str, content: Callable[[], bytes], code: str) -> Cheat:
    filename = "work.tar.gz" if content.func is packing.tar_bytes else "work.zip"  # type: ignore[attr-defined]
    return refused_cheat(case_id, title, content, code, filename=filename)


def _empty(case_id: str, title: str, content: Callable[[], bytes], *codes: str) -> Cheat:
    """One that is accepted, and gains nothing."""
    return text_cheat(case_id, title, content, *codes, filename="work.zip")


def _locked() -> bytes:
    """A zip with a member that its directory calls encrypted."""
    data = bytearray(packing.zip_bytes([GOOD, ("more.txt", b"locked")]))
    data[data.rindex(b"PK\x01\x02") + 8] |= 1
    return bytes(data)


def _two_headers() -> bytes:
    """A zip whose directory calls a member otherwise than the member's own header does."""
    data = packing.zip_bytes([GOOD, ("shown.txt", b"one"), ("last.txt", b"two")])
    at = data.rindex(b"shown.txt")
    return data[:at] + b"other.txt" + data[at + 9 :]


def _declared_small() -> bytes:
    """A zip whose directory says that a member has 3 bytes, where 200,000 are packed."""
    data = bytearray(packing.zip_bytes([GOOD, ("more.txt", b"0" * 200_000)]))
    at = data.rindex(b"PK\x01\x02")
    data[at + 24 : at + 28] = (3).to_bytes(4, "little")
    return bytes(data)


def _compiled() -> bytes:
    """A module as Python compiles it, without its source."""
    code = compile(REFLECTIONS, "hidden.py", "exec")
    return importlib.util.MAGIC_NUMBER + bytes(12) + marshal.dumps(code)


TOOL = b"""
import os, stat, subprocess

mode = os.stat("tool").st_mode
if mode & (stat.S_ISUID | stat.S_ISGID) or not subprocess.call(["./tool"]):
    from texts import *
"""

CASES = (
    _refused(
        "I01-parent",
        "a member above the folder",
        _zip(GOOD, ("../escaped.txt", b"out")),
        "archive.traversal",
    ),
    _refused("I01-parent-tar", "the same in a tar", _tar(GOOD, ("a/../../escaped.txt", b"out")), "archive.traversal"),
    _refused("I01-absolute", "a member at an absolute path", _tar(GOOD, ("/etc/escaped", b"x")), "archive.traversal"),
    _refused("I01-drive", "a member on a drive", _zip(GOOD, ("C:\\escaped.txt", b"x")), "archive.traversal"),
    _refused("I01-share", "a member on a share", _zip(GOOD, ("\\\\host\\share\\x.txt", b"x")), "archive.traversal"),
    _refused("I01-control", "a name that clears the screen", _tar(GOOD, ("\x1b[2J.txt", b"x")), "archive.bad_name"),
    _refused(
        "I02-symlink",
        "a link to the host's files",
        _zip(GOOD, (packing.zip_member("keys", stat.S_IFLNK | 0o777), b"/etc/passwd")),
        "archive.link",
    ),
    _refused(
        "I02-through",
        "a linked folder, and a member written through it",
        _tar(GOOD, (packing.tar_member("out", tarfile.SYMTYPE, "/tmp"), b""), ("out/escaped.txt", b"x")),
        "archive.link",
    ),
    _refused(
        "I02-hard-link",
        "a hard link to a file that is not in the archive",
        _tar(GOOD, (packing.tar_member("passwords", tarfile.LNKTYPE, "/etc/passwd"), b"")),
        "archive.link",
    ),
    _refused(
        "I02-device",
        "a disk as a member",
        _tar(GOOD, (packing.tar_member("disk", tarfile.BLKTYPE), b"")),
        "archive.special_file",
    ),
    _refused(
        "I02-pipe",
        "a pipe as a member, on which a reader would wait for ever",
        _tar(GOOD, (packing.tar_member("wait", tarfile.FIFOTYPE), b"")),
        "archive.special_file",
    ),
    _refused(
        "I03-case",
        "two members that differ in case only",
        _zip(GOOD, ("notes.txt", b"1"), ("NOTES.txt", b"2")),
        "archive.duplicate_member",
    ),
    _refused(
        "I03-unicode",
        "two members whose names look the same",
        _tar(GOOD, ("caf\u00e9.txt", b"1"), ("cafe\u0301.txt", b"2")),
        "archive.duplicate_member",
    ),
    _refused(
        "I03-twice",
        "one name with two contents, of which a reader may show the other",
        _tar(("submission.py", b"# nothing here\n"), GOOD),
        "archive.duplicate_member",
    ),
    _empty(
        "I04-modes",
        "a program that may run as its owner",
        _zip(
            ("submission.py", TOOL),
            ("texts.py", REFLECTIONS.encode()),
            (packing.zip_member("tool", stat.S_IFREG | 0o6777), b"#!/bin/sh\nexit 0\n"),
        ),
        NOT_REACHED,
    ),
    _refused("I05-encrypted", "a member with a password", partial(_locked), "archive.encrypted"),
    _refused(
        "I05-nested",
        "the submission in an archive in the archive",
        _zip(("inner.zip", packing.zip_bytes([GOOD]))),
        "entry.none",
    ),
    _refused("I05-headers", "a member with two names", partial(_two_headers), "archive.unreadable"),
    _refused("I05-sizes", "a member of more bytes than it says", partial(_declared_small), "archive.unreadable"),
    _refused(
        "I09-two",
        "two files that could be meant",
        _zip(("a.py", REFLECTIONS.encode()), ("b.py", b"x = 1\n")),
        "entry.ambiguous",
    ),
    _refused(
        "I09-both",
        "a module and a notebook of the same name",
        _zip(("submission.ipynb", packing.notebook("x = 1")), GOOD),
        "entry.ambiguous",
    ),
    _empty(
        "I10-compiled",
        "a module that comes compiled, so that nobody can read what runs",
        _zip(("submission.py", b"from hidden import *\n"), ("hidden.pyc", _compiled())),
        NOT_REACHED,
    ),
    _empty(
        "I11-setup",
        "what a package's installation would run",
        _zip(
            ("submission.py", b"from texts import *\n"),
            ("setup.py", f"open('texts.py', 'w').write({REFLECTIONS!r})\n".encode()),
            ("pyproject.toml", b'[build-system]\nrequires = []\nbuild-backend = "setup"\nbackend-path = ["."]\n'),
            ("requirements.txt", b"-e .\n"),
        ),
        NOT_REACHED,
    ),
)
