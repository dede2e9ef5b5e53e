"""Takes in one artifact: decides what it is, has it opened, and leaves a folder that a pod can run."""

import dataclasses
import hashlib
import json
import os
import signal
import stat
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import Field, TypeAdapter, ValidationError

from grader_service.errors import InfrastructureError, SubmissionRejected
from grader_service.ingest.limits import IngestLimits
from grader_service.model.base import Code, LongText, Wire
from sandbox.frames import FrameError, FrameLimits, decode_json

KINDS = {".py": "py", ".ipynb": "ipynb", ".zip": "zip", ".tar": "tar", ".tar.gz": "tar", ".tgz": "tar"}
"""The endings that a submission's name may have, and what each says that the file is."""
_ANSWER = FrameLimits(json_bytes=8 << 20, depth=8, values=10_000, containers=5_000)
"""Of the child: its notebook's code has at most 6 MiB as JSON, in at most 2,000 cells."""
# What the child inherits of our environment: its parsers see hostile bytes, and keys and tokens stay here.
_PASSED_ON = ("PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "PYTHONPATH", "PYTHONHOME")
# Signals by which hostile bytes end a parser. Any other one (a shutdown, the kernel short of memory) is not theirs.
_BLAMED_SIGNALS = frozenset(
    {signal.SIGXCPU, signal.SIGXFSZ, signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT, signal.SIGFPE, signal.SIGILL}
)


class Prepared(Wire):
    """A submission that can be run, as the child says of it."""

    entry: str
    """Path of the entry point, relative to the folder."""
    cells: Annotated[tuple[tuple[int, str], ...], Field(fail_fast=True)] | None
    """For a notebook: (1-based number among the code cells, Python source)."""


@dataclass(frozen=True)
class Artifact:
    """The bytes that were sent, in a file, with the name that they were sent under."""

    filename: str
    path: Path
    sha256: str
    size_bytes: int


class _Rejection(Wire):
    """The child's answer for one that cannot."""

    code: Code
    feedback: LongText


_ANSWERS: TypeAdapter[Prepared | _Rejection] = TypeAdapter(Prepared | _Rejection)


def artifact_at(path: Path) -> Artifact:
    """Hashes an artifact without opening it."""
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return Artifact(path.name, path, digest, path.stat().st_size)


def kind_of(filename: str) -> str:
    """`py`, `ipynb`, `zip` or `tar`, by the name's ending.

    Raises:
        SubmissionRejected: another ending.
    """
    lowered = filename.lower()
    for suffix, kind in sorted(KINDS.items(), key=lambda pair: -len(pair[0])):
        if lowered.endswith(suffix):
            return kind
    raise SubmissionRejected(
        "submission.unknown_type",
        f"{ascii(filename)[:80]} is not a kind of file that can be graded. Send one of {', '.join(sorted(KINDS))}.",
    )


def prepare(artifact: Artifact, into: Path, limits: IngestLimits | None = None) -> Prepared:
    """Leaves the submission's files in `into`, an empty folder, readable by a pod.

    Raises:
        SubmissionRejected: the artifact is unusable; the code says why.
        InfrastructureError: the child process that opens artifacts could not be run, or our disk failed.
    """
    limits = limits or IngestLimits()
    kind = kind_of(artifact.filename)
    _check_size(artifact, limits)
    if kind == "py":
        if artifact.size_bytes > limits.source_bytes:
            raise SubmissionRejected(
                "submission.too_large",
                f"{ascii(artifact.filename)[:80]} has {artifact.size_bytes >> 20} MiB; source code has at most "
                f"{limits.source_bytes >> 20} MiB. Put data into files of their own.",
            )
        prepared = Prepared(entry="submission.py", cells=None)
        try:
            (into / prepared.entry).write_bytes(artifact.path.read_bytes())
        except OSError as error:
            raise InfrastructureError(f"the submission could not be copied: {error}") from error
    else:
        prepared = _in_child(kind, artifact, into, limits)
    if prepared.entry not in _open_to_pods(into):
        raise InfrastructureError(f"the process that opens submissions left no {ascii(prepared.entry)[:80]}")
    _check_unchanged(artifact)
    return prepared


def _check_size(artifact: Artifact, limits: IngestLimits) -> None:
    if artifact.size_bytes == 0:
        raise SubmissionRejected("submission.empty", "The file is empty. Send the module, notebook or archive itself.")
    if artifact.size_bytes > limits.artifact_bytes:
        raise SubmissionRejected(
            "submission.too_large",
            f"The file has {artifact.size_bytes >> 20} MiB; at most {limits.artifact_bytes >> 20} MiB are accepted. "
            "Let the notebook write its data set instead of sending it.",
        )


def _check_unchanged(artifact: Artifact) -> None:
    """What was unpacked must be what was hashed: the verdict names the hash."""
    try:
        found = artifact_at(artifact.path).sha256
    except OSError as error:
        raise InfrastructureError(f"the submission went away while it was opened: {error}") from error
    if found != artifact.sha256:
        raise SubmissionRejected(
            "submission.changed", "The file changed while it was read. Send it again once it is written completely."
        )


def _in_child(kind: str, artifact: Artifact, into: Path, limits: IngestLimits) -> Prepared:
    # -P: nothing in the folder that the grader happens to stand in can pose as a module of ours.
    command = [
        sys.executable, "-P", "-m", "grader_service.ingest.worker", kind, str(artifact.path.resolve()),
        str(into.resolve()), json.dumps(dataclasses.asdict(limits)),
    ]  # fmt: skip
    environment = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    # Into files: a parser that was taken over must not fill our memory with what it says.
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        try:
            done = subprocess.run(
                command,
                check=False,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=errors,
                env=environment,
                timeout=limits.worker_wall_s,
            )
        except subprocess.TimeoutExpired:
            raise _too_costly() from None
        except OSError as error:
            raise InfrastructureError(f"the process that opens submissions could not be started: {error}") from error
        if -done.returncode in _BLAMED_SIGNALS:
            raise _too_costly()
        size = output.tell()
        if done.returncode != 0 or size > _ANSWER.json_bytes:
            errors.seek(max(0, errors.tell() - 500))
            tail = errors.read().decode(errors="replace")
            raise InfrastructureError(f"the process that opens submissions failed with {done.returncode}: {tail}")
        output.seek(0)
        return _checked(output.read())


def _checked(output: bytes) -> Prepared:
    try:
        answer = _ANSWERS.validate_python(decode_json(output, _ANSWER))
    except (FrameError, ValidationError) as error:
        reason = str(error)[:1000]
        raise InfrastructureError(f"the process that opens submissions answered nonsense: {reason}") from error
    if isinstance(answer, _Rejection):
        raise SubmissionRejected(answer.code, answer.feedback)
    return answer


def _open_to_pods(into: Path) -> set[str]:
    """Lets the pod's uid read every file; returns their relative paths. Nothing but files and folders may be here."""
    files = set()
    if stat.S_IMODE(into.stat().st_mode) & 0o005 != 0o005:  # where a pod broker made it, it is open, and another's
        into.chmod(0o755)
    for folder, names, file_names in os.walk(into):
        for name in [*names, *file_names]:
            path = Path(folder, name)
            mode = path.lstat().st_mode
            if not (stat.S_ISDIR(mode) or stat.S_ISREG(mode)):
                raise InfrastructureError(f"the process that opens submissions left a special file, {ascii(name)[:80]}")
            path.chmod(0o755 if stat.S_ISDIR(mode) else 0o644)
            if stat.S_ISREG(mode):
                files.add(path.relative_to(into).as_posix())
    return files


def _too_costly() -> SubmissionRejected:
    return SubmissionRejected(
        "submission.too_costly",
        "Opening the submission took more time than any honest one does. Send fewer or smaller files.",
    )
