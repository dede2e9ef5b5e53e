"""Time of judging one submission's evidence with every built-in check, in this process and in a judging process.

    python bench/judging.py [--evidence FILE…] [--repeat 300]     evidence as `grader grade --evidence FILE` writes it
    python bench/judging.py --plugins 50                          start-up of the registry, without and with plugins

Without --evidence both reference submissions are graded first, in the process sandbox (about a minute). Rounds in this
process, in the judging process and of nothing but reading the evidence take turns: a busy host slows them alike.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from checks.registry import Registry
from grader_service.judging.checks import judge
from grader_service.judging.process import JudgeProcess
from grader_service.labs.catalogue import load_lab
from grader_service.labs.specs import lab_ids
from grader_service.model.evidence import Evidence
from grader_service.model.lab import LabCheck, LabStep

ROOT = Path(__file__).resolve().parents[1]
REFERENCES = {
    "dali-pipelines": "examples/reference_submission.ipynb",
    "dali-classification-training": "examples/classification/reference_submission.py",
}
_PLUGIN = '''

from checks.api import Check, Result, passed
from grader_service.model.base import Wire
from grader_service.model.evidence import Need


class Nothing(Wire):
    """No fields."""


class Plugin(Check[Nothing, Nothing]):
    """Passes."""

    id = "plugin_{number}"
    version = "1.0.0"
    title = "Plugin"
    needs = frozenset()
    params_model = Nothing
    observation_model = Nothing

    def observe(self, evidence):
        return Nothing()

    def judge(self, observation, params) -> Result:
        return passed("fine")


CHECK = Plugin()
'''
_START = """
import time
started = time.perf_counter()
from checks.registry import Registry
imported = time.perf_counter()
registry = Registry()
listed = registry.ids()
known = time.perf_counter()
for name in listed:
    if name.startswith("plugin_"):
        registry.load(name)
print(len(listed), imported - started, known - imported, time.perf_counter() - known)
"""


def main() -> None:
    """Prints what was asked for."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--evidence", type=Path, nargs="*", default=[])
    parser.add_argument("--repeat", type=int, default=300)
    parser.add_argument("--plugins", type=int, default=0)
    options = parser.parse_args()
    if options.plugins:
        start_up(options.plugins)
        return
    with tempfile.TemporaryDirectory() as folder:
        files = options.evidence or graded(Path(folder))
        evidence = [Evidence.model_validate_json(file.read_bytes()) for file in files]
    registry = Registry()
    steps = tuple(step for lab in lab_ids() for step in load_lab(lab, registry).steps)
    named = {check.id for step in steps for check in step.checks}
    others = tuple(LabCheck(id=check_id, points=1) for check_id in registry.ids() if check_id not in named)
    if others:
        steps += (LabStep(id="others", title="Checks that neither lab names", checks=others),)
    rounds(evidence, steps, registry, options.repeat)


def rounds(evidence: list[Evidence], steps: tuple[LabStep, ...], registry: Registry, repeat: int) -> None:
    """Times each way in turn and prints medians and 95th percentiles."""
    checks = len({check.id for step in steps for check in step.checks})
    texts = [item.model_dump_json() for item in evidence]
    with JudgeProcess() as process:
        ways: dict[str, Callable[[int], object]] = {
            "reading the evidence alone": lambda n: Evidence.model_validate_json(texts[n]),
            "in this process": lambda n: judge(evidence[n], steps, registry),
            "in the judging process": lambda n: process.judge(evidence[n], steps, registry),
        }
        seconds: dict[str, list[float]] = {name: [] for name in ways}
        for number in range(-10, repeat):
            for name, way in ways.items():
                started = time.perf_counter()
                way(number % len(evidence))
                if number >= 0:
                    seconds[name].append(time.perf_counter() - started)
    print(f"{checks} checks in {len(steps)} steps, {repeat} rounds over {len(evidence)} pieces of evidence")
    for name, taken in seconds.items():
        cuts = statistics.quantiles(taken, n=20)
        print(f"{name:28} p50 {statistics.median(taken) * 1e3:6.1f} ms   p95 {cuts[18] * 1e3:6.1f} ms")


def graded(folder: Path) -> list[Path]:
    """Evidence of both reference submissions, as rehearsals."""
    files = []
    for lab, submission in REFERENCES.items():
        file = folder / f"{lab}.json"
        command = [sys.executable, "-m", "grader_service", "grade", str(ROOT / submission), "--lab", lab]
        command += ["--device", "cpu", "--sandbox", "process", "--evidence", str(file), "--json", "-"]
        print(f"grading {submission} for its evidence", file=sys.stderr)
        subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        files.append(file)
    return files


def start_up(plugins: int) -> None:
    """Start-up in fresh processes, in turn without and with plugins, each a distribution of its own."""
    with tempfile.TemporaryDirectory() as folder:
        for number in range(plugins):
            _install(Path(folder), number)
        seconds: dict[str, list[list[float]]] = {"without plugins": [], f"with {plugins} plugins": []}
        for _ in range(15):
            for name, taken in seconds.items():
                path = [str(ROOT), *([folder] if name.startswith("with ") else [])]
                environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path)}
                command = [sys.executable, "-c", _START]
                printed = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True).stdout.split()
                taken.append([float(value) for value in printed])
    for name, taken in seconds.items():
        medians = [statistics.median(column) for column in zip(*taken, strict=True)]
        print(
            f"{name:18} {medians[0]:3.0f} checks   import {medians[1] * 1e3:6.1f} ms   "
            f"listing {medians[2] * 1e3:6.1f} ms   loading the plugins {medians[3] * 1e3:6.1f} ms"
        )


def _install(folder: Path, number: int) -> None:
    """A plugin as pip leaves it behind."""
    package = folder / f"bench_plugin_{number}"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "check.py").write_text(_PLUGIN.replace("{number}", str(number)))
    info = folder / f"bench_plugin_{number}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: bench-plugin-{number}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[grader.checks]\nplugin_{number} = bench_plugin_{number}.check:CHECK\n")


if __name__ == "__main__":
    main()
