"""Memory of one process that grades, over many gradings through Docker.

    python bench/long_run.py [--gradings 10000] [--lanes 4] [--warm-runs 0] [--plot FILE.svg]

One process grades the trivial submission again and again, on so many threads at once, each with its own connection to
the engine and its own judging process: what a grading left behind would add up in the one process. A worker has one
child that grades, one submission after another, which is the same with one lane. Printed: resident memory of the
process and of its judging processes, open files and threads, at the beginning, in the middle and at the end, and what
grew over the last three quarters, when everything has been loaded and used. Exits with 1 where something did.
"""

import argparse
import statistics
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import psutil
from warm import lane

POINTS = 100
MOST_GROWTH_MIB = 5.0
"""Of the process or of all judging processes: 10,000 gradings that kept half a kilobyte each would show."""


@dataclass(frozen=True)
class Point:
    """What the process had after so many gradings."""

    gradings: int
    own_mib: float
    judging_mib: float
    """All of them."""
    files: int
    threads: int


class Counter:
    """Counts the gradings of all lanes, and looks at the process now and then."""

    def __init__(self, gradings: int, lanes: int) -> None:
        self.points: list[Point] = []
        self.end_of_all = threading.Barrier(lanes)
        """No lane closes its judging process while another is still looked at."""
        self._wanted = gradings
        self._begun = 0
        self._done = 0
        self._lock = threading.Lock()

    def begin(self) -> bool:
        """Whether one more is wanted."""
        with self._lock:
            self._begun += 1
            return self._begun <= self._wanted

    def end(self) -> None:
        """One more is done."""
        with self._lock:
            self._done += 1
            if self._done % max(1, self._wanted // POINTS) == 0:
                self.points.append(look(self._done))
                sys.stderr.write(f"\r{self._done} of {self._wanted}, {self.points[-1].own_mib:.1f} MiB   ")
                sys.stderr.flush()


def main() -> int:
    """Prints the points, and what grew."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--gradings", type=int, default=10_000)
    parser.add_argument("--lanes", type=int, default=4)
    parser.add_argument("--warm-runs", type=int, default=0)
    parser.add_argument("--plot", type=Path)
    options = parser.parse_args()
    counter = Counter(options.gradings, options.lanes)
    started = time.monotonic()
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder, ThreadPoolExecutor(options.lanes) as threads:
        lanes = [threads.submit(work, Path(folder), str(i), options.warm_runs, counter) for i in range(options.lanes)]
        for each in lanes:
            each.result()
    seconds = time.monotonic() - started
    print(f"{options.gradings} gradings in {seconds:.0f} s, {options.gradings / seconds:.2f} a second")
    points = counter.points
    for point in (points[0], points[len(points) // 4], points[len(points) // 2], points[-1]):
        print(
            f"after {point.gradings}: {point.own_mib:.1f} MiB, judging {point.judging_mib:.1f} MiB, "
            f"{point.files} files, {point.threads} threads"
        )
    own, judging = grown([point.own_mib for point in points]), grown([point.judging_mib for point in points])
    files, running = grown([point.files for point in points]), grown([point.threads for point in points])
    print(f"grown: {own:+.1f} MiB, judging {judging:+.1f} MiB, {files:+.0f} files, {running:+.0f} threads")
    if options.plot is not None:
        draw(points, options.plot)
    return int(max(own, judging) > MOST_GROWTH_MIB or max(files, running) > options.lanes)


def work(folder: Path, name: str, warm_runs: int, counter: Counter) -> None:
    """Grades until as many were graded as are wanted."""
    own = lane(folder, name, warm_runs)
    try:
        while counter.begin():
            own.grade()
            counter.end()
        counter.end_of_all.wait()
    except BaseException:
        counter.end_of_all.abort()
        raise
    finally:
        own.close()


def look(gradings: int) -> Point:
    """At this process and its children; pods are the engine's, not ours."""
    me = psutil.Process()
    children = 0
    for child in me.children(recursive=True):
        try:
            children += child.memory_info().rss
        except psutil.NoSuchProcess:
            continue  # a child that unpacks a submission lives for a moment
    return Point(gradings, me.memory_info().rss / (1 << 20), children / (1 << 20), me.num_fds(), me.num_threads())


def grown(values: list[float]) -> float:
    """Median of the last three eighths less that of the three eighths before."""
    settled = values[len(values) // 4 :]
    half = len(settled) // 2
    return statistics.median(settled[half:]) - statistics.median(settled[:half])


def draw(points: list[Point], path: Path) -> None:
    """Memory over gradings, from zero."""
    import matplotlib as mpl  # noqa: PLC0415 - only where a figure is asked for
    from matplotlib.figure import Figure  # noqa: PLC0415

    with mpl.rc_context({"svg.hashsalt": "long_run", "svg.fonttype": "none", "font.family": "sans-serif"}):
        figure = Figure(figsize=(7, 2.8), layout="constrained")
        axes = figure.subplots()
        gradings = [point.gradings for point in points]
        axes.plot(gradings, [point.own_mib for point in points], label="the process that grades")
        axes.plot(gradings, [point.judging_mib for point in points], label="its judging processes together")
        axes.set_ylim(bottom=0)
        axes.set_xlim(left=0)
        axes.set_xlabel("gradings")
        axes.set_ylabel("resident memory, MiB")
        axes.grid(visible=True, linewidth=0.3)
        axes.legend(frameon=False)
        figure.savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    raise SystemExit(main())
