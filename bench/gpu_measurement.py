"""On a GPU: four submissions, each graded several times; what came out, why, and how long the GPU was held.

    python bench/gpu_measurement.py [--times 3] [--sandbox docker] [--device cuda] [--only NAME …]

The reference must pass; an honest pipeline that is no faster must fail or stay inconclusive; one beside a baseline that
sleeps, and one that replays batches, must fail. Exit status 0 when all of them did, every time.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
GRADER = [sys.executable, "-m", "grader_service"]
SUBJECTS = {
    "reference": ("examples/reference_submission.ipynb", {"passed"}),
    "near_parity": ("examples/near_parity.py", {"failed", "inconclusive"}),
    "sandbagged": ("examples/failing/sandbagged_baseline.py", {"failed"}),
    "replayed": ("examples/failing/replayed_batches.py", {"failed"}),
}


def main() -> int:
    """Grades and prints one line per grading."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--sandbox", default="docker")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--only", nargs="*", default=list(SUBJECTS))
    parser.add_argument("--keep", type=Path, help="a folder for the verdicts")
    options = parser.parse_args()
    wrong = 0
    for name in options.only:
        path, wanted = SUBJECTS[name]
        for number in range(options.times):
            verdict, wall = grade(ROOT / path, options.sandbox, options.device)
            if options.keep is not None:
                options.keep.mkdir(parents=True, exist_ok=True)
                (options.keep / f"{name}-{number + 1}.json").write_text(json.dumps(verdict, indent=1))
            check = next(check for check in verdict["checks"] if check["id"] == "throughput_ratio")
            good = check["outcome"] in wanted
            wrong += not good
            print(
                f"{'ok ' if good else 'NOT'} {name} {number + 1}: {describe(verdict, check)}, {wall:.1f} s", flush=True
            )
    return 1 if wrong else 0


def grade(path: Path, sandbox: str, device: str) -> tuple[dict, float]:
    """One grading by the command line."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "verdict.json")
        started = time.monotonic()
        done = subprocess.run(
            [*GRADER, "grade", str(path), "--sandbox", sandbox, "--device", device, "--json", str(out)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
        wall = time.monotonic() - started
        if not out.exists():
            raise SystemExit(f"{path.name}: exit status {done.returncode}\n{done.stderr[-3000:]}")
        return json.loads(out.read_text()), wall


def describe(verdict: dict, check: dict) -> str:
    """Outcome, tier, ratio, content and times of one verdict."""
    measured = verdict.get("measurement") or {}
    decision, content = measured.get("decision") or {}, measured.get("content") or {}
    held = (verdict.get("provenance") or {}).get("gpu_held_s")
    parts = [f"{check['outcome']} {check['code']}", f"tier {check.get('tier')}"]
    if decision:
        low, high = decision["interval"]["low"], decision["interval"]["high"]
        parts.append(f"ratio {decision['ratio']:.2f} ({low:.2f}-{high:.2f}) after {decision['blocks_used']} blocks")
    if content:
        parts.append(
            f"{content['distinct']} of {content['delivered']} images distinct, {content['audited']} audited: "
            f"{content['kind']}, texture {content.get('texture')}, problem {content.get('problem')}"
        )
    parts.append(f"measuring {measured.get('measured_s', 0.0):.1f} s")
    return ", ".join(parts if held is None else [*parts, f"GPU held {held:.1f} s"])


if __name__ == "__main__":
    raise SystemExit(main())
