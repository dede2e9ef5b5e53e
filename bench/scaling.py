"""What one host grades with one device, and with all of them at once: rates of gradings and of what they measured.

    python bench/scaling.py [--devices gpu] [--each 4] [--rounds 1] [--save scaling.json] [--figure scaling.svg]

Every device has a worker process of its own on an equal share of the cores, as in production; the runs come from one
store and are judged beside the work. Phases take turns: each device alone, then all together. In a phase every worker
goes on until the last one has done its share, so that none has the host for itself; what ends after that does not
count, and a worker's rate is what it ended until then over the time until the last of these. Two ratios matter:
gradings an hour together over the sum of those alone, and the learner's images/s together over those alone. Needs the
lab image; uses an embedded database. `--devices cpu` rehearses on slots without a GPU.
"""

import argparse
import base64
import contextlib
import json
import multiprocessing
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from multiprocessing.connection import Connection, wait
from multiprocessing.sharedctypes import Synchronized
from pathlib import Path
from typing import Self

from reference_latency import SUBMISSION, gate, held_s

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from checks.registry import Registry
from grader_service import wiring
from grader_service.host.facts import find_gpus
from grader_service.model.verdict import Verdict
from grader_service.run.progress import Progress, Silent
from grader_service.service.intake import IntakeDeps, receive_all
from grader_service.service.judge import JudgeDeps, judge_next
from grader_service.service.pipeline import StageEnd
from grader_service.service.runner import run_next
from grader_service.settings import Settings
from grader_service.signer.signatures import Signer
from grader_service.store.lease import Lease

_QUIET_S = 900.0
"""So long without a grading that ended, and the phase is given up."""
_VERDICTS_S = 120.0
"""So long after the last run, every verdict must be there."""


@dataclass(frozen=True)
class Seat:
    """One worker's device and cores."""

    gpu: str | None
    slot: int
    cpus: tuple[int, ...]

    @property
    def name(self) -> str:
        """As the tables call it."""
        return f"{'GPU' if self.gpu else 'slot'} {self.slot}"


@dataclass(frozen=True)
class Ended:
    """A run whose findings were stored."""

    seat: str
    submission_id: str
    at: float
    """By the host's monotonic clock."""


@dataclass
class Phase:
    """What came out while some of the workers worked."""

    seats: list[str]
    ends_s: dict[str, list[float]] = field(default_factory=dict)
    """When each worker's gradings ended, after the phase began; as long as every worker worked."""
    per_hour: dict[str, float] = field(default_factory=dict)
    """Gradings an hour of each worker: those, over the time until the last of them."""
    images_per_s: dict[str, list[float]] = field(default_factory=dict)
    ratios: dict[str, list[float]] = field(default_factory=dict)
    held_s: dict[str, list[float]] = field(default_factory=dict)
    passed: int = 0
    graded: int = 0
    """Of these numbers: also those that ended later."""


