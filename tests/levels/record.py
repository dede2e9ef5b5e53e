"""What a run leaves: `build/make-test.json` and the lines at its end."""

import json
import os
import platform
import subprocess
import time
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from tests.levels.parts import ROOT, Done, Test

SLOWEST = 30


class Record:
    """Collects parts as they end."""

    def __init__(self, level: str, path: Path | None = None) -> None:
        self.level = level
        self.parts: list[Done] = []
        self.not_begun: list[str] = []
        """What was left out, each with the reason."""
        self.broken: list[str] = []
        """What kept a whole level from running."""
        self._path = path or ROOT / "build" / f"make-{level}.json"
        self._started = time.monotonic()

    @property
    def seconds(self) -> float:
        """Since the beginning."""
        return time.monotonic() - self._started

    @property
    def ok(self) -> bool:
        """Whether all that was run passed, and nothing kept a level from running."""
        return not self.broken and all(part.ok for part in self.parts)

    @property
    def tests(self) -> list[Test]:
        """Of all parts."""
        return [test for part in self.parts for test in part.tests]

    def write(self, *, ended: bool = False) -> None:
        """The record so far; a run that is killed leaves what it had done, and the result `unfinished`."""
        slowest = sorted(self.tests, key=lambda test: -test.seconds)[:SLOWEST]
        document = {
            "level": self.level,
            "commit": _git("rev-parse", "HEAD"),
            "clean": _git("status", "--porcelain") == "",
            "at": datetime.now(UTC).isoformat(timespec="seconds"),
            "machine": f"{platform.machine()}, {len(os.sched_getaffinity(0))} cores",
            "ok": self.ok,
            "result": "failed" if not self.ok else "passed" if ended else "unfinished",
            "seconds": round(self.seconds, 1),
            "parts": [
                {"name": part.name, "seconds": round(part.seconds, 1), "ok": part.ok, "tests": len(part.tests)}
                for part in self.parts
            ],
            "not_begun": self.not_begun,
            "broken": self.broken,
            "counts": dict(Counter(test.outcome for test in self.tests)),
            "failed": failed_tests(self.tests),
            "slowest": [{"test": test.id, "seconds": round(test.seconds, 2)} for test in slowest],
        }
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._path.write_text(json.dumps(document, indent=1) + "\n")

    def summary(self) -> list[str]:
        """Lines for the end of the run; what failed comes last."""
        counts = Counter(test.outcome for test in self.tests)
        lines = [f"{part.seconds:6.0f} s  {'ok    ' if part.ok else 'FAILED'}  {part.name}" for part in self.parts]
        lines += [f"not begun: {told}" for told in self.not_begun]
        lines += [f"record: {self._path.relative_to(ROOT) if self._path.is_relative_to(ROOT) else self._path}"]
        lines += [f"failed test: {test}" for test in failed_tests(self.tests)]
        failed = [part.name for part in self.parts if not part.ok]
        lines += [f"{counts['passed']} tests passed, {counts['failed']} failed, {counts['skipped']} skipped"]
        failed += self.broken
        lines += [f"{'FAILED: ' + ', '.join(failed) + ',' if failed else 'passed'} after {self.seconds:.0f} s"]
        return lines


def failed_tests(tests: Sequence[Test]) -> list[str]:
    """Ids of those that failed, each with what failed."""
    return sorted(f"{test.id} - {test.why}" if test.why else test.id for test in tests if test.outcome == "failed")


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip()
