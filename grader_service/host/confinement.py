"""Walls that a process puts up around itself, by the kernel's own means; Linux on x86-64 and AArch64.

`confine` is for the process in which checks judge. From then on it makes no socket and looks into no other process
(seccomp), reads files only where code is imported from, and changes none (Landlock, where the kernel has it).
`hide_this_process` is for those that know secrets: nobody of the same user reads their memory or environment.
"""

import ctypes
import errno
import importlib.metadata
import importlib.util
import os
import platform
import struct
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from grader_service.errors import ConfigurationError

_LIBC = ctypes.CDLL(None, use_errno=True)
_PR_SET_DUMPABLE, _PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS = 4, 22, 38
_SECCOMP_MODE_FILTER = 2

_REFUSED_ANYWHERE = {
    "io_uring_setup": 425,  # would do all of the others unseen
    "pidfd_getfd": 438,
    "fchmodat2": 452,
    "setxattrat": 463,
    "removexattrat": 466,
    "file_setattr": 469,
}
_REFUSED = {
    "x86_64": _REFUSED_ANYWHERE
    | {"socket": 41, "connect": 42, "bind": 49, "socketpair": 53}
    | {"ptrace": 101, "process_vm_readv": 310, "process_vm_writev": 311}
    | {"truncate": 76, "chmod": 90, "fchmod": 91, "fchmodat": 268}
    | {"chown": 92, "fchown": 93, "lchown": 94, "fchownat": 260}
    | {"utime": 132, "utimes": 235, "futimesat": 261, "utimensat": 280}
    | {"setxattr": 188, "lsetxattr": 189, "fsetxattr": 190}
    | {"removexattr": 197, "lremovexattr": 198, "fremovexattr": 199},
    "aarch64": _REFUSED_ANYWHERE
    | {"socket": 198, "socketpair": 199, "bind": 200, "connect": 203}
    | {"ptrace": 117, "process_vm_readv": 270, "process_vm_writev": 271}
    | {"truncate": 45, "fchmod": 52, "fchmodat": 53, "fchownat": 54, "fchown": 55, "utimensat": 88}
    | {"setxattr": 5, "lsetxattr": 6, "fsetxattr": 7, "removexattr": 14, "lremovexattr": 15, "fremovexattr": 16},
}
"""System calls by their numbers: to the signer's socket, into the process that has asked it, and those that change a
file in ways that Landlock does not know, or not in its first version."""
_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_X32 = 0x40000000
"""Calls of the other numbering that an x86-64 kernel may know begin here."""
_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000 | errno.EPERM

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_READ_FILE, _WRITE_FILE = 1 << 2, 1 << 1
_CHANGES = _WRITE_FILE | sum(1 << bit for bit in range(4, 13))
"""To write to files, to remove and to make them, folders and whatever else has a name."""
_PATH_BENEATH = 1
_SYSTEM = ("/usr", "/lib", "/lib64", "/etc", "/proc", "/sys", "/dev/zero", "/dev/random", "/dev/urandom")
"""Of /dev not all: other processes' shared memory is there."""


def hide_this_process() -> None:
    """Keeps memory, environment and open files of this process, and of those that it forks, from others of its user."""
    _required(_prctl(_PR_SET_DUMPABLE, 0), "be hidden from others of its user")


def confine(files: Iterable[Path] = ()) -> None:
    """Gives up, for ever, what judging does not need; before a check is imported, and before a thread is started.

    Args:
        files: checks that will be read, beside those that are installed.

    Raises:
        ConfigurationError: the kernel cannot do it, but for the part on files, of which `files_are_confined` tells.
    """
    machine = platform.machine()
    if machine not in _REFUSED:
        raise ConfigurationError(f"checks judge on Linux on x86-64 and AArch64 only; this is {machine}")
    _required(_prctl(_PR_SET_NO_NEW_PRIVS, 1), "give up new rights")
    if files_are_confined():
        _confine_files(_imported_from(files))
    _refuse_calls(refusing(machine))


