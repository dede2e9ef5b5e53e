"""On a GPU host: what a pod finds in the GPU's memory of what an earlier pod wrote there.

    python bench/gpu_memory_clean.py [--json FILE]

A learner's pod fills all global memory with a mark and ends by itself, or holds it until its time is over and it is
killed. The next pod takes all memory, unwritten, and counts marks. Shared memory of the multiprocessors is not
looked at. Prints a table; exits 1 where a mark was found, or where a pod did not do its part.
"""

import argparse
import json
import re
import sys
import tempfile
from pathlib import Path

from gpu_containment import MARK, READ_BACK, _grade, _said

from checks.registry import Registry
from grader_service.host import find_gpus
from grader_service.labs.catalogue import load_lab
from grader_service.sandboxes import open_runner
from grader_service.settings import Settings

LEARNER_S = 60
_SPIN = """
import signal
signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
while True:
    try:
        while True:
            pass
    except BaseException:
        pass
"""
WAYS = {"ends": MARK, "killed": MARK + _SPIN}
_LEFT = re.compile(r"RESULT left a mark in (\d+) GiB")
_FOUND = re.compile(r"RESULT marks found: (\d+) in (\d+) GiB")


def main() -> int:
    """0 when every pod did its part and none found a mark."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    gpu = find_gpus()[0]
    rows = []
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        lab = load_lab("dali-pipelines", Registry())
        runner = open_runner("docker", lab.image, Settings(state_dir=Path(folder)), gpu)
        path = Path(folder, "submission.py")
        print(f"{gpu.model}, driver {gpu.driver}\n")
        print("| first pod | GiB marked | GiB read | marks found |\n|---|---|---|---|")
        for way, source in WAYS.items():
            said = []
            for one in (source, READ_BACK):
                path.write_text(one)
                said.append("\n".join(_said(_grade(path, runner, gpu, LEARNER_S))))
            left, found = _LEFT.search(said[0]), _FOUND.search(said[1])
            row = {
                "first_pod": way,
                "gib_marked": int(left[1]) if left else 0,
                "gib_read": int(found[2]) if found else 0,
                "marks_found": int(found[1]) if found else None,
            }
            rows.append({**row, "said": said})
            print("|", " | ".join(map(str, row.values())), "|", flush=True)
    told = {"gpu": gpu.model, "driver": gpu.driver, "rows": rows}
    if options.json is not None:
        options.json.write_text(json.dumps(told, indent=1))
    return 0 if all(row["marks_found"] == 0 and row["gib_marked"] and row["gib_read"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
