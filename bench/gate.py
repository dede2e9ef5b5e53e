"""A gate against becoming slow: what a grading costs, as a multiple of a bare `docker run` of the same rounds.

    python bench/gate.py [--rounds 12]

Machines differ and are shared, so that no time is asked for. Exit status 1 when the whole 95 % interval of a ratio's
median lies above its limit: noise alone does not close the gate.
"""

import argparse
import statistics
import tempfile
from pathlib import Path

from warm import interval, one_by_one, over_bare

LIMITS = {"cold": 2.5, "prepared": 1.5}
"""Measured in docs/performance.md: 1.6 and 0.7."""


def main() -> int:
    """Prints each ratio beside its limit."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=12)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        rounds = one_by_one(Path(folder), options.rounds)
    failed = False
    for name, times in (("cold", rounds.cold), ("prepared", rounds.prepared)):
        ratios = over_bare(times, rounds.bare)
        low, high = interval(ratios)
        slower = low > LIMITS[name]
        failed |= slower
        print(
            f"{name} grading over docker run: {statistics.median(ratios):.2f} ({low:.2f} to {high:.2f}), "
            f"at most {LIMITS[name]:g}: {'TOO SLOW' if slower else 'ok'}"
        )
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
