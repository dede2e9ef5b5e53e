"""The same trivial payload through this service's flow and through others' graders, interleaved in one run.

    python bench/peers.py [--rounds 25] [--figure docs/figures/peers.svg] [--folder build/peers]

Contestants: bare `docker run`; autograder-sandbox, coursera-autograder and dmoj from the package index, each in an
environment of its own (dmoj compiles: without g++ and libseccomp-dev it is left out, and told); ours, cold and
prepared. All but dmoj, which has no containers, use the lab image. Each round lets every one grade once, forwards and
then backwards, so that the machine's noise meets each alike. Printed: median and 95th percentile (nearest rank) with
95 % intervals (bootstrap), and the median of the ratios to the bare run of the same turn.
"""

import argparse
import contextlib
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from trivial import SOURCE, Lane
from warm import IMAGE, docker_run, interval, lane, p95, timed

LOOPS = Path(__file__).with_name("peer_loops")
UV = Path(sys.executable).with_name("uv")
PACKAGES = {
    "autograder-sandbox": ["autograder-sandbox==6.0.0"],
    # Its docker-py 1.10.6 cannot talk through newer ones.
    "coursera-autograder": ["coursera-autograder==0.1.4", "requests==2.28.2", "urllib3==1.26.20"],
    "dmoj": ["dmoj==4.1.0"],
}
BUILT_WITH = ["cython==3.3.1", "setuptools==84.2.1", "wheel"]
"""What dmoj needs to compile, beside a compiler and the headers of libseccomp."""
NOBODY = 65534
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
SHOWN = {
    # what the table calls each, and what it does not have
    "docker run": ("`docker run` of the lab image", "queue, limits, checks, verdict"),
    "autograder-sandbox": (
        "autograder-sandbox 6.0.0",
        "queue, read-only root, dropped capabilities, checks, signed verdict",
    ),
    "coursera-autograder": (
        "coursera-autograder 0.1.4",
        "queue, dropped capabilities, process limit, checks on the host, signed verdict",
    ),
    # Its sandbox answers `socket` with EACCES, and opens files of the host by a list of paths.
    "dmoj": ("dmoj 4.1.0", "container, file system of its own, signed verdict"),
    "ours, cold": ("ours, cold", ""),
    "ours, prepared": ("ours, from a prepared run", ""),
}
"""As in docs/performance.md."""


def main() -> None:
    """Prepares what is missing, plays the rounds, prints the table, draws the figure."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--figure", type=Path)
    parser.add_argument("--folder", type=Path, default=Path("build/peers"))
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(dir="/var/tmp")))
        scratch.chmod(0o755)  # dmoj is not run as root
        (scratch / "submission.py").write_text(SOURCE + SAYS)
        contestants: dict[str, Callable[[], Turn]] = {"docker run": lambda: Turn(timed(lambda: docker_run(scratch)))}
        for name in ("autograder-sandbox", "coursera-autograder"):
            python = environment(name, options.folder.resolve() / name)
            image = built(name, scratch)
            contestants[name] = stack.enter_context(peer(name, python, image, scratch))
        if shutil.which("g++") and Path("/usr/include/seccomp.h").exists():
            contestants["dmoj"] = stack.enter_context(dmoj(scratch))
        else:
            sys.stderr.write("dmoj is left out: apt-get install g++ libseccomp-dev python3-dev\n")
        contestants["ours, cold"] = stack.enter_context(ours(scratch, "cold", 0))
        contestants["ours, prepared"] = stack.enter_context(ours(scratch, "prepared", 1))
        turns = play(contestants, options.rounds)
    times = {name: [turn.seconds for turn in own] for name, own in turns.items()}
    early = {name: [turn.result_s for turn in own if turn.result_s is not None] for name, own in turns.items()}
    table(times, early)
    if options.figure is not None:
        draw(times, options.figure)


@dataclass(frozen=True)
class Turn:
    """One grading, seconds."""

    seconds: float
    """Until nothing of it is left."""
    result_s: float | None = None
    """Until the result, where something is left to do then."""


@contextlib.contextmanager
def ours(scratch: Path, name: str, warm_runs: int) -> Iterator[Callable[[], Turn]]:
    """A lane of our own; what it prepares is done before its turn, and before anybody else's."""
    own: Lane = lane(scratch, name, warm_runs)

    def grade() -> Turn:
        own.ready()
        timed = own.grade()
        own.ready()
        return Turn(timed.wall_s, timed.verdict_s)

    try:
        own.grade()
        yield grade
    finally:
        own.close()


