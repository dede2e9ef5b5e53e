"""Grades every example submission of both labs and prints a table: for a GPU, in one go.

    python bench/gpu_examples.py [--device cuda] [--sandbox docker] [--only TEXT] [--json FOLDER]

Each line holds status, points, the codes that are not a pass, and seconds of wall clock. The references are graded
whole, examples of the second lab by the step that they are about, as `examples/README.md` has it.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
_TRAINING = "dali-classification-training"


def main() -> None:
    """Grades and prints."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--sandbox", default="docker")
    parser.add_argument("--only", default="", help="Just the files whose path holds this text.")
    parser.add_argument("--json", type=Path, help="Folder for the verdicts.")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.json or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        for file, lab, step in examples():
            if options.only not in str(file):
                continue
            target = folder / f"{lab}-{file.stem}.json"
            command = [sys.executable, "-m", "grader_service", "grade", str(ROOT / file), "--lab", lab]
            command += ["--device", options.device, "--sandbox", options.sandbox, "--json", str(target)]
            command += ["--steps", step] if step else []
            started = time.monotonic()
            done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
            seconds = time.monotonic() - started
            print(f"| `{file}` | {told(target, done)} | {seconds:.0f} s |", flush=True)


def examples() -> list[tuple[Path, str, str]]:
    """(file, lab, step) of every example; an empty step means all of them."""
    found = [(Path("examples/reference_submission.ipynb"), "dali-pipelines", "")]
    found += [
        (path.relative_to(ROOT), "dali-pipelines", "") for path in sorted((ROOT / "examples/failing").glob("*.py"))
    ]
    found.append((Path("examples/classification/reference_submission.py"), _TRAINING, ""))
    table = (ROOT / "examples" / "README.md").read_text()
    steps = dict(re.findall(r"^\| `(\w+)\.py` \| (\w+) \|", table.partition(f"## `{_TRAINING}`")[2], re.MULTILINE))
    failing = sorted((ROOT / "examples/classification/failing").glob("*.py"))
    return found + [(path.relative_to(ROOT), _TRAINING, steps[path.stem]) for path in failing]


def told(target: Path, done: subprocess.CompletedProcess[str]) -> str:
    """Status, points and the codes that are no pass."""
    if not target.is_file():
        return f"no verdict (exit {done.returncode}): {done.stderr.strip()[-200:]}"
    verdict = json.loads(target.read_text())
    open_codes = [check["code"] for check in verdict["checks"] if check["outcome"] != "passed"]
    score = "no score" if verdict["score"] is None else f"{verdict['score']:g} of {verdict['max_score']:g}"
    return f"{verdict['status']}, {score} | {', '.join(f'`{code}`' for code in open_codes) or '–'}"


if __name__ == "__main__":
    main()
