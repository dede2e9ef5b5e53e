"""How the check `reflections` answers on labelled lists: `python bench/reflections_figures.py [blind|train]`.

`blind` (the default) was written without sight of the check and of the training lists; on `train`, which the model
learned from, it does better than on new lists. With `--speed`, time and memory for one submission and for 10,000.
"""

import argparse
import resource
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.reflections_lists import Labelled, read
from checks.reflections.check import reflections
from checks.reflections.meaning.model import model

OUTCOMES = ("passed", "failed", "inconclusive")
MANY = 10_000


def outcome(one: Labelled) -> str:
    """What the check says of both lists."""
    return reflections(tuple(one.wins), tuple(one.loses), ()).outcome.value


def table(title: str, rows: Iterable[tuple[str, str]]) -> None:
    """Prints how often each outcome came, by the first word of each row."""
    counts: dict[str, list[str]] = defaultdict(list)
    for name, came in rows:
        counts[name].append(came)
    print(f"\n{title:24}{'lists':>7}{'passed':>9}{'refused':>9}{'undecided':>11}")
    for name, seen in sorted(counts.items()):
        print(f"{name:24}{len(seen):7}{seen.count('passed'):9}{seen.count('failed'):9}{seen.count('inconclusive'):11}")


def speed(lists: list[Labelled]) -> None:
    """Prints seconds and memory; each submission differs, so that nothing is answered from a cache."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started = time.process_time()
    model()
    loaded = time.process_time() - started
    took = []
    for number in range(MANY):
        one = lists[number % len(lists)]
        wins, loses = tuple(f"{text} {number}" for text in one.wins), tuple(one.loses)
        started = time.process_time()
        reflections(wins, loses, ())
        took.append(time.process_time() - started)
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    took.sort()
    print(f"loading {1000 * loaded:.0f} ms; {MANY} submissions {sum(took):.1f} s of one core")
    print(f"each: median {1000 * statistics.median(took):.2f} ms, p95 {1000 * took[int(0.95 * MANY)]:.2f} ms")
    print(f"memory {after / 1024:.0f} MB, of which {(after - before) / 1024:.0f} MB since before loading")


def main() -> None:
    """Prints the tables."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("folder", nargs="?", default="blind")
    asked.add_argument("--speed", action="store_true")
    told = asked.parse_args()
    lists = read(told.folder)
    if told.speed:
        speed(lists)
        return
    found = [(one, outcome(one)) for one in lists]
    table("all", (("good" if one.good else "bad", came) for one, came in found))
    for good in (True, False):
        word = "good" if good else "bad"
        table(f"{word}, by kind", ((one.kind, came) for one, came in found if one.good is good))
        table(f"{word}, by language", ((one.language, came) for one, came in found if one.good is good))


if __name__ == "__main__":
    main()
