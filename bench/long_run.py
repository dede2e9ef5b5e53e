"""Memory of the processes that grade, over many gradings through Docker.

    python bench/long_run.py [--gradings 10000] [--lanes 4] [--warm-runs 0] [--plot FILE.svg]

Each lane is a process that grades the trivial submission again and again, with its own judging process, as a worker
does. Printed: resident memory (its own and its judging process's) at the beginning, middle and end, and the growth
over the last three quarters, when everything has been loaded and used.
"""

import argparse
import multiprocessing
import statistics
import sys
import tempfile
import time
from pathlib import Path

import psutil
from warm import lane

POINTS = 40


def main() -> None:
    """Prints one line per lane and the sum."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--gradings", type=int, default=10_000)
    parser.add_argument("--lanes", type=int, default=4)
    parser.add_argument("--warm-runs", type=int, default=0)
    parser.add_argument("--plot", type=Path)
    options = parser.parse_args()
    each = options.gradings // options.lanes
    with (
        tempfile.TemporaryDirectory(dir="/var/tmp") as folder,
        multiprocessing.get_context("spawn").Pool(options.lanes) as pool,
    ):
        started = time.monotonic()
        jobs = [pool.apply_async(work, (folder, str(i), each, options.warm_runs)) for i in range(options.lanes)]
        lanes = [job.get() for job in jobs]
        seconds = time.monotonic() - started
    print(f"{each * options.lanes} gradings in {seconds:.0f} s, {each * options.lanes / seconds:.2f} a second")
    for number, points in enumerate(lanes):
        memory = [mib for _, mib in points]
        settled = memory[len(memory) // 4 :]
        half = len(settled) // 2
        growth = statistics.median(settled[half:]) - statistics.median(settled[:half])
        print(
            f"lane {number}: {memory[0]:.1f} MiB, {memory[len(memory) // 2]:.1f}, {memory[-1]:.1f}; "
            f"most {max(memory):.1f}; "
            f"median of the last three eighths over that of the three before: {growth:+.1f} MiB"
        )
    if options.plot is not None:
        draw(lanes, options.plot)


def work(folder: str, name: str, gradings: int, warm_runs: int) -> list[tuple[int, float]]:
    """(gradings done, MiB) at about forty points."""
    own = lane(Path(folder), name, warm_runs)
    points = []
    try:
        for done in range(1, gradings + 1):
            own.grade()
            if done % max(1, gradings // POINTS) == 0:
                points.append((done, resident_mib()))
                sys.stderr.write(f"\rlane {name}: {done} of {gradings}   ")
    finally:
        own.close()
    return points


def resident_mib() -> float:
    """Of this process and its children; pods are the engine's, not ours."""
    me = psutil.Process()
    return sum(one.memory_info().rss for one in (me, *me.children(recursive=True))) / (1 << 20)


def draw(lanes: list[list[tuple[int, float]]], path: Path) -> None:
    """Memory over gradings, a line for each lane, from zero."""
    import matplotlib as mpl  # noqa: PLC0415 - only where a figure is asked for
    from matplotlib.figure import Figure  # noqa: PLC0415

    with mpl.rc_context({"svg.hashsalt": "long_run", "svg.fonttype": "none", "font.family": "sans-serif"}):
        figure = Figure(figsize=(7, 2.8), layout="constrained")
        axes = figure.subplots()
        for number, points in enumerate(lanes):
            axes.plot([done for done, _ in points], [mib for _, mib in points], label=f"lane {number}")
        axes.set_ylim(bottom=0)
        axes.set_xlabel("gradings of the lane")
        axes.set_ylabel("resident memory, MiB")
        axes.grid(visible=True, linewidth=0.3)
        figure.savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    main()
