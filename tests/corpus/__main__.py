"""Plays the corpus and prints the matrix; exit status 1 when anything is not right.

python -m tests.corpus [--only V,T03,K17] [--lanes 2] [--sandbox docker] [--report build/corpus]
python -m tests.corpus --write V01-literal FOLDER      # the submission itself, to be graded by hand
"""

import argparse
import os
import signal
import sys
import time
from pathlib import Path

from tests.corpus import catalogue, matrix
from tests.corpus.case import Procedure
from tests.corpus.lanes import play_all
from tests.corpus.result import Finding, shortened
from tests.corpus.world import LAB, as_bytes


def main() -> int:
    """Plays, prints, writes the report."""
    parser = argparse.ArgumentParser(prog="python -m tests.corpus")
    parser.add_argument("--only", default="", help="Cases whose id begins with one of these, separated by commas.")
    parser.add_argument("--lanes", type=int, default=min(os.cpu_count() or 1, 4))
    parser.add_argument("--sandbox", choices=("docker", "process", "forked"), default="docker")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--gpu", type=int, default=0, help="Index of this host's GPU for cuda.")
    parser.add_argument("--report", type=Path, default=Path("build/corpus"), help="Folder for the reports.")
    parser.add_argument("--write", nargs=2, metavar=("ID", "FOLDER"), help="Write one case's submission and stop.")
    options = parser.parse_args()
    if options.write:
        return _write(*options.write)
    try:
        chosen = catalogue.selected([part for part in options.only.split(",") if part])
    except ValueError as error:
        parser.error(str(error))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # lanes end, and what they had open is taken away
    started = time.monotonic()
    results = []
    for number, result in enumerate(
        play_all(chosen, lanes=options.lanes, sandbox=options.sandbox, device=options.device, gpu=options.gpu), 1
    ):
        results.append(result)
        mark = (
            "" if result.finding is Finding.RIGHT else f"  {result.finding.value.upper()}: {shortened(result.detail)}"
        )
        if result.again:
            mark += f"  PLAYED AGAIN after {shortened(result.again)}"
        print(f"[{number}/{len(chosen)}] {result.id} {result.code} {result.seconds:.1f} s{mark}", flush=True)
    seconds = time.monotonic() - started
    results.sort(key=lambda result: result.id)
    told = {"seconds": seconds, "lanes": options.lanes, "whole": len(chosen) == len(catalogue.cases())}
    matrix.write(results, options.report, **told)
    print(f"\n{matrix.markdown(results, **told)}")
    print(f"reports: {options.report}/matrix.html, matrix.md, results.json")
    return 0 if all(result.finding is Finding.RIGHT for result in results) else 1


def _write(case_id: str, folder: str) -> int:
    """Writes a case's submission."""
    for case in catalogue.cases():
        if case.id == case_id and not isinstance(case, Procedure):
            Path(folder).mkdir(parents=True, exist_ok=True)
            path = Path(folder, case.filename)
            path.write_bytes(as_bytes(case.content))
            print(f"{path}: grade it with --lab {LAB} --steps {','.join(case.steps)}")
            return 0
    print(f"no submission has the id {case_id}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    raise SystemExit(main())
