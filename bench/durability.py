"""What it costs that Redis answers only when the disk has what it was given: `appendfsync always` beside `everysec`.

    python bench/durability.py [--rounds 5] [--messages 2000]

In each round, with a fresh Redis for each setting, in turn: messages posted one after another by one platform, the same
by eight at once, and how fast a judge takes them in (`bench/intake.py`). Prints medians, and the median of the rounds'
ratios with their smallest and largest. In the same run, as a yardstick: how often a second this disk syncs 4 KiB.
"""

import argparse
import os
import statistics
import tempfile
import time
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor

from intake import intake, post
from servers import Servers, servers

_MODES = ("everysec", "always")
_SIZE = 4000
"""Bytes of a message: a small module, as platforms send it."""


def main() -> None:
    """Prints a table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--messages", type=int, default=2000)
    options = parser.parse_args()
    rates: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    syncs = []
    for number in range(options.rounds):
        syncs.append(syncs_a_second())
        for mode in _MODES if number % 2 else _MODES[::-1]:
            with servers("postgresql", appendfsync=mode) as made:
                rates["posted by one platform"][mode].append(posts(made, 1))
                rates["posted by eight"][mode].append(posts(made, 8))
                post(made, options.messages)
                rates["taken in"][mode].append(intake(made, options.messages, 1, 4))
        print(f"round {number + 1} of {options.rounds}", flush=True)
    print(f"\nsyncs of 4 KiB: {statistics.median(syncs):,.0f} a second")
    for what, by_mode in rates.items():
        ratios = [always / everysec for everysec, always in zip(*(by_mode[mode] for mode in _MODES), strict=True)]
        print(
            f"{what:<23} everysec {statistics.median(by_mode['everysec']):8,.0f}/s  always "
            f"{statistics.median(by_mode['always']):8,.0f}/s  ratio {statistics.median(ratios):.2f} "
            f"({min(ratios):.2f} to {max(ratios):.2f})"
        )


def posts(made: Servers, platforms: int, seconds: float = 3.0) -> float:
    """Messages a second that are answered, each before the same platform posts the next."""
    until = time.monotonic() + seconds
    message = os.urandom(_SIZE)

    def work(_: int) -> int:
        client, done = made.redis.client(), 0
        while time.monotonic() < until:
            client.lpush("bench", message)
            done += 1
        return done

    with ThreadPoolExecutor(platforms) as pool:
        total = sum(pool.map(work, range(platforms)))
    made.redis.client().delete("bench")
    return total / seconds


def syncs_a_second(seconds: float = 1.0) -> float:
    """Appends of 4 KiB to a file, each synced."""
    until, done = time.monotonic() + seconds, 0
    with tempfile.TemporaryFile(dir="/var/tmp") as file:
        while time.monotonic() < until:
            file.write(b"x" * 4096)
            file.flush()
            os.fdatasync(file.fileno())
            done += 1
    return done / seconds


if __name__ == "__main__":
    main()
