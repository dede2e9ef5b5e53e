"""What one Docker grading costs beyond the learner's own code and the measuring windows.

    python bench/overhead.py [--runs 5] [--submission examples/reference_submission.ipynb]

Per run: wall time of the whole `grader grade` process, minus the time that the learner's code ran (told by the pod,
checked against the stage that the host timed), minus the time spent in measuring. Medians and ranges; learner time
and measuring differ from run to run, the rest should not.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

GRADER = str(Path(sys.executable).with_name("grader"))


def main() -> None:
    """Runs the gradings and prints a table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--submission", default="examples/reference_submission.ipynb")
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    rows = []
    for number in range(options.runs):
        row = one_run(options.submission, options.device)
        rows.append(row)
        print(
            f"run {number + 1}: wall {row['wall']:6.2f} s  learner {row['learner']:6.2f} s  "
            f"measuring {row['measuring']:6.2f} s  overhead {row['overhead']:5.2f} s  {row['status']}",
            flush=True,
        )
    for name in ("wall", "learner", "measuring", "overhead"):
        values = [row[name] for row in rows]
        print(f"{name:>10}: median {statistics.median(values):6.2f} s, range {min(values):.2f} to {max(values):.2f} s")
    stages = sorted({stage for row in rows for stage in row["stages"]})
    print("stages, median seconds:")
    for stage in stages:
        print(f"  {stage:<12} {statistics.median(row['stages'].get(stage, 0.0) for row in rows):6.2f}")


def one_run(submission: str, device: str) -> dict:
    """One grading by the command line, as a user starts it."""
    with tempfile.TemporaryDirectory() as folder:
        verdict_file, evidence_file = Path(folder, "verdict.json"), Path(folder, "evidence.json")
        started = time.monotonic()
        subprocess.run(
            [
                GRADER,
                "grade",
                submission,
                "--device",
                device,
                "--json",
                str(verdict_file),
                "--evidence",
                str(evidence_file),
            ],
            check=False,
            capture_output=True,
        )
        wall = time.monotonic() - started
        verdict, evidence = json.loads(verdict_file.read_text()), json.loads(evidence_file.read_text())
    learner = evidence["discovery"]["duration_s"]
    measuring = verdict["measurement"]["measured_s"]
    return {
        "wall": wall,
        "learner": learner,
        "measuring": measuring,
        "overhead": wall - learner - measuring,
        "stages": verdict["provenance"]["timings_s"],
        "status": verdict["status"],
    }


if __name__ == "__main__":
    main()
