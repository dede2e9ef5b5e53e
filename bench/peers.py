"""The same trivial payload through this service's flow and through others' graders, interleaved in one run.

    python bench/peers.py [--rounds 20] [--figure docs/figures/peers.svg] [--folder build/peers]

Contestants: bare `docker run`, autograder-sandbox and coursera-autograder from the package index (each in an
environment of its own below `--folder`), and ours,
cold and prepared. All use the lab image. Each round lets every one grade once, forwards and then backwards, so that
the machine's noise meets each alike. Printed: median with a 95 % interval (bootstrap), 95th percentile, and the median
of the ratios to the bare run of the same round.
"""

import argparse
import contextlib
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from trivial import SOURCE, Lane
from warm import IMAGE, docker_run, lane, timed

LOOPS = Path(__file__).with_name("peer_loops")
UV = Path(sys.executable).with_name("uv")
ENVIRONMENTS = {
    "autograder-sandbox": ["autograder-sandbox==6.0.0"],
    # Its docker-py 1.10.6 cannot talk through newer ones.
    "coursera-autograder": ["coursera-autograder==0.1.4", "requests==2.28.2", "urllib3==1.26.20"],
}
DOCKERFILES = {
    "autograder-sandbox": """
        FROM {image}
        USER root
        RUN useradd -m autograder && mkdir -p /home/autograder/working_dir && chown -R autograder: /home/autograder
        WORKDIR /home/autograder/working_dir
        """,
    "coursera-autograder": """
        FROM {image}
        USER root
        RUN mkdir -p /shared/submission
        COPY grader.py /grader.py
        ENTRYPOINT ["python3", "/grader.py"]
        """,
}
GRADER = """
import json, subprocess, sys
done = subprocess.run([sys.executable, "/shared/submission/submission.py"], capture_output=True, text=True)
answer = {"fractionalScore": float(done.returncode == 0), "feedback": done.stdout.strip()}
with open("/shared/feedback.json", "w") as file:
    json.dump(answer, file)
"""
SAYS = "print(len(where_dali_wins), len(where_dali_loses))\n"
"""Added for graders that read output; ours reads the lists themselves, judges and signs."""
SAID = "3 2"
MISSING = {
    "docker run": "queue, limits, checks, verdict",
    "autograder-sandbox": "queue, read-only root, dropped capabilities, checks, signed verdict",
    "coursera-autograder": "queue, dropped capabilities, process limit, host-side checks, signed verdict",
    "ours, cold": "",
    "ours, prepared": "",
}


def main() -> None:
    """Prepares what is missing, plays the rounds, prints the table, draws the figure."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--figure", type=Path)
    parser.add_argument("--folder", type=Path, default=Path("build/peers"))
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(dir="/var/tmp")))
        (scratch / "submission.py").write_text(SOURCE + SAYS)
        contestants: dict[str, Callable[[], float]] = {"docker run": lambda: timed(lambda: docker_run(scratch))}
        for name in ENVIRONMENTS:
            contestants[name] = stack.enter_context(peer(name, options.folder.resolve(), scratch))
        contestants["ours, cold"] = stack.enter_context(ours(scratch, "cold", 0))
        contestants["ours, prepared"] = stack.enter_context(ours(scratch, "prepared", 1))
        times = play(contestants, options.rounds)
    table(times)
    if options.figure is not None:
        draw(times, options.figure)


@contextlib.contextmanager
def ours(scratch: Path, name: str, warm_runs: int) -> Iterator[Callable[[], float]]:
    """A lane of our own; what it prepares is done before its turn, and before anybody else's."""
    own: Lane = lane(scratch, name, warm_runs)

    def grade() -> float:
        own.ready()
        seconds = own.grade().wall_s
        own.ready()
        return seconds

    try:
        own.grade()
        yield grade
    finally:
        own.close()


