"""The process in which checks judge: bounded in memory, time and files, and told nothing but evidence and parameters.

It has the user of the process that started it, and walls of its own before a check is imported: see `confinement`.

child.py FD [CHECK_FILE …]        FD is one end of a socket pair; see `process` for the messages
"""

import contextlib
import faulthandler
import json
import os
import resource
import signal
import socket
import struct
import sys
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from checks.registry import Registry
from grader_service.errors import GraderError, JudgeFailed
from grader_service.host.confinement import confine
from grader_service.host.garbage import look_seldom
from grader_service.judging.checks import judge_one
from grader_service.judging.rubric import plain
from grader_service.judging.run_reporting import report
from grader_service.model.evidence import Evidence
from grader_service.model.lab import LabCheck, LabSpec

HEADER = struct.Struct(">Q")
_GRACE_S = 5.0


def main() -> None:
    """Answers requests until the other end closes."""
    connection = socket.socket(fileno=int(sys.argv[1]))
    files = [Path(name) for name in sys.argv[2:]]
    registry = Registry(files=files)
    faulthandler.enable()
    os.set_blocking(2, False)  # who writes there without end is not waited for
    errors = sys.stderr
    sys.stdout = sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115 - what a check prints goes nowhere
    try:
        confine(files)  # no check was imported so far
        _serve(connection, registry)
    except Exception:  # noqa: BLE001 - said to whoever started this process
        traceback.print_exc(file=errors)
        raise SystemExit(1) from None


def _serve(connection: socket.socket, registry: Registry) -> None:
    limited = False
    while (request := receive(connection)) is not None and (document := receive_bytes(connection)) is not None:
        if not limited:
            _limit(request["memory_mib"])
        try:
            evidence = Evidence.model_validate_json(document)
        except ValueError as error:
            send(connection, {"unreadable": str(error)[:1000]})
            continue
        checks = [LabCheck.model_validate(check) for check in request["checks"]]
        for check in checks:
            with contextlib.suppress(GraderError):  # said when its turn comes
                registry.load(check.id)
        if not limited:
            look_seldom()  # the checks are here by now
            limited = True
        # From here on it is the checks' own time that passes.
        send(connection, {"loaded": len(checks), "run": report(evidence).model_dump(mode="json")})
        work: list[Callable[[], dict[str, Any]]] = [partial(_answer, registry, evidence, check) for check in checks]
        if "preflight" in request:
            work.append(partial(_preflight, registry, evidence, request["preflight"]))
        for one in work:
            # Whoever watches the time may be gone by then; the signal's default ends this process whatever it does.
            signal.setitimer(signal.ITIMER_REAL, request["check_timeout_s"] + _GRACE_S)
            answer = _tried(one)
            signal.setitimer(signal.ITIMER_REAL, 0)
            send(connection, answer)


def _tried(work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """What it answers, or why it could not."""
    try:
        return work()
    except GraderError as error:
        return {"failed": str(error)[:4000]}
    except MemoryError:
        return {"failed": "it needed more memory than a judge has"}
    except Exception as error:  # noqa: BLE001 - what a check wants may be anything
        return {"failed": f"{type(error).__name__}: {error}"[:4000]}


def _preflight(registry: Registry, evidence: Evidence, wanted: dict[str, Any]) -> dict[str, Any]:
    from grader_service.judging.preflighting import preflight_of  # noqa: PLC0415 - it imports checks, and the walls come first

    lab = LabSpec.model_validate(wanted)
    try:
        return preflight_of(evidence, lab, lab.steps, registry).model_dump(mode="json")
    except JudgeFailed as error:
        return {"failed": str(error)[:4000], "traceback": error.traceback}


def _answer(registry: Registry, evidence: Evidence, wanted: LabCheck) -> dict[str, Any]:
    try:
        loaded = registry.load(wanted.id)
        result, seen, question = judge_one(loaded, evidence, wanted)
        said = {**result.model_dump(mode="json", exclude={"details"}), "details": plain(result.details)}
    except JudgeFailed as error:
        return {"failed": error.reason[:4000], "traceback": error.traceback}
    except (GraderError, MemoryError):
        raise
    except Exception as error:  # noqa: BLE001 - details may hold anything
        return {"failed": f"it answered what cannot be written down: {type(error).__name__}: {error}"[:4000]}
    known = {"version": loaded.check.version, "version_text": loaded.version_text}
    return {"result": said, "seen": seen, "question": question, **known}


def send(connection: socket.socket, message: dict[str, Any]) -> None:
    """Sends one JSON object behind its length."""
    send_bytes(connection, json.dumps(message, allow_nan=False, separators=(",", ":")).encode())


def send_bytes(connection: socket.socket, data: bytes) -> None:
    """Sends bytes as they are behind their length."""
    connection.sendall(HEADER.pack(len(data)) + data)


def receive(connection: socket.socket) -> Any:
    """The next JSON object; None when the other end has closed."""
    data = receive_bytes(connection)
    return None if data is None else json.loads(data)


def receive_bytes(connection: socket.socket) -> bytes | None:
    """What `send_bytes` sent; None when the other end has closed."""
    header = _read(connection, HEADER.size)
    return None if header is None else _read(connection, HEADER.unpack(header)[0])


def _read(connection: socket.socket, size: int) -> bytes | None:
    data = bytearray()
    while len(data) < size:
        chunk = connection.recv(min(size - len(data), 1 << 20))
        if not chunk:
            return None
        data += chunk
    return bytes(data)


def _limit(memory_mib: int) -> None:
    """From here on: no files are written, no core is dumped, and memory ends somewhere."""
    for kind, most in (
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_AS, memory_mib << 20),
    ):
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(kind, (most, most))


if __name__ == "__main__":
    main()
