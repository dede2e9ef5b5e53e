"""A warm process that judges, so that a check which hangs, eats memory or crashes takes no worker with it.

The checks go there and then the evidence, and one message comes back per check, so that the time of each is
watched. A child that failed once is replaced; one that works is kept, since starting one costs half a second.
"""

import contextlib
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, TypeVar

import structlog
from pydantic import TypeAdapter, ValidationError

from checks.api import Result, undecided
from checks.registry import Registry
from grader_service.errors import InfrastructureError, JudgeFailed
from grader_service.judging.checks import Judged, Judgement
from grader_service.judging.child import receive_bytes, send, send_bytes
from grader_service.model.base import Wire
from grader_service.model.evidence import Evidence
from grader_service.model.lab import LabCheck, LabSpec, LabStep
from grader_service.model.preflight import Preflight
from grader_service.model.run_report import RunReport
from grader_service.model.verdict import Outcome

_KEPT_ENVIRONMENT = ("PATH", "PYTHONPATH", "VIRTUAL_ENV", "LD_LIBRARY_PATH", "LANG", "LC_ALL", "TZ")
_ERROR_BYTES = 4000
_CLOSING_S = 10.0
"""What an interpreter that has closed its pipe has to end by itself, so that its status is known."""
_NO_ADVICE = "This advice could not be given; that is our fault and costs nothing."

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class JudgeLimits:
    """What a judging process may use."""

    check_timeout_s: float = 20.0
    """Seconds of wall clock for one check."""
    start_timeout_s: float = 60.0
    """Until the checks of a lab are imported."""
    memory_mib: int = 4096
    """Of address space."""
    most_jobs: int = 1000
    """Then a fresh process takes over, whatever a check kept in memory."""


class JudgeProcess:
    """Judges in a child process; use it from one thread at a time."""

    def __init__(self, limits: JudgeLimits | None = None, check_files: Sequence[Path] = ()) -> None:
        """Starts nothing yet.

        Args:
            check_files: checks that are tried from a file, beside those that are installed.
        """
        self._limits = limits or JudgeLimits()
        self._files = tuple(check_files)
        self._child: _Child | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(self) -> None:
        """Starts the child without waiting for it, so that it imports meanwhile."""
        if self._child is None or not self._child.alive:
            self.close()
            self._child = _Child(self._limits, self._files)

    def close(self) -> None:
        """Ends the child."""
        if self._child is not None:
            self._child.end()
            self._child = None

    def judge(self, evidence: Evidence | bytes, steps: Iterable[LabStep], registry: Registry) -> Judgement:
        """How the run went, and the answers of every check; as `judging.judge`, in another process.

        Args:
            evidence: to judge, or the same as JSON, which is then read in the other process alone.
            registry: names the distribution of a check that fails.

        Raises:
            JudgeFailed: a check raised, crashed, took too long or too much, or answered outside its contract.
            EvidenceUnreadable: the JSON is no evidence.
            InfrastructureError: no process can be started.
        """
        places = [(step, check) for step in steps for check in step.checks]
        judged: list[Judged] = []
        run: RunReport | None = None
        sent = evidence if isinstance(evidence, bytes) else evidence.model_dump_json().encode()
        try:
            while run is None or len(judged) < len(places):  # once, unless advice takes a process down
                run = self._some(sent, places[len(judged) :], registry, judged)
        except BaseException:
            self.close()  # what it would answer later belongs to nobody
            raise
        self._renew()
        return Judgement(run, judged)

    def preflight(self, document: bytes, lab: LabSpec, steps: Sequence[LabStep]) -> Preflight:
        """As `preflighting.preflight_of` of evidence as JSON, in another process.

        Raises:
            JudgeFailed: a check failed, or all took too long or too much.
            EvidenceUnreadable: the JSON is no evidence.
            InfrastructureError: no process can be started.
        """
        wanted = lab.model_copy(update={"steps": tuple(steps)}).model_dump(mode="json")
        try:
            child, _ = self._asked({"checks": [], "preflight": wanted}, document)
            found = child.said(_PREFLIGHT, self._limits.check_timeout_s)
        except (_Silent, _Failed) as error:
            self.close()
            raise JudgeFailed("preflight", "grader-service", str(error)[:_ERROR_BYTES], error.traceback) from None
        except BaseException:
            self.close()
            raise
        self._renew()
        return found

    def _renew(self) -> None:
        if self._child is not None and self._child.jobs >= self._limits.most_jobs:
            self.close()

    def _asked(self, wanted: Mapping[str, object], document: bytes) -> "tuple[_Child, RunReport]":
        """Gives a process its work; by then it has read the evidence, and says how the run went."""
        self.start()
        child = self._child
        assert child is not None  # noqa: S101 - just started
        limits = {"memory_mib": self._limits.memory_mib, "check_timeout_s": self._limits.check_timeout_s}
        child.send({**wanted, **limits}, document)
        try:
            return child, child.begin(self._limits.start_timeout_s)
        except _Silent as silence:
            raise InfrastructureError(f"judging could not begin: {silence}") from None

    def _some(
        self, document: bytes, places: Sequence[tuple[LabStep, LabCheck]], registry: Registry, judged: list[Judged]
    ) -> RunReport:
        """Adds the answers of the checks that stand first, all of them if no process is lost; says how the run went."""
        child, run = self._asked({"checks": [check.model_dump(mode="json") for _, check in places]}, document)
        for step, check in places:
            loaded = registry.load(check.id)
            lost = False
            try:
                answer = child.said(_READER, self._limits.check_timeout_s)
            except (_Silent, _Failed) as error:
                trace = error.traceback
                failure = JudgeFailed(check.id, loaded.distribution, str(error)[:_ERROR_BYTES], trace)
                if not check.optional:
                    raise failure from None
                # Advice that fails costs nobody a verdict.
                whose = {"check": check.id, "distribution": loaded.distribution}
                log.warning("advice_failed", **whose, reason=failure.reason[:2000], traceback=trace)
                result = undecided(Outcome.ERROR, "judge.failed", _NO_ADVICE)
                version, version_text = loaded.check.version, loaded.version_text
                answer = _Answer(result=result, seen=None, question=None, version=version, version_text=version_text)
                lost = isinstance(error, _Silent)
            judged.append(
                Judged(step, check, answer.version, answer.version_text, answer.result, answer.seen, answer.question)
            )
            if lost:
                self.close()
                break
        return run


