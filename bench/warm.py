"""What one grading of a trivial submission costs: cold, from a prepared run, and beside a bare `docker run`.

    python bench/warm.py [--rounds 40] [--seconds 30]

Each round does all three, one after the other, in an order that changes: the machine's noise meets each alike. Then
the rate at which whole gradings end, on as many lanes as there are cores and twice as many, cold and prepared, with
the rate of bare `docker run` on the same lanes as yardstick. Needs the lab image (`grader images build lab`).
"""

import argparse
import multiprocessing
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from trivial import SOURCE, Lane, Timed

IMAGE = os.environ.get("GRADER_LAB_IMAGE", "grader-lab")


def main() -> None:
    """Prints both tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--seconds", type=float, default=30.0, help="How long each rate is counted.")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        tell(one_by_one(Path(folder), options.rounds))
        rates(Path(folder), options.seconds)


@dataclass(frozen=True)
class Rounds:
    """What each contestant took, round by round."""

    bare: list[float]
    cold: list[Timed]
    prepared: list[Timed]


def one_by_one(folder: Path, rounds: int) -> Rounds:
    """Latency: nothing else runs."""
    lanes = {"cold": lane(folder, "cold", 0), "prepared": lane(folder, "prepared", 1)}
    gradings: dict[str, list[Timed]] = {name: [] for name in lanes}
    bare: list[float] = []
    try:
        for each in lanes.values():
            each.grade()  # what is opened once: connections, the judging process
        contestants: list[str] = [*lanes, "bare"]
        for number in range(rounds):
            random.Random(number).shuffle(contestants)
            for name in contestants:
                if name == "bare":
                    bare.append(timed(lambda: docker_run(folder / "cold")))
                else:
                    lanes[name].ready()
                    gradings[name].append(lanes[name].grade())
                    lanes["prepared"].ready()  # its preparing is not to meet the next one
            sys.stderr.write(f"\rround {number + 1} of {rounds}")
        sys.stderr.write("\n")
    finally:
        for each in lanes.values():
            each.close()
    return Rounds(bare, gradings["cold"], gradings["prepared"])


def tell(rounds: Rounds) -> None:
    """Medians and percentiles."""
    print(f"bare docker run      {told(rounds.bare)}")
    for name, times in (("cold", rounds.cold), ("prepared", rounds.prepared)):
        print(f"{name + ', whole':<20} {told([one.wall_s for one in times])}")
        print(f"{name + ', overhead':<20} {told([one.overhead_s for one in times])}")
        print(f"{name + ', first line':<20} {told([one.first_line_s for one in times])}")
        print(f"{name + ' / bare':<20} {statistics.median(over_bare(times, rounds.bare)):.2f}")


def over_bare(times: list[Timed], bare: list[float]) -> list[float]:
    """Whole gradings over the bare run of the same round."""
    return [one.wall_s / own for one, own in zip(times, bare, strict=True)]


def rates(folder: Path, seconds: float) -> None:
    """Throughput: every lane is a process of its own that works without a pause."""
    cores = os.cpu_count() or 1
    for count in (cores, 2 * cores):
        for name, work in (("bare docker run", _bare), ("cold", _cold), ("prepared", _prepared)):
            with multiprocessing.get_context("spawn").Pool(count) as pool:
                jobs = [pool.apply_async(work, (str(folder), f"{name}-{count}-{i}", seconds)) for i in range(count)]
                done = sum(job.get() for job in jobs)
            print(f"{name:<16} {count} lanes: {done / seconds:5.2f} a second ({done} in {seconds:.0f} s)", flush=True)


def _bare(folder: str, name: str, seconds: float) -> int:
    own = Path(folder, name)
    own.mkdir()
    (own / "submission.py").write_text(SOURCE)
    return _repeat(lambda: docker_run(own), seconds)


def _cold(folder: str, name: str, seconds: float) -> int:
    return _graded(folder, name, seconds, 0)


def _prepared(folder: str, name: str, seconds: float) -> int:
    return _graded(folder, name, seconds, 1)


def _graded(folder: str, name: str, seconds: float, warm_runs: int) -> int:
    own = lane(Path(folder), name, warm_runs)
    try:
        own.grade()
        return _repeat(own.grade, seconds)
    finally:
        own.close()


def _repeat(work: Callable[[], object], seconds: float) -> int:
    deadline, done = time.monotonic() + seconds, 0
    while time.monotonic() < deadline:
        work()
        done += 1
    return done


def lane(folder: Path, name: str, warm_runs: int) -> Lane:
    """A lane with a folder of its own."""
    own = folder / name
    own.mkdir()
    return Lane(own, warm_runs)


def docker_run(folder: Path) -> None:
    """The same image runs the same file, without a network and with nothing else of what a pod has."""
    mount = f"{folder / 'submission.py'}:/submission.py:ro"
    command = ["docker", "run", "--rm", "--network", "none", "-v", mount, IMAGE, "python3", "/submission.py"]
    subprocess.run(command, check=True, capture_output=True)


def timed(work: Callable[[], object]) -> float:
    """Seconds that it takes."""
    since = time.monotonic()
    work()
    return time.monotonic() - since


def percentile(values: Sequence[float], percent: int) -> float:
    """By nearest rank: the smallest value that so many per cent of them do not exceed."""
    return sorted(values)[-(-percent * len(values) // 100) - 1]


def p95(values: Sequence[float]) -> float:
    """The 95th percentile."""
    return percentile(values, 95)


def interval(
    values: Sequence[float], of: Callable[[Sequence[float]], float] = statistics.median, resamples: int = 4000
) -> tuple[float, float]:
    """The 95 % interval by bootstrap, of the median unless told otherwise."""
    draw_one = random.Random(1)
    found = sorted(of(draw_one.choices(values, k=len(values))) for _ in range(resamples))
    return found[int(0.025 * resamples)], found[int(0.975 * resamples)]


def told(times: list[float]) -> str:
    """Median and 95th percentile, each with its interval."""
    parts = []
    for name, of in (("p50", statistics.median), ("p95", p95)):
        low, high = (1e3 * bound for bound in interval(times, of))
        parts.append(f"{name} {1e3 * of(times):6.0f} ms ({low:.0f} to {high:.0f})")
    return f"{', '.join(parts)}, {len(times)} times"


if __name__ == "__main__":
    main()
