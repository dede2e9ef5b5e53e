"""The process in which checks judge: bounded in memory, time and files, and told nothing but evidence and parameters.

judge_child.py FD [CHECK_FILE …]        FD is one end of a socket pair; see `judge_process` for the messages
"""

import contextlib
import faulthandler
import json
import os
import resource
import socket
import struct
import sys
from pathlib import Path
from typing import Any

from checks.registry import Registry
from grader_service.errors import GraderError, JudgeFailed
from grader_service.judging import judge_one
from grader_service.model.evidence import Evidence
from grader_service.model.lab import LabCheck

HEADER = struct.Struct(">Q")


def main() -> None:
    """Answers requests until the other end closes."""
    connection = socket.socket(fileno=int(sys.argv[1]))
    registry = Registry(files=[Path(name) for name in sys.argv[2:]])
    faulthandler.enable()
    quiet = Path(os.devnull).open("w")  # noqa: SIM115 - for as long as the process lives
    sys.stdout = sys.stderr = quiet  # what a check prints goes nowhere
    limited = False
    while (request := receive(connection)) is not None:
        if not limited:
            _limit(request["memory_mib"])
            limited = True
        evidence = Evidence.model_validate_json(request["evidence"])
        checks = [LabCheck.model_validate(check) for check in request["checks"]]
        for check in checks:
            with contextlib.suppress(GraderError):  # said when its turn comes
                registry.load(check.id)
        send(connection, {"loaded": len(checks)})  # from here on it is the checks' own time that passes
        for check in checks:
            send(connection, _answer(registry, evidence, check))


def _answer(registry: Registry, evidence: Evidence, wanted: LabCheck) -> dict[str, Any]:
    try:
        result = judge_one(registry.load(wanted.id), evidence, wanted)
    except JudgeFailed as error:
        return {"failed": error.reason[:4000]}
    except GraderError as error:
        return {"failed": str(error)[:4000]}
    except MemoryError:
        return {"failed": "it needed more memory than a judge has"}
    return {"result": result.model_dump(mode="json")}


def send(connection: socket.socket, message: dict[str, Any]) -> None:
    """Sends one JSON object behind its length."""
    data = json.dumps(message, allow_nan=False, separators=(",", ":")).encode()
    connection.sendall(HEADER.pack(len(data)) + data)


def receive(connection: socket.socket) -> Any:
    """The next JSON object; None when the other end has closed."""
    header = _read(connection, HEADER.size)
    if header is None:
        return None
    data = _read(connection, HEADER.unpack(header)[0])
    return None if data is None else json.loads(data)


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
