"""Runs the graphs of `graphs.py` as the clean room does, one after the other, and writes what was seen as JSON.

python -m tests.measure.examining FOLDER_OF_FILES [NAME...]
"""

import json
import random
import sys
import warnings
from pathlib import Path

from sandbox.guest.trusted import clean_room
from sandbox.guest.trusted.children import WithoutGpu
from tests.measure import graphs

THREADS = 2


def main(folder: str, *names: str) -> None:
    """Prints an object: what was found, the plan of the reference and what was changed, by the graph's name."""
    warnings.simplefilter("ignore")
    random.SystemRandom = lambda: random.Random(1)  # the same lots in each run, so that a rare one fails no test
    files = sorted(str(path) for path in Path(folder).rglob("*.jp*g"))
    found, cpu = {}, WithoutGpu()
    for name in names or graphs.ALL:
        blob = graphs.serialized(graphs.ALL[name])
        request = {"blob": blob, "files": files, "device": "cpu", "threads": THREADS, "experiments": True}
        prepared, answer = clean_room.prepare(request, cpu)
        changed = answer["graph"]["changed"]
        found[name] = {**prepared.examination.result(prepared.batch), "changed": changed}
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
