"""Re-grades a whole cohort from stored evidence: how fast, in how much memory, and whether the cost stays linear.

    python bench/regrade.py [--submissions 10000 100000] [--database postgresql|sqlite] [--workers 2] [--signer]
                            [--plot FILE.svg]

Each size gets a fresh database that `tests/regrade/stored.py` fills, and a lab file whose threshold is 1.3 in place of
1.1. Then every step is the command that an operator types, timed as a process from its start to its end; the judging is
timed from the batch's start to its end, without the start of the workers. Beside the time: the most memory that any
process of the service held, sampled ten times a second, and how it grew over the middle half of the judging; and the
processor time of a verdict, the database's included, which tells what two cores can do that have nothing else to do.
"""

import argparse
import contextlib
import itertools
import json
import re
import statistics
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psutil
from servers import GRADER, Servers, servers
from sqlalchemy import text

from grader_service.labs.specs import lab_text
from grader_service.model.regrade import BatchState
from grader_service.signer.signatures import Signer
from grader_service.store import regrades
from tests.regrade.stored import LAB, fill

_MIB = 1 << 20
_SAMPLE_S = 0.1
_POINTS = 400
"""Of a drawn line; more cannot be seen."""


@dataclass
class Memory:
    """Resident memory of processes over time, children included; one series for each process."""

    series: dict[str, list[tuple[float, float]]] = field(default_factory=dict)
    """Process to (seconds since this was made, MiB)."""
    _stop: threading.Event = field(default_factory=threading.Event)
    _began: float = field(default_factory=time.monotonic)

    @contextlib.contextmanager
    def watching(self, roots: dict[str, int]) -> Iterator[None]:
        """Samples these processes and their children while the block runs."""
        self._stop.clear()
        thread = threading.Thread(target=self._watch, args=(roots,), daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._stop.set()
            thread.join()

    def peak(self, of: str = "") -> float:
        """The most that one process held, MiB; of those whose name starts so."""
        return max((mib for name, seen in self.series.items() if name.startswith(of) for _, mib in seen), default=0.0)

    def growth(self, of: str = "") -> float:
        """By how much the process that grew most did so from the second to the third quarter of its life, MiB."""
        grown = []
        for name, seen in self.series.items():
            quarter = len(seen) // 4
            if name.startswith(of) and quarter:
                middle = [[mib for _, mib in seen[n * quarter : (n + 1) * quarter]] for n in (1, 2)]
                grown.append(statistics.median(middle[1]) - statistics.median(middle[0]))
        return max(grown, default=0.0)

    def _watch(self, roots: dict[str, int]) -> None:
        while not self._stop.wait(_SAMPLE_S):
            for name, pid in roots.items():
                with contextlib.suppress(psutil.NoSuchProcess):
                    root = psutil.Process(pid)
                    for process in (root, *root.children(recursive=True)):
                        with contextlib.suppress(psutil.NoSuchProcess):
                            now = time.monotonic() - self._began
                            key = f"{name} {process.pid}"
                            self.series.setdefault(key, []).append((now, process.memory_info().rss / _MIB))


@dataclass
class Figures:
    """What one size took."""

    submissions: int
    seconds: dict[str, float] = field(default_factory=dict)
    peaks: dict[str, float] = field(default_factory=dict)
    """Command to MiB."""
    done: list[tuple[float, int]] = field(default_factory=list)
    """Seconds since the start of the batch to finished items."""
    memory: Memory = field(default_factory=Memory)
    report_mib: float = 0.0
    cpu_s: dict[str, float] = field(default_factory=dict)
    """Processor time of the judging: `worker` and `database`."""
    others_s: float = 0.0
    """The same of everything else that this machine did meanwhile."""

    @property
    def whole(self) -> float:
        """From the plan to the report, seconds."""
        return sum(self.seconds[name] for name in ("plan", "start", "judge", "diff", "report"))


def main() -> None:
    """Prints a table and, if asked for, draws the progress and the memory."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--submissions", type=int, nargs="+", default=[10_000])
    parser.add_argument("--database", choices=("postgresql", "sqlite"), default="postgresql")
    parser.add_argument("--workers", type=int, default=2, help="each judges on every core")
    parser.add_argument("--signer", action="store_true", help="verdicts are signed by `grader signer`, as with compose")
    parser.add_argument("--plot", type=Path)
    options = parser.parse_args()
    found = []
    for count in options.submissions:
        with servers(options.database) as made:
            found.append(measure(made, count, options.workers, signer=options.signer))
        show(found[-1], options)
    for small, large in itertools.pairwise(found):
        share = (large.whole / large.submissions) / (small.whole / small.submissions)
        print(f"cost of one of {large.submissions} over one of {small.submissions}: {share:.2f}")
    if options.plot:
        draw(found, options.plot)


def measure(made: Servers, count: int, workers: int, *, signer: bool) -> Figures:
    """Fills a database and goes through a batch over all of it."""
    figures = Figures(count)
    store = made.store()
    fill(store, count, signer=Signer.from_folder(made.settings().key_dir))
    if not store.is_sqlite:
        with store.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.execute(text("analyze"))  # as autovacuum has done in a database that grew over weeks
    with tempfile.TemporaryDirectory() as folder:
        lab_file = Path(folder) / "stricter.toml"
        stricter = re.sub(rb"threshold = [0-9.]+", b"threshold = 1.3", lab_text(LAB).content)
        lab_file.write_bytes(stricter)
        selection = ("--cohort", "autumn", "--lab-file", str(lab_file), "--reason", "the threshold was too low")
        planned = command(made, figures, "plan", *selection, "--json")
        batch_id = json.loads(planned)["batch_id"]
        names = [f"worker {number}" for number in range(workers)]
        with contextlib.ExitStack() as stack:
            elsewhere = {"GRADER_SIGNER": stack.enter_context(signing(made))} if signer else {}
            started = [stack.enter_context(made.process(GRADER, "worker", "regrade", **elsewhere)) for _ in names]
            time.sleep(5.0)  # their imports are no part of the judging
            command(made, figures, "start", batch_id)
            roots = families(made, started)
            before, busy = {name: processor_s(found) for name, found in roots.items()}, machine_s()
            with figures.memory.watching(dict(zip(names, (one.pid for one in started), strict=True))):
                began = time.monotonic()
                while (now := regrades.progress(store, batch_id)).state is BatchState.RUNNING:
                    figures.done.append((time.monotonic() - began, now.done))
                    time.sleep(0.5)
            figures.cpu_s = {name: processor_s(found) - before[name] for name, found in roots.items()}
            figures.others_s = machine_s() - busy - sum(figures.cpu_s.values())
        batch = regrades.batch(store, batch_id)
        assert now.done == count, now
        assert batch.started_at is not None
        assert batch.finished_at is not None
        figures.seconds["judge"] = batch.finished_at - batch.started_at
        command(made, figures, "diff", batch_id, "--json", "-")
        report = Path(folder) / "diff.html"
        command(
            made,
            figures,
            "diff",
            batch_id,
            "--report",
            str(report),
            "--json",
            str(report.with_suffix(".json")),
            called="report",
        )
        figures.report_mib = report.stat().st_size / _MIB
        command(made, figures, "apply", batch_id)
        command(made, figures, "revert", batch_id)
    store.close()
    return figures


@contextlib.contextmanager
def signing(made: Servers) -> Iterator[str]:
    """The socket of a process that signs with the key with which the stored verdicts are signed."""
    socket = made.folder / "signer.sock"
    with made.process(GRADER, "signer", "--socket", str(socket)):
        while not socket.exists():
            time.sleep(0.1)
        yield str(socket)


def families(made: Servers, workers: "list[subprocess.Popen[bytes]]") -> dict[str, list[psutil.Process]]:
    """The processes that judge, and those of the database."""
    judging = [psutil.Process(worker.pid) for worker in workers]
    folder = made.database_url.partition("?host=")[2]
    database = [process for process in psutil.process_iter() if folder and _is_in(process, folder)]
    return {"worker": judging, "database": database}


def _is_in(process: psutil.Process, folder: str) -> bool:
    """Whether it is the PostgreSQL whose socket lies in this folder."""
    with contextlib.suppress(psutil.Error):
        words = process.cmdline()
        return process.name() == "postgres" and "-k" in words and folder in words
    return False


def processor_s(roots: list[psutil.Process]) -> float:
    """Seconds that these processes have used, with their children, those that are gone included."""
    used = 0.0
    for root in roots:
        for process in (root, *root.children(recursive=True)):
            with contextlib.suppress(psutil.NoSuchProcess):
                times = process.cpu_times()
                used += times.user + times.system + times.children_user + times.children_system
    return used


def machine_s() -> float:
    """Seconds that all cores of this machine have been busy."""
    times = psutil.cpu_times()
    return sum(times) - times.idle - times.iowait - times.guest - times.guest_nice


def command(made: Servers, figures: Figures, name: str, *arguments: str, called: str = "") -> str:
    """One `grader regrade …`, timed and weighed; returns what it printed."""
    called = called or name
    began = time.monotonic()
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(
            [GRADER, "regrade", name, *arguments], env=made.environment, stdout=output, stderr=errors
        )
        with figures.memory.watching({called: process.pid}):
            status = process.wait()
        figures.seconds[called] = time.monotonic() - began
        figures.peaks[called] = figures.memory.peak(f"{called} ")
        output.seek(0)
        errors.seek(0)
        if status not in {0, 1}:  # 1 says that a diff has something to say
            raise SystemExit(f"grader regrade {name} ended with status {status}:\n{errors.read()[-3000:]}")
        return output.read()


def show(figures: Figures, options: argparse.Namespace) -> None:
    """Prints the table of one size."""
    rate = figures.submissions / figures.seconds["judge"]
    print(f"{figures.submissions} submissions, {options.database}, {options.workers} workers")
    for name, seconds in figures.seconds.items():
        peak = figures.memory.peak("worker") if name == "judge" else figures.peaks[name]
        more = {
            "judge": f"{rate:.0f} verdicts/s; grew by {figures.memory.growth('worker'):.0f} MiB over its middle half",
            "report": f"{figures.report_mib:.2f} MiB of HTML",
        }.get(name, "")
        print(f"{name:8} {seconds:8.1f} s   peak {peak:5.0f} MiB   {more}")
    print(f"{'whole':8} {figures.whole:8.1f} s   plan, start, judge, diff, report")
    each = {name: seconds / figures.submissions * 1e3 for name, seconds in figures.cpu_s.items()}
    parts = ", ".join(f"{name} {ms:.1f}" for name, ms in each.items())
    print(f"processor time of a verdict: {parts} ms; two cores of their own could do {2e3 / sum(each.values()):.0f}/s")
    print(f"meanwhile the machine spent {figures.others_s / figures.seconds['judge']:.2f} cores on something else")


def draw(found: list[Figures], path: Path) -> None:
    """Progress above memory, one column for each size."""
    import matplotlib as mpl  # noqa: PLC0415 - only when something is drawn

    mpl.use("Agg")
    from matplotlib import pyplot as plt  # noqa: PLC0415 - after the backend was chosen

    figure, axes = plt.subplots(2, len(found), figsize=(6 * len(found), 6), squeeze=False, layout="constrained")
    for column, figures in enumerate(found):
        above, below = axes[0][column], axes[1][column]
        seconds, done = zip(*figures.done, strict=True)
        every = 1 + len(seconds) // _POINTS
        above.plot(seconds[::every], done[::every])
        above.set(title=f"{figures.submissions:,} submissions", xlabel="seconds", ylabel="new verdicts")
        judging = [seen for name, seen in figures.memory.series.items() if name.startswith("worker")]
        first = min(seen[0][0] for seen in judging)
        for seen in judging:
            some = seen[:: 1 + len(seen) // _POINTS]
            below.plot([at - first for at, _ in some], [mib for _, mib in some], linewidth=1)
        below.axhline(500, color="grey", linestyle="--", linewidth=1)
        below.set(xlabel="seconds", ylabel="resident, MiB, each process", ylim=(0, 550))
    figure.savefig(path)


if __name__ == "__main__":
    main()
