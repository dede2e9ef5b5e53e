"""A part of a run: one command with a name, its time, and the tests that it ran."""

import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree as ET

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(sys.executable).parent
REPORTS = ROOT / "build" / "tests"
"""Folder of the reports that pytest writes."""
_NO_TESTS = 5
"""pytest's exit status when none was selected."""
_WHY = 300
"""Most characters of what failed."""


@dataclass(frozen=True)
class Test:
    """One test that ran."""

    __test__ = False

    id: str
    seconds: float
    outcome: str
    """`passed`, `failed` or `skipped`."""
    why: str = ""
    """First line of what failed."""


@dataclass(frozen=True)
class Part:
    """One command."""

    name: str
    command: tuple[str, ...]
    report: Path | None = None
    """Where pytest writes what it ran; None for a command that runs no tests."""
    after: str | None = None
    """Name of a part without which this one says nothing: where that one failed, this one is not begun."""
    beside: bool = False
    """Whether it runs beside the parts that follow; its output comes when it has ended."""


@dataclass
class Done:
    """What came of a part."""

    name: str
    seconds: float
    ok: bool
    tests: list[Test] = field(default_factory=list)


def run(part: Part, environment: Mapping[str, str]) -> Done:
    """Runs a part; its output goes where ours goes, that of one beside others at its end."""
    if part.report is not None:
        part.report.parent.mkdir(parents=True, exist_ok=True)
        part.report.unlink(missing_ok=True)
    started = time.monotonic()
    done = subprocess.run(
        part.command,
        cwd=ROOT,
        env=environment,
        check=False,
        stdout=subprocess.PIPE if part.beside else None,
        stderr=subprocess.STDOUT if part.beside else None,
    )
    if part.beside:
        sys.stdout.buffer.write(done.stdout)
        sys.stdout.flush()
    tests = read_report(part.report) if part.report is not None and part.report.is_file() else []
    ok = done.returncode == 0 or (part.report is not None and done.returncode == _NO_TESTS and not tests)
    return Done(part.name, time.monotonic() - started, ok, tests)


def pytest_part(name: str, *selection: str, alone: bool = False, more: int = 0, after: str | None = None) -> Part:
    """A part that is a run of pytest.

    Args:
        name: of the part.
        selection: arguments that choose tests.
        alone: whether they run one at a time.
        more: processes beside one for each core, for tests that wait a good part of their time.
        after: see `Part`.
    """
    report = REPORTS / f"{name.replace(' ', '-')}.xml"
    # Where a process dies, xdist would start another one for its file and may then wait for ever.
    processes = ("-n", str(len(os.sched_getaffinity(0)) + more), "--dist", "loadfile", "--max-worker-restart", "0")
    lanes = () if alone else processes
    command = (sys.executable, "-m", "pytest", "-q", *lanes, f"--junitxml={report}", *selection)
    return Part(name, command, report, after)


def read_report(path: Path) -> list[Test]:
    """The tests of a JUnit report as pytest writes it; their ids are those that pytest takes."""
    return [_test(case) for case in ET.parse(path).getroot().iter("testcase")]  # noqa: S314 - our own file


def _test(case: ET.Element) -> Test:
    tags = {child.tag for child in case}
    failures = [child.get("message", "") for child in case if child.tag in {"failure", "error"}]
    why = "; ".join(message.partition("\n")[0][:_WHY] for message in failures)
    outcome = "failed" if failures else "skipped" if "skipped" in tags else "passed"
    module, classes = _module(case.get("classname", ""))
    test = "::".join([module, *classes, case.get("name", "")])
    return Test(test, float(case.get("time", "0")), outcome, why)


def _module(dotted: str) -> tuple[str, Sequence[str]]:
    """Path and classes of pytest's `package.module.Class`."""
    names = dotted.split(".")
    for end in range(len(names), 0, -1):
        path = "/".join(names[:end]) + ".py"
        if (ROOT / path).is_file():
            return path, names[end:]
    return dotted, ()