def files_are_confined() -> bool:
    """Whether this kernel has Landlock, and this container may use it."""
    return platform.machine() in _REFUSED and int(_LIBC.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), 1)) > 0


def _imported_from(files: Iterable[Path]) -> set[Path]:
    """Folders below which code lies, of checks that are installed for editing, too; and what any program reads."""
    libraries = os.environ.get("LD_LIBRARY_PATH", "").replace(";", ":").split(":")
    found = {Path(one) for one in (*_SYSTEM, sys.prefix, sys.base_prefix, *sys.path, *libraries)}
    found |= {path.parent for file in files for path in (file.absolute(), file.resolve())}
    packages = {entry.module.partition(".")[0] for entry in importlib.metadata.entry_points(group="grader.checks")}
    found |= set(_places(packages))
    return {path for path in found if path.is_absolute() and path != Path("/") and path.exists()}


def _places(packages: Iterable[str]) -> Iterator[Path]:
    for package in packages:
        with suppress(ImportError, ValueError):  # said when the check is loaded
            if (spec := importlib.util.find_spec(package)) is not None:
                yield from map(Path, spec.submodule_search_locations or ())
                if spec.origin is not None:
                    yield Path(spec.origin)


def _confine_files(allowed: Iterable[Path]) -> None:
    attributes = struct.pack("=Q", _READ_FILE | _CHANGES)
    ruleset = _LIBC.syscall(_CREATE_RULESET, attributes, ctypes.c_size_t(len(attributes)), ctypes.c_uint32(0))
    _required(ruleset, "make rules on files")
    try:
        for path in allowed:
            _allow(ruleset, path, _READ_FILE)
        _allow(ruleset, Path(os.devnull), _READ_FILE | _WRITE_FILE)
        _required(_LIBC.syscall(_RESTRICT_SELF, ruleset, ctypes.c_uint32(0)), "keep to rules on files")
    finally:
        os.close(ruleset)


def _allow(ruleset: int, path: Path, rights: int) -> None:
    descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        rule = struct.pack("=Qi", rights, descriptor)
        added = _LIBC.syscall(_ADD_RULE, ruleset, _PATH_BENEATH, rule, ctypes.c_uint32(0))
        _required(added, f"open what is below {path}")
    finally:
        os.close(descriptor)


def refusing(machine: str) -> list[tuple[int, int, int, int]]:
    """The seccomp filter of a machine of this `platform.machine()`: code, two jumps and an operand in each line."""
    numbers = sorted(_REFUSED[machine].values())
    refuse = len(numbers) + 5  # where the last line stands
    lines = [(_LOAD, 0, 0, 4), (_EQUAL, 0, refuse - 2, _ARCHITECTURES[machine])]
    lines += [(_LOAD, 0, 0, 0), (_AT_LEAST, refuse - 4, 0, _X32)]
    lines += [(_EQUAL, refuse - 1 - place, 0, number) for place, number in enumerate(numbers, len(lines))]
    return [*lines, (_RETURN, 0, 0, _ALLOW), (_RETURN, 0, 0, _REFUSE)]


def _refuse_calls(lines: list[tuple[int, int, int, int]]) -> None:
    program = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *line) for line in lines))
    filter_ = struct.pack("@HP", len(lines), ctypes.addressof(program))
    address = ctypes.cast(ctypes.c_char_p(filter_), ctypes.c_void_p).value or 0
    _required(_prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, address), "have system calls refused")


def _prctl(*arguments: int) -> int:
    return int(_LIBC.prctl(*(ctypes.c_ulong(one) for one in (*arguments, 0, 0, 0, 0)[:5])))


def _required(answer: int, what: str) -> None:
    if answer < 0:
        raise ConfigurationError(f"the kernel does not let this process {what}: {os.strerror(ctypes.get_errno())}")