@contextlib.contextmanager
def peer(name: str, python: Path, first: str, scratch: Path, **options: int) -> Iterator[Callable[[], Turn]]:
    """A peer's loop in its own environment; `first` is its loop's first argument."""
    handed_in = scratch / "handed-in" / name
    handed_in.mkdir(parents=True)
    (handed_in / "submission.py").write_text(SOURCE + SAYS)
    argument = handed_in if name == "coursera-autograder" else handed_in / "submission.py"
    loops = scratch / "loops" / name
    shutil.copytree(LOOPS, loops)
    with subprocess.Popen(
        [str(python), str(loops / f"{name.replace('-', '_')}_loop.py"), first, str(argument)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        **options,
    ) as loop:
        assert loop.stdin is not None
        assert loop.stdout is not None
        stdin, stdout = loop.stdin, loop.stdout

        def grade() -> Turn:
            stdin.write("go\n")
            stdin.flush()
            line = stdout.readline()
            answer = json.loads(line) if line else {"said": "nothing: it ended"}
            if answer["said"] != SAID:
                raise SystemExit(f"{name} answered {answer['said']!r}, expected {SAID!r}")
            early = answer["result_s"] < 0.9 * answer["seconds"]
            return Turn(answer["seconds"], answer["result_s"] if early else None)

        grade()
        yield grade
        stdin.close()


@contextlib.contextmanager
def dmoj(scratch: Path) -> Iterator[Callable[[], Turn]]:
    """One problem of one case; the judge refuses to be root, so that everything must be readable by others."""
    folder = scratch / "dmoj"
    problem = folder / "problems" / "trivial"
    problem.mkdir(parents=True)
    (problem / "init.yml").write_text("test_cases:\n- {in: in, out: out, points: 1}\n")
    (problem / "in").write_text("")
    (problem / "out").write_text(f"{SAID}\n")
    (folder / "judge.yml").write_text(
        textwrap.dedent(f"""\
            id: bench
            key: bench
            problem_storage_globs: [{folder}/problems/*]
            runtime: {{python3: /usr/bin/python3}}
            """)
    )
    python = environment("dmoj", folder / "environment")
    other = {"user": NOBODY, "group": NOBODY} if os.geteuid() == 0 else {}
    with peer("dmoj", python, str(folder / "judge.yml"), scratch, **other) as grade:
        yield grade


def environment(name: str, folder: Path) -> Path:
    """The interpreter of a peer's environment, made when it is not there."""
    python = folder / "bin" / "python"
    if not python.exists():
        base = "/usr/bin/python3" if name == "dmoj" else sys.executable
        install = [str(UV), "pip", "install", "-q", "--python", str(python)]
        subprocess.run([str(UV), "venv", "-q", "--python", base, str(folder)], check=True)
        if name == "dmoj":
            subprocess.run([*install, *BUILT_WITH], check=True)
            install.append("--no-build-isolation")
        subprocess.run([*install, *PACKAGES[name]], check=True)
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


def play(contestants: dict[str, Callable[[], Turn]], rounds: int) -> dict[str, list[Turn]]:
    """Every turn; turn n of one contestant was close to turn n of each other."""
    turns: dict[str, list[Turn]] = {name: [] for name in contestants}
    for number in range(rounds):
        for name in [*contestants, *reversed(contestants)]:
            turns[name].append(contestants[name]())
        sys.stderr.write(f"\rround {number + 1} of {rounds}")
    sys.stderr.write("\n")
    return turns


def table(times: dict[str, list[float]], early: dict[str, list[float]]) -> None:
    """Markdown, as it stands in docs/performance.md; `early` are times until a result that came before the end."""
    spread = "(95 % interval)"
    print(f"| grader | p50 {spread} | p95 {spread} | over `docker run` {spread} | does not have |")
    print("| --- | --- | --- | --- | --- |")
    for name, own in times.items():
        ratios = [one / bare for one, bare in zip(own, times["docker run"], strict=True)]
        shown, lacks = SHOWN[name]
        print(
            f"| {shown} | {within(own, statistics.median, ' s')} | {within(own, p95, ' s')} "
            f"| {within(ratios, statistics.median)} | {lacks}{' ' if lacks else ''}|"
        )
        if first := early[name]:
            told = f"{within(first, statistics.median, ' s')} | {within(first, p95, ' s')}"
            print(f"| the same, until its result | {told} | | |")


def within(values: list[float], of: Callable[[Sequence[float]], float], unit: str = "") -> str:
    """A figure of them with its interval."""
    low, high = interval(values, of)
    return f"{of(values):.2f}{unit} ({low:.2f} to {high:.2f})"


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
        marks = [mark for mark in (0.1, 0.2, 0.5, 1, 2, 5, 10) if mark < 1.2 * max(map(max, times.values()))]
        axes.set_xticks(marks, [f"{mark:g}" for mark in marks])
        axes.set_xlim(left=0.1)
        axes.minorticks_off()
        axes.set_xlabel("seconds from a submission to its result (log scale)")
        axes.grid(visible=True, axis="x", linewidth=0.3)
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    os.environ.setdefault("DOCKER_CLI_HINTS", "false")
    main()
