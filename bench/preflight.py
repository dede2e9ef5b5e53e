"""How long a preflight takes: cold, and from a prepared run; whole, and without the learner's own code.

    python bench/preflight.py [--rounds 5] [--submission examples/reference_submission.ipynb] [--sandbox docker]

`command` is `grader preflight`, as a learner starts it, until its answer is there: the cold one. `service` is what a
worker does with a prepared run until it has an answer. `end` is what follows, until nothing of the run is left. Each
round does both, in an order that changes. Needs the lab image (`grader images build lab`), unless the sandbox is
`process`. Exit status 1 when one was not ready.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

from checks.registry import Registry
from grader_service.host.sandboxes import open_runner
from grader_service.ingest.artifact import artifact_at
from grader_service.labs.catalogue import load_lab
from grader_service.model.preflight import Preflight
from grader_service.run.progress import Silent
from grader_service.service.local import preflight
from grader_service.settings import Settings
from sandbox.warm.pool import WarmPool
from sandbox.warm.runner import WarmRunner

GRADER = str(Path(sys.executable).with_name("grader"))
REFERENCE = Path(__file__).resolve().parents[1] / "examples" / "reference_submission.ipynb"
TARGETS_S: Mapping[str, float] = {"command": 12.0, "service": 5.0}
_FULL_S, _IDLE_S = 180.0, 20.0
"""How long a pool may take to fill, and imports of the pods in it to be done."""


def main() -> int:
    """Prints each preflight, then medians beside their targets, and the stages."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--submission", type=Path, default=REFERENCE)
    parser.add_argument("--sandbox", choices=("docker", "process"), default="docker")
    options = parser.parse_args()
    rows: dict[str, list[dict]] = {way: [] for way in TARGETS_S}
    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="grader-preflight-") as folder, ExitStack() as stack:
        service = Service(Path(folder), options.submission, options.sandbox, stack)
        ways = {"command": lambda: command(options.submission, options.sandbox), "service": service.look}
        for number in range(options.rounds):
            for way in list(ways)[:: 1 if number % 2 else -1]:
                service.ready()  # its preparing is to meet neither of them
                rows[way].append(row := ways[way]())
                print(f"{way} {number + 1}: {line(row)}", flush=True)
    for way, found in rows.items():
        walls, own = [one["wall_s"] for one in found], [one["wall_s"] - one["learner_s"] for one in found]
        print(
            f"{way}: median {statistics.median(walls):.1f} s ({min(walls):.1f} to {max(walls):.1f}), target "
            f"{TARGETS_S[way]:g} s; without the learner's code {statistics.median(own):.1f} s"
        )
        stages = {stage for one in found for stage in one["stages"]}
        told = (f"{stage} {statistics.median(one['stages'].get(stage, 0.0) for one in found):.2f}" for stage in stages)
        print("  " + ", ".join(sorted(told)))
    return 0 if all(one["ready"] for found in rows.values() for one in found) else 1


class Service:
    """Preflights from prepared runs, as a worker that rehearses does them.

    Args:
        folder: for its state.
        submission: that is looked at.
        sandbox: `docker` or `process`.
        stack: ends what waits.
    """

    def __init__(self, folder: Path, submission: Path, sandbox: str, stack: ExitStack) -> None:
        self._registry = Registry()
        self._lab = load_lab("dali-pipelines", self._registry)
        self._pool = WarmPool(1)
        stack.callback(self._pool.close)
        runner = open_runner(sandbox, self._lab.image, Settings(state_dir=folder), None)
        self._runner = WarmRunner(runner, self._pool)
        self._artifact = artifact_at(submission)
        self.look()  # leaves the recipe by which runs are prepared

    def ready(self) -> None:
        """Waits until a run is prepared, its imports done."""
        assert self._pool.waits(_FULL_S), "the pool did not fill"
        time.sleep(_IDLE_S)

    def look(self) -> dict:
        """One preflight, from its artifact to its answer."""
        since = time.monotonic()
        with ExitStack() as afterwards:
            found = preflight(self._artifact, self._lab, self._registry, self._runner, Silent(), afterwards)
            wall_s = time.monotonic() - since
        return row_of(found, wall_s, time.monotonic() - since - wall_s)


def command(submission: Path, sandbox: str) -> dict:
    """One preflight by the command line."""
    since = time.monotonic()
    words = [GRADER, "preflight", str(submission), "--sandbox", sandbox, "--json", "-"]
    with tempfile.TemporaryFile("w+") as errors:
        with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=errors, text=True) as running:
            assert running.stdout is not None
            said = ""
            for line in running.stdout:
                said += line
                if line == "}\n":  # the last one of what is written at once
                    break
            wall_s = time.monotonic() - since
        if not said:
            errors.seek(0)
            raise SystemExit(f"the command ended with status {running.returncode}: {errors.read()[-2000:]}")
    return row_of(Preflight.model_validate(json.loads(said)), wall_s, time.monotonic() - since - wall_s)


def row_of(found: Preflight, wall_s: float, end_s: float) -> dict:
    """What is kept of one."""
    return {
        "ready": found.ready,
        "wall_s": wall_s,
        "learner_s": found.run.seconds or 0.0,
        "stages": {**found.timings_s, "end": end_s},
        "missing": "" if found.ready else found.text[:300],
    }


def line(row: dict) -> str:
    """What is shown of one."""
    ready = "ready" if row["ready"] else f"not ready: {row['missing']}"
    return f"{row['wall_s']:.1f} s, of which the learner's code {row['learner_s']:.1f} s, {ready}"


if __name__ == "__main__":
    sys.exit(main())
