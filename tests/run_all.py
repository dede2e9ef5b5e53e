"""Everything that `make test` does: linters, services, images, tests. With CI=true nothing that is missing is skipped.

python -m tests.run_all [pytest arguments]
"""

import contextlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path

from tests.services.docker_engine import ensure_engine, missing_packages

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent
TAKE_TURNS = (
    "tests/e2e",
    "tests/images",
    "tests/platform",
    "tests/service",
    "tests/stack",
)
"""Folders whose tests measure, wait for each other's containers, or hurt servers: one at a time, on a machine of their
own. All others run beside each other, one worker per core."""

_REMEMBERED = ROOT / ".pytest_cache" / "v" / "cache" / "lastfailed"
_DEFENCES_UNTIL_MIN = 72.0
"""Minutes after the start when no further defence is switched off: a slow machine must end as well."""
_LEAST_MIN = 3.0
"""Minutes for them wherever: none at all would show nothing."""


def main() -> int:
    """Runs each part, the cheap ones first; the first failing part ends the run."""
    started = time.monotonic()
    os.chdir(ROOT)
    _REMEMBERED.unlink(missing_ok=True)  # what failed in an earlier run
    # Where Debian keeps dockerd and debootstrap; not every way to become root brings these folders along.
    os.environ["PATH"] = f"{os.environ.get('PATH', '/usr/bin:/bin')}:/usr/local/sbin:/usr/sbin:/sbin"
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    parts = [
        ("linter", [str(BIN / "ruff"), "check", "."]),
        ("formatter", [str(BIN / "ruff"), "format", "--check", "."]),
        ("types", [str(BIN / "mypy")]),
        ("import contracts", [str(BIN / "lint-imports"), "--no-logo"]),
    ]
    for name, command in parts:
        if not _run(name, command, environment):
            return 1
    with contextlib.ExitStack() as stack:
        problem = missing_packages()
        if problem is not None:
            if environment.get("CI", "").lower() == "true":
                _say(f"FAILED: {problem}")
                return 1
            _say(f"warning: {problem}; the tests that need it are skipped")
        else:
            environment |= stack.enter_context(ensure_engine(_say))
            if not _run("images", [str(BIN / "grader"), "images", "build", "all"], environment) or not _run(
                "stand-ins", [str(BIN / "grader"), "images", "build", "stand-ins"], environment
            ):
                return 1
        # The corpus comes first: what it is about is why the service exists.
        parts = _parts(sys.argv[1:], engine=problem is None)
        failed = [name for name, command in parts if not _run(name, command, environment)]
        if problem is None and not sys.argv[1:]:
            left = max(_LEAST_MIN, _DEFENCES_UNTIL_MIN - (time.monotonic() - started) / 60)
            # One case of each is enough to see that it can go; `make corpus` plays all that each stops.
            command = [sys.executable, "-m", "tests.corpus.defences", "--most", "1", "--minutes", f"{left:.1f}"]
            if not _run("corpus with defences off", command, environment):
                failed.append("corpus with defences off")
    # Named once more at the very end, where a log of which only the last lines were kept still has them.
    for test in _failed_tests() if failed else ():
        _say(f"failed test: {test}")
    _say(f"{'FAILED: ' + ', '.join(failed) + ',' if failed else 'passed'} after {time.monotonic() - started:.0f} s")
    return 1 if failed else 0


def _failed_tests() -> list[str]:
    """Those that pytest remembers of this run's parts."""
    return sorted(json.loads(_REMEMBERED.read_text())) if _REMEMBERED.is_file() else []


def _parts(arguments: list[str], *, engine: bool) -> list[tuple[str, list[str]]]:
    """Speed and the corpus, where there is an engine, and both halves of the tests; just those that were asked for."""
    pytest = [sys.executable, "-m", "pytest"]
    if arguments:
        return [("tests", [*pytest, *arguments])]
    beside = [f"--ignore={folder}" for folder in TAKE_TURNS]
    on_engine = [
        ("speed over bare docker run", [sys.executable, "bench/gate.py"]),
        ("corpus", [sys.executable, "-m", "tests.corpus"]),
    ]
    return [
        *(on_engine if engine else []),
        ("tests beside each other", [*pytest, "-n", "auto", "--dist", "loadfile", *beside]),
        ("tests one at a time", [*pytest, *TAKE_TURNS]),
    ]


def _run(name: str, command: list[str], environment: dict[str, str]) -> bool:
    started = time.monotonic()
    _say(f"{name} …")
    done = subprocess.run(command, check=False, env=environment)
    _say(f"{name}: {'ok' if done.returncode == 0 else 'FAILED'}, {time.monotonic() - started:.0f} s")
    return done.returncode == 0


def _say(text: str) -> None:
    sys.stderr.write(f"[make test] {text}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    raise SystemExit(main())