@contextlib.contextmanager
def peer(name: str, folder: Path, scratch: Path) -> Iterator[Callable[[], float]]:
    """A peer's loop in its own environment, with its own image."""
    python = environment(name, folder / name)
    image = built(name, scratch)
    handed_in = scratch / "handed-in" / name
    handed_in.mkdir(parents=True)
    (handed_in / "submission.py").write_text(SOURCE + SAYS)
    argument = handed_in if name == "coursera-autograder" else handed_in / "submission.py"
    program = LOOPS / f"{name.replace('-', '_')}_loop.py"
    with subprocess.Popen(
        [str(python), str(program), image, str(argument)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as loop:
        assert loop.stdin is not None
        assert loop.stdout is not None
        stdin, stdout = loop.stdin, loop.stdout

        def grade() -> float:
            stdin.write("go\n")
            stdin.flush()
            line = stdout.readline()
            answer = json.loads(line) if line else {"said": "nothing: it ended"}
            if answer["said"] != SAID:
                raise SystemExit(f"{name} answered {answer['said']!r}, expected {SAID!r}")
            return float(answer["seconds"])

        grade()
        yield grade
        stdin.close()


def environment(name: str, folder: Path) -> Path:
    """The interpreter of a peer's environment, made when it is not there."""
    python = folder / "bin" / "python"
    if not python.exists():
        subprocess.run([str(UV), "venv", "-q", "--python", sys.executable, str(folder)], check=True)
        subprocess.run([str(UV), "pip", "install", "-q", "--python", str(python), *ENVIRONMENTS[name]], check=True)
    return python


def built(name: str, scratch: Path) -> str:
    """A peer's image: the lab image with what the peer asks for."""
    folder = scratch / "images" / name
    folder.mkdir(parents=True)
    lines = DOCKERFILES[name].format(image=IMAGE).splitlines()
    (folder / "Dockerfile").write_text("\n".join(line.strip() for line in lines))
    (folder / "grader.py").write_text(GRADER)
    tag = f"grader-bench-{name}"
    command = ["docker", "build", "-q", "-t", tag, str(folder)]
    subprocess.run(command, check=True, capture_output=True)
    return tag


def play(contestants: dict[str, Callable[[], float]], rounds: int) -> dict[str, list[float]]:
    """Seconds of every turn; turn n of one contestant was close to turn n of each other."""
    times: dict[str, list[float]] = {name: [] for name in contestants}
    for number in range(rounds):
        for name in [*contestants, *reversed(contestants)]:
            times[name].append(contestants[name]())
        sys.stderr.write(f"\rround {number + 1} of {rounds}")
    sys.stderr.write("\n")
    return times


def table(times: dict[str, list[float]]) -> None:
    """Markdown, as it stands in docs/performance.md."""
    print("| grader | p50 (95 % interval) | p95 | over `docker run` (95 % interval) | does not have |")
    print("| --- | --- | --- | --- | --- |")
    for name, own in times.items():
        ratios = [one / bare for one, bare in zip(own, times["docker run"], strict=True)]
        low, high = interval(own)
        p95 = sorted(own)[min(len(own) - 1, int(0.95 * len(own)))]
        print(
            f"| {name} | {statistics.median(own):.2f} s ({low:.2f} to {high:.2f}) | {p95:.2f} s "
            f"| {statistics.median(ratios):.2f} ({interval(ratios)[0]:.2f} to {interval(ratios)[1]:.2f}) "
            f"| {MISSING[name]} |"
        )


def interval(values: Sequence[float], resamples: int = 4000) -> tuple[float, float]:
    """The median's 95 % interval by bootstrap."""
    draw_one = random.Random(1)
    medians = sorted(statistics.median(draw_one.choices(values, k=len(values))) for _ in range(resamples))
    return medians[int(0.025 * resamples)], medians[int(0.975 * resamples)]


def draw(times: dict[str, list[float]], path: Path) -> None:
    """Every turn as a dot, the median as a line; seconds on a logarithmic axis."""
    import matplotlib as mpl  # noqa: PLC0415 - only where a figure is asked for
    from matplotlib.figure import Figure  # noqa: PLC0415

    with mpl.rc_context({"svg.hashsalt": "peers", "svg.fonttype": "none", "font.family": "sans-serif"}):
        figure = Figure(figsize=(8, 0.6 * len(times) + 1.0), layout="constrained")
        axes = figure.subplots()
        for row, (name, own) in enumerate(times.items()):
            colour = "tab:blue" if name.startswith("ours") else "tab:gray"
            shake = random.Random(row)
            axes.plot(own, [row + shake.uniform(-0.2, 0.2) for _ in own], ".", color=colour, alpha=0.5, markersize=4)
            axes.plot([statistics.median(own)] * 2, [row - 0.32, row + 0.32], color=colour, linewidth=2)
        axes.set_yticks(range(len(times)), list(times))
        axes.invert_yaxis()
        axes.set_xscale("log")
        axes.set_xlabel("seconds from a submission to its result (log scale)")
        axes.grid(visible=True, axis="x", which="both", linewidth=0.3)
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    os.environ.setdefault("DOCKER_CLI_HINTS", "false")
    main()
