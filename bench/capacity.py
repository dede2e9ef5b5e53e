"""The capacity model of docs/scaling.md, checked by a simulation of a fleet with failures.

    python bench/capacity.py [--submissions 1000000] [--gpus 500] [--load 0.8] [--regrades 50000] [--seed 1]

The simulation (bench/fleet.py) follows the rules of the service, not its code: live before regrade and the oldest
first, one run of a learner at a time, a claim that ends with its lease when a runner dies or stalls, a late result
that is refused, three infrastructure failures before a run is dead-lettered, a device that is out of service until its
repair. A batch of re-grades begins after a quarter of the submissions.

Prints what the model says beside what came out. Exit status 1 when a submission was lost or got two verdicts, a
device or a learner had two runs, a re-grade ran before a live submission that could have run, a late result was
taken, or the model was further off than it may be.
"""

import argparse
import math
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass

from fleet import (
    CRASH_PER_RUN,
    GAP_S,
    KINDS,
    POISON,
    REPAIR_S,
    RESTART_S,
    STALL_MORE_S,
    STALL_PER_RUN,
    STALL_S,
    XID_PER_RUN,
    Fleet,
)

OFF = 0.02
"""By how much of itself the model may be off, where it claims to be right, beside what chance explains."""
WAIT_OFF = 0.15
"""The same for waits. Without a batch the model gives a bound, beside one it takes runs to end like raindrops: above
this load those of 900 s end in clusters, and it claims nothing."""
WAIT_LOAD = 0.9
WAIT_LEAST_S = 0.05
"""What a wait may be off however short it is."""
ERRORS = 4.0
"""Standard errors that are chance."""
PARTS = 20
"""Into so many the waits are cut, in order, to see how far chance moves their mean: one long queue is many waits."""


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    name: str
    said: float | None
    came: float
    digits: int
    off: float | None = None
    """How far apart the two may be; None: the model does not claim to be right."""
    bound: bool = False
    """Whether the model says only that it is no more."""

    @property
    def broken(self) -> bool:
        """Whether the model is further off than it claims."""
        if self.said is None or self.off is None:
            return False
        return self.came - self.said > self.off or (not self.bound and self.said - self.came > self.off)

    def __str__(self) -> str:
        said = "" if self.said is None else f"{'≤ ' if self.bound else ''}{self.said:.{self.digits}f}"
        off = "" if self.off is None else f"{self.off:.{self.digits}f}{', BROKEN' if self.broken else ''}"
        return f"| {self.name} | {said} | {self.came:.{self.digits}f} | {off} |"


class Model:
    """The closed form: what a fleet can do, and how long one waits for it."""

    def __init__(self, gpus: int) -> None:
        self.gpus = gpus
        first = sum(share * median * math.exp(spread**2 / 2) for _, share, median, spread in KINDS)
        second = sum(share * median**2 * math.exp(2 * spread**2) for _, share, median, spread in KINDS)
        # A run that dies half way costs half of itself and the restart, one that stalls the stall; both come again.
        lost = (CRASH_PER_RUN + 3 * POISON) * (first / 2 + RESTART_S)
        lost += STALL_PER_RUN * (first + STALL_S + STALL_MORE_S + GAP_S)
        self.held_s = first
        self.service_s = first + GAP_S + lost
        self.variation = second / first**2 - 1
        self.down = XID_PER_RUN * REPAIR_S / (self.service_s + XID_PER_RUN * REPAIR_S)
        self.per_hour = gpus * (1 - self.down) * 3600 / self.service_s

    def out_of_service(self, per_s: float) -> float:
        """Share of all device time that is spent in repair at this rate."""
        return per_s * XID_PER_RUN * REPAIR_S / self.gpus

    def wait_s(self, per_s: float) -> float:
        """Mean wait of M/G/c by Allen and Cunneen, Erlang's C times (1 + variation) / 2: too much for a large fleet."""
        load = per_s * self.service_s
        c = max(1, round(self.gpus * (1 - self.out_of_service(per_s))))
        inverse = 1.0  # Erlang's B by its recurrence
        for k in range(1, c + 1):
            inverse = 1.0 + inverse * k / load
        blocked = 1.0 / inverse
        waits = blocked / (1 - (load / c) * (1 - blocked))
        return waits * self.service_s / (c - load) * (1 + self.variation) / 2

    def wait_beside_batch_s(self, per_s: float) -> float:
        """Mean wait of a live submission when no device is ever idle: it gets the next one that is free."""
        return 1 / (self.per_hour / 3600 - per_s)