class EvidenceUnreadable(InfrastructureError):
    """What should be judged is no evidence."""


class _Answer(Wire):
    """What the child says of a check that answered."""

    result: Result
    seen: str | None
    question: str | None
    version: str
    version_text: str


class _Failure(Wire):
    """What it says of one that did not."""

    failed: str
    traceback: str = ""


SaidT = TypeVar("SaidT", bound=Wire)
_READER: TypeAdapter[_Answer | _Failure] = TypeAdapter(_Answer | _Failure)
_PREFLIGHT: TypeAdapter[Preflight | _Failure] = TypeAdapter(Preflight | _Failure)


class _Failed(Exception):
    """The check did not answer, and the child can go on."""

    def __init__(self, failure: _Failure) -> None:
        super().__init__(failure.failed)
        self.traceback = failure.traceback


class _Silent(Exception):
    """The child did not answer, so it told no traceback either."""

    traceback = ""


class _Child:
    """One child process and its socket."""

    def __init__(self, limits: JudgeLimits, files: Sequence[Path]) -> None:
        self.jobs = 0
        self._send_timeout_s = limits.start_timeout_s
        self._connection, theirs = socket.socketpair()
        environment = {name: os.environ[name] for name in _KEPT_ENVIRONMENT if name in os.environ}
        environment |= {"PYTHONDONTWRITEBYTECODE": "1", "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        child = [sys.executable, "-P", "-m", "grader_service.judging.child"]  # it may read only what it imports from
        command = [*child, str(theirs.fileno()), *map(str, files)]
        try:
            self._process = subprocess.Popen(
                command,
                env=environment,
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                pass_fds=[theirs.fileno()],
                process_group=0,  # a Ctrl-C is meant for whoever started this; in its session, and so its priority
            )
        except OSError as error:
            self._connection.close()
            raise InfrastructureError(f"no process for judging can be started: {error}") from error
        finally:
            theirs.close()

    @property
    def alive(self) -> bool:
        """Whether it runs."""
        return self._process.poll() is None

    def send(self, message: dict[str, Any], document: bytes) -> None:
        """Sends a request and the evidence; a child that is gone is noticed by `receive`."""
        self.jobs += 1
        self._connection.settimeout(self._send_timeout_s)
        with contextlib.suppress(OSError):
            send(self._connection, message)
            send_bytes(self._connection, document)

    def receive(self, timeout_s: float) -> bytes:
        """The next message, as JSON.

        Raises:
            _Silent: it ended, or its time is up.
        """
        self._connection.settimeout(timeout_s)
        try:
            answer = receive_bytes(self._connection)
        except TimeoutError:
            raise _Silent(f"it was not done within {timeout_s:g} s") from None
        except OSError as error:
            raise _Silent(f"its process could not be read: {error}") from None
        if answer is None:
            raise _Silent(self._last_words())
        return answer

    def begin(self, timeout_s: float) -> RunReport:
        """Waits until the checks are imported and the evidence is read; how the run went.

        Raises:
            _Silent: as `receive`, or what came is no answer.
            EvidenceUnreadable: it is none.
        """
        said = json.loads(self.receive(timeout_s))
        if "unreadable" in said:
            raise EvidenceUnreadable(said["unreadable"])
        try:
            return RunReport.model_validate(said["run"])
        except (KeyError, ValidationError) as error:
            raise _Silent(f"its process said what is no answer: {error}") from None

    def said(self, reader: TypeAdapter[SaidT | _Failure], timeout_s: float) -> SaidT:
        """What the next check answered, or what became of the preflight.

        Raises:
            _Silent: as `receive`, or what came is no answer.
            _Failed: a check could not answer.
        """
        try:
            said = reader.validate_json(self.receive(timeout_s))
        except ValidationError as error:
            raise _Silent(f"its process said what is no answer: {error}") from None
        if isinstance(said, _Failure):
            raise _Failed(said)
        return said

    def end(self) -> None:
        """Kills it."""
        self._connection.close()
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        self._process.wait()
        if self._process.stderr is not None:
            self._process.stderr.close()

    def _last_words(self) -> str:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_CLOSING_S)
        self._process.kill()
        _, errors = self._process.communicate()
        text = errors.decode(errors="replace")[-_ERROR_BYTES:]
        return f"its process ended with status {self._process.returncode}: {text}".strip()