def main() -> int:
    """Prints the phases and the two ratios; exit status 1 when a grading did not pass."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--devices", choices=("gpu", "cpu"), default="gpu")
    parser.add_argument("--slots", type=int, default=2, help="How many workers share a host without a GPU.")
    parser.add_argument("--each", type=int, default=4, help="Submissions for each worker in a phase.")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--cores", type=int, help="Cores of each worker, where not all are to be shared out.")
    parser.add_argument("--save", type=Path)
    parser.add_argument("--figure", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="grader-scaling-") as folder:
        seats = shared_out(options.devices, options.slots, options.cores)
        print(f"{len(seats)} workers: " + ", ".join(f"{seat.name} on {len(seat.cpus)} cores" for seat in seats))
        with Host(Path(folder), seats) as host:
            host.phase(seats, 1)  # images into memory, connections opened; not counted
            phases = []
            for number in range(options.rounds):
                turns = [[seat] for seat in seats] + [seats]
                for chosen in turns if number % 2 == 0 else turns[::-1]:
                    phases.append(host.phase(chosen, options.each))
                    tell(phases[-1])
    conclude(phases)
    if options.save is not None:
        options.save.write_text(json.dumps([asdict(phase) for phase in phases], indent=1))
    if options.figure is not None:
        draw(phases, options.figure)
    return 0 if all(phase.passed == phase.graded for phase in phases) else 1


def shared_out(kind: str, slots: int, cores: int | None) -> list[Seat]:
    """Equal shares of the cores, neighbours together."""
    gpus: Sequence[str | None] = [gpu.uuid for gpu in find_gpus()] if kind == "gpu" else [None] * slots
    if not gpus:
        raise SystemExit("this host has no GPU; --devices cpu rehearses without")
    cpus = sorted(os.sched_getaffinity(0))
    share = min(cores or len(cpus), len(cpus) // len(gpus))
    return [Seat(gpu, i, tuple(cpus[i * share : (i + 1) * share])) for i, gpu in enumerate(gpus)]


class Host:
    """Worker processes that wait for a phase, and this process as intake and judge."""

    def __init__(self, folder: Path, seats: Sequence[Seat]) -> None:
        self._settings = Settings(state_dir=folder, max_queued=100_000, learner_per_hour=100_000)
        self._store = wiring.ready_store(self._settings)
        registry, signer = Registry(), Signer.from_folder(self._settings.key_dir)
        self._intake = IntakeDeps(self._store, wiring.open_artifacts(self._settings), registry, signer)
        self._judge = JudgeDeps(self._store, registry, signer, "bench/judge")
        self._seats = list(seats)
        self._content = base64.b64encode(SUBMISSION.read_bytes()).decode()
        self._posted = self._ended = 0
        self._context = multiprocessing.get_context("spawn")
        self._owing = self._context.Value("i", 0)
        """How many workers have not done their share of the phase."""
        self._workers: dict[str, tuple[multiprocessing.process.BaseProcess, Connection]] = {}

    def __enter__(self) -> Self:
        for seat in self._seats:
            ours, theirs = self._context.Pipe()
            process = self._context.Process(
                target=work, args=(str(self._settings.state_dir), seat, theirs, self._owing)
            )
            process.start()
            theirs.close()  # so that a worker's end is heard
            self._workers[seat.name] = (process, ours)
        try:
            for name in self._workers:
                self._hear(name)
        except BaseException:
            self.__exit__()  # the others wait for orders, and this process for them
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._owing.value = 0
        for process, pipe in self._workers.values():
            with contextlib.suppress(OSError):
                pipe.send(0)
            process.join(60)
            if process.is_alive():
                process.terminate()
                process.join()
        self._store.close()

    def phase(self, seats: Sequence[Seat], each: int) -> Phase:
        """Has the workers grade their share, and all of them until the last is done; waits for every verdict.

        Raises:
            SystemExit: a worker ended, nothing ended for long, or there are not as many verdicts as runs.
        """
        while self._posted - self._ended < 2 * len(seats):
            self._post()
        self._owing.value = len(seats)
        began = time.monotonic()
        for seat in seats:
            self._workers[seat.name][1].send(each)
        ended, verdicts = self._watch({seat.name for seat in seats})
        deadline = time.monotonic() + _VERDICTS_S
        while len(verdicts) < len(ended):
            if not self._judged(verdicts):
                if time.monotonic() > deadline:
                    raise SystemExit(f"{len(ended)} runs ended, and {len(verdicts)} verdicts came")
                time.sleep(0.2)
        if verdicts.keys() != {one.submission_id for one in ended}:
            raise SystemExit("verdicts came for other submissions than those of the phase")
        return counted([seat.name for seat in seats], each, began, ended, verdicts)

    def _watch(self, working: set[str]) -> tuple[list[Ended], dict[str, Verdict]]:
        """Judges and posts anew beside the workers, until all have stopped."""
        ended: list[Ended] = []
        verdicts: dict[str, Verdict] = {}
        quiet_since = time.monotonic()
        while working:
            pipes: dict[object, str] = {self._workers[name][1]: name for name in working}
            for pipe in wait([self._workers[name][1] for name in working], 0.2):
                told = self._hear(name := pipes[pipe])
                if isinstance(told, Ended):
                    ended.append(told)
                    self._ended += 1
                    self._post()  # somebody may have to go on
                    quiet_since = time.monotonic()
                else:
                    working.discard(name)
            self._judged(verdicts)
            if time.monotonic() - quiet_since > _QUIET_S:
                raise SystemExit(f"nothing ended for {_QUIET_S:g} s; still at work: {', '.join(sorted(working))}")
        return ended, verdicts

    def _hear(self, name: str) -> object:
        try:
            return self._workers[name][1].recv()
        except EOFError:
            raise SystemExit(f"the worker of {name} ended") from None

    def _post(self) -> None:
        self._posted += 1
        message = {
            "submission_id": f"scaling:{self._posted}",
            "learner": f"learner-{self._posted}",
            "lab": "dali-pipelines",
            "artifact": {"filename": SUBMISSION.name, "inline": self._content},
        }
        if (taken := receive_all(self._intake, [(message, None)], "live")[0]).kind != "accepted":
            raise SystemExit(f"a submission was {taken.kind}")

    def _judged(self, verdicts: dict[str, Verdict]) -> bool:
        if (verdict := judge_next(self._judge)) is None:
            return False
        verdicts[verdict.submission_id] = verdict
        return True


def counted(names: list[str], each: int, began: float, ended: Sequence[Ended], verdicts: dict[str, Verdict]) -> Phase:
    """What the phase measured while every worker worked: until the last one had done its share."""
    found = Phase(names, graded=len(verdicts))
    until = max(sorted(one.at for one in ended if one.seat == name)[each - 1] for name in names)
    for one in sorted(ended, key=lambda one: one.at):
        verdict = verdicts[one.submission_id]
        found.passed += verdict.status.value == "passed"
        if verdict.status.value != "passed":
            for check in verdict.checks:
                print(f"  {one.submission_id} {check.id}: {check.outcome.value} {check.code}", flush=True)
        if one.at > until:
            continue
        found.ends_s.setdefault(one.seat, []).append(one.at - began)
        found.held_s.setdefault(one.seat, []).append(held_s(verdict.provenance))
        measured = verdict.measurement
        if measured is not None and measured.decision is not None:
            rate = next(arm.images_per_s for arm in measured.arms if arm.arm.value == "dali")
            found.images_per_s.setdefault(one.seat, []).append(float(rate or 0.0))
            found.ratios.setdefault(one.seat, []).append(measured.decision.ratio)
    found.per_hour = {name: 3600 * len(ends) / ends[-1] for name, ends in found.ends_s.items()}
    return found


def work(folder: str, seat: Seat, pipe: Connection, owing: "Synchronized[int]") -> None:
    """A worker: grades its share and goes on until nobody owes any; says which runs ended, and that it stopped."""
    os.sched_setaffinity(0, seat.cpus)
    settings = Settings(state_dir=Path(folder), gpu=seat.gpu or "none")
    gpu = wiring.chosen_gpu(settings)
    store = wiring.open_store(settings)
    device = wiring.device_id(gpu, seat.slot)
    latest = ""

    def note(lease: Lease) -> Progress:
        nonlocal latest
        latest = lease.submission_id
        return Silent()

    deps = wiring.runner_deps(settings, store, gpu, f"bench/{seat.slot}", gate(store, device, gpu))
    deps = replace(deps, progress=note)
    pipe.send("ready")
    while wanted := pipe.recv():
        done = 0
        while owing.value > 0:
            end = run_next(deps)
            if end is StageEnd.STORED:
                done += 1
                pipe.send(Ended(seat.name, latest, time.monotonic()))
                if done == wanted:
                    with owing.get_lock():
                        owing.value -= 1
            else:  # one that failed comes back; others wait in its place
                print(f"{seat.name}: {end.value}", flush=True)
                time.sleep(1)
        pipe.send("stopped")


def tell(phase: Phase) -> None:
    """One phase."""
    print(f"\n{' and '.join(phase.seats)}: {phase.passed} of {phase.graded} passed")
    for name, rate in phase.per_hour.items():
        ends = phase.ends_s[name]
        print(f"  {name}: {rate:.1f} gradings an hour, {len(ends)} in {ends[-1]:.1f} s")
    for name, rates in sorted(phase.images_per_s.items()):
        print(
            f"  {name}: DALI {statistics.median(rates):,.0f} images/s ({min(rates):,.0f} to {max(rates):,.0f}), "
            f"ratio {statistics.median(phase.ratios[name]):.2f}, held {statistics.median(phase.held_s[name]):.1f} s"
        )
    sys.stdout.flush()


def conclude(phases: Sequence[Phase]) -> None:
    """The two ratios."""
    together = [phase for phase in phases if len(phase.seats) > 1]
    if not together:
        return
    summed = statistics.mean(sum(phase.per_hour.values()) for phase in together)
    single = sum(statistics.mean(rates) for rates in alone(phases).values())
    print(f"\ngradings an hour, together over the sum alone: {summed:.1f} / {single:.1f} = {summed / single:.3f}")
    quiet, busy = measured(phases, lonely=True), measured(phases, lonely=False)
    for name in sorted(quiet.keys() & busy.keys()):
        of, over = statistics.median(busy[name]), statistics.median(quiet[name])
        print(f"DALI images/s on {name}, together over alone: {of:,.0f} / {over:,.0f} = {of / over:.3f}")


def alone(phases: Sequence[Phase]) -> dict[str, list[float]]:
    """Gradings an hour of each worker while it had the host for itself."""
    rates: dict[str, list[float]] = {}
    for phase in phases:
        if len(phase.seats) == 1:
            rates.setdefault(phase.seats[0], []).append(phase.per_hour[phase.seats[0]])
    return rates


def measured(phases: Sequence[Phase], *, lonely: bool) -> dict[str, list[float]]:
    """Images/s of the DALI arm, by device."""
    rates: dict[str, list[float]] = {}
    for phase in phases:
        if (len(phase.seats) == 1) == lonely:
            for name, found in phase.images_per_s.items():
                rates.setdefault(name, []).extend(found)
    return rates


def draw(phases: Sequence[Phase], path: Path) -> None:
    """Gradings an hour by the number of workers, beside a straight line; and images/s alone and together."""
    import matplotlib as mpl  # noqa: PLC0415 - only when something is drawn

    mpl.use("svg")
    from matplotlib import pyplot as plt  # noqa: PLC0415 - after the backend was chosen

    single = {name: statistics.mean(rates) for name, rates in alone(phases).items()}
    together = [sum(phase.per_hour.values()) for phase in phases if len(phase.seats) > 1]
    most = max(len(phase.seats) for phase in phases)
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    one = statistics.mean(single.values())
    left.plot([0, most], [0, sum(single.values())], color="0.6", linestyle="--", label="linear")
    left.scatter([1] * len(single), list(single.values()), label="alone")
    left.scatter([most] * len(together), together, label="together")
    left.set(
        xlabel="workers", ylabel="gradings an hour", xticks=range(1, most + 1), ylim=(0, 1.15 * max(one, *together))
    )
    left.legend()
    quiet, busy = measured(phases, lonely=True), measured(phases, lonely=False)
    for place, name in enumerate(sorted(quiet)):
        right.scatter([place - 0.1] * len(quiet[name]), quiet[name], color="C0", label=None if place else "alone")
        found = busy.get(name, [])
        right.scatter([place + 0.1] * len(found), found, color="C1", label=None if place else "together")
    top = max(rate for found in (*quiet.values(), *busy.values()) for rate in found)
    right.set(
        xticks=range(len(quiet)), xlim=(-0.5, len(quiet) - 0.5), ylabel="DALI arm, images/s", ylim=(0, 1.15 * top)
    )
    right.set_xticklabels(sorted(quiet))
    right.legend()
    figure.savefig(path)


if __name__ == "__main__":
    sys.exit(main())