def main() -> int:
    """Prints the table; 1 when a promise was broken."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--submissions", type=int, default=1_000_000)
    parser.add_argument("--gpus", type=int, default=500)
    parser.add_argument("--load", type=float, default=0.8, help="Arrivals as a share of what the model can do.")
    parser.add_argument("--learners", type=int, default=100_000)
    parser.add_argument("--regrades", type=int, help="Items of the batch; a twentieth of the submissions if not given.")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--price", type=float, default=3.0, help="Of a GPU hour.")
    options = parser.parse_args()
    regrades = options.submissions // 20 if options.regrades is None else options.regrades
    model = Model(options.gpus)
    rate = options.load * model.per_hour / 3600
    fleet = Fleet(options.gpus, rate, options.submissions, options.learners, regrades, options.seed)
    started = time.monotonic()
    fleet.play()
    print(
        f"{options.submissions:,} submissions of {options.learners:,} learners, {regrades:,} re-grades, "
        f"{options.gpus} GPUs, {fleet.now / 3600:.1f} hours of simulated time in {time.monotonic() - started:.0f} s; "
        f"{fleet.crashes:,} times a runner died, {fleet.stalls:,} times one stalled\n"
    )
    rows = compared(fleet, model, options.load, options.price)
    print("| | model | simulation | may differ by |\n| --- | --- | --- | --- |")
    for row in rows:
        print(row)
    broken = promises(fleet)
    print("\n" + ", ".join(f"{what}: {times}" for what, times in broken.items()))
    return 1 if any(broken.values()) or any(row.broken for row in rows) else 0


def promises(fleet: Fleet) -> dict[str, int]:
    """How often each promise was broken."""
    return {
        "lost": sum(run.verdicts == 0 and run.state != "dead-lettered" for run in fleet.runs),
        "graded twice": sum(run.verdicts + (run.state == "dead-lettered") > 1 for run in fleet.runs),
        **fleet.audit.broken,
    }


def compared(fleet: Fleet, model: Model, load: float, price: float) -> list[Row]:
    """What the model says beside what came out."""
    rate, paid = fleet.per_s, price / 3600
    done = sum(run.verdicts for run in fleet.runs)
    total = len(fleet.runs)
    whole_s = fleet.busy_s + REPAIR_S * len(fleet.repairs)
    # The batch fills what is idle, as far as it goes.
    verdicts_s = min(rate * total / fleet.submissions, model.per_hour / 3600)
    out, idle_too = model.out_of_service(verdicts_s), paid * fleet.gpus / verdicts_s
    came_too = paid * fleet.last_came * fleet.gpus / fleet.done_till_then
    mean = OFF + ERRORS * math.sqrt(model.variation / total)
    """Share by which a mean over all runs may be off."""
    each = 3600 * (1 - model.down) / model.service_s
    live = [run for run in fleet.runs if run.device_wait >= 0 and run.priority == 0]
    waits = sorted(run.device_wait for run in live)
    alone = [run.device_wait for run in live if not run.beside_batch]
    beside = [run.device_wait for run in live if run.beside_batch]
    dead_lettered, stalls = fleet.submissions * POISON, total * STALL_PER_RUN
    return [
        Row("GPU seconds per verdict", model.held_s, fleet.held_s / done, 1, mean * model.held_s),
        Row("verdicts per GPU and hour, none idle", each, 3600 * done / whole_s, 1, mean * each),
        Row(
            "share of time that a device is out of service",
            out,
            fleet.out_of_service_s() / fleet.last_came / fleet.gpus,
            4,
            (OFF + ERRORS / math.sqrt(total * XID_PER_RUN)) * out,
        ),
        Row("wait for a device without a batch, mean, s", model.wait_s(rate), _mean(alone), 2,
            _wait_off(model.wait_s(rate), alone), bound=True),
        Row("wait for a device beside a batch, mean, s", model.wait_beside_batch_s(rate), _mean(beside), 2,
            _wait_off(model.wait_beside_batch_s(rate), beside) if load <= WAIT_LOAD else None),
        *(
            Row(f"wait for a device, p{share}, s", None, waits[math.ceil(share / 100 * len(waits)) - 1], 1)
            for share in (50, 95, 99)
        ),
        Row("wait behind a run of the same learner, mean, s", None, _mean([run.learner_wait for run in live]), 2),
        Row("dead-lettered", dead_lettered, _dead_lettered(fleet), 0, ERRORS * math.sqrt(dead_lettered) + 1),
        Row("late results of stalled runners, refused", stalls, fleet.refused, 0, ERRORS * math.sqrt(stalls) + 1),
        Row("cost per verdict, busy time only", paid * model.service_s, paid * fleet.busy_s / done, 4,
            mean * paid * model.service_s),
        Row("cost per verdict, idle time paid too", idle_too, came_too, 4, mean * idle_too),
    ]  # fmt: skip


def _wait_off(said: float, waits: Sequence[float]) -> float | None:
    """How far a mean of these waits, in order of arrival, may be from what was said; None without any."""
    size = len(waits) // PARTS
    if size == 0:
        return None
    means = [statistics.fmean(waits[part * size : (part + 1) * size]) for part in range(PARTS)]
    return max(WAIT_LEAST_S, WAIT_OFF * said + ERRORS * statistics.stdev(means) / math.sqrt(PARTS))


def _mean(values: Sequence[float]) -> float:
    return statistics.fmean(values) if values else 0.0


def _dead_lettered(fleet: Fleet) -> int:
    return sum(run.state == "dead-lettered" for run in fleet.runs)


if __name__ == "__main__":
    sys.exit(main())
