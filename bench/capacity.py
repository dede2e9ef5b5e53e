"""The capacity model of docs/scaling.md, checked by a simulation of a fleet with failures.

    python bench/capacity.py [--submissions 1000000] [--gpus 500] [--load 0.8] [--seed 1] [--price 3.0]

The simulation follows the rules of the service, not its code: live before regrade, one run of a learner at a time, a
claim that ends with its lease when a runner dies, three failures of ours before a run is parked, a device that is put
aside by its steward and comes back after its repair. The durations are those measured (docs/gpu.md), given below as
shares of submissions. It prints what the model says beside what came out, and fails when a submission was lost, got
two verdicts, or a device had two runs.
"""

import argparse
import heapq
import math
import random
import statistics
import sys
import time
from collections import deque
from dataclasses import dataclass, field
from itertools import count

KINDS = (
    # share of submissions, seconds that one holds the GPU: median, and the spread of its logarithm
    ("measured", 0.70, 27.5, 0.10),
    ("fails before it is measured", 0.27, 14.0, 0.25),
    ("hangs until its limit", 0.02, 900.0, 0.0),
    ("rejected before a pod starts", 0.01, 0.2, 0.1),
)
GAP_S = 1.5
"""Between two runs of one device: claim, artifact, containers, removal."""
LEASE_S = 60.0
RETRY_S = 10.0
MAX_ATTEMPTS = 3
CRASH_PER_RUN = 0.001
"""The runner, its engine or its host dies during a run, and comes back."""
RESTART_S = 45.0
XID_PER_RUN = 0.0005
"""A device is put aside."""
REPAIR_S = 1800.0
POISON = 0.0001
"""Submissions whose every run ends the runner."""


@dataclass
class Submission:
    """One of them, and what became of it."""

    learner: int
    came: float
    poison: bool
    attempts: int = 0
    verdicts: int = 0
    parked: bool = False
    waited: float = -1.0


@dataclass
class Fleet:
    """State of the simulation."""

    now: float = 0.0
    events: list[tuple[float, int, str, int, int]] = field(default_factory=list)
    number: "count[int]" = field(default_factory=count)
    queue: deque[int] = field(default_factory=deque)
    behind: dict[int, deque[int]] = field(default_factory=dict)
    free: list[int] = field(default_factory=list)
    busy: dict[int, int] = field(default_factory=dict)
    running: set[int] = field(default_factory=set)
    held_s: float = 0.0
    lost_s: float = 0.0
    down_s: float = 0.0
    crashes: int = 0
    wrong: int = 0

    def at(self, when: float, what: str, who: int, about: int = -1) -> None:
        """Something will happen."""
        heapq.heappush(self.events, (when, next(self.number), what, who, about))


def main() -> int:
    """Prints the table; 1 when a promise was broken."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--submissions", type=int, default=1_000_000)
    parser.add_argument("--gpus", type=int, default=500)
    parser.add_argument("--load", type=float, default=0.8, help="Arrivals as a share of what the model can do.")
    parser.add_argument("--learners", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--price", type=float, default=3.0, help="Of a GPU hour.")
    options = parser.parse_args()
    model = Model(options.gpus)
    rate = options.load * model.per_hour / 3600
    started = time.monotonic()
    fleet, found = simulate(options.submissions, options.gpus, rate, options.learners, options.seed)
    took = time.monotonic() - started
    waits = sorted(one.waited for one in found if one.waited >= 0)
    done = sum(one.verdicts for one in found)
    busy_s = fleet.held_s + fleet.lost_s + GAP_S * done
    poison = sum(one.poison for one in found)
    print(
        f"{options.submissions:,} submissions of {options.learners:,} learners, {options.gpus} GPUs, "
        f"{fleet.now / 3600:.1f} hours of simulated time in {took:.0f} s; {fleet.crashes:,} runners died, "
        f"{poison} submissions ended every runner\n"
    )
    paid = options.price / 3600
    rows: list[tuple[str, float | None, float, int]] = [
        ("GPU seconds per verdict", model.held_s, fleet.held_s / done, 1),
        ("verdicts per GPU and hour, none idle", 3600 * (1 - model.down) / model.service_s,
         done / busy_s * 3600 * (1 - model.down), 1),
        ("share of time that a device is put aside", model.put_aside(rate), fleet.down_s / fleet.now / options.gpus, 4),
        ("wait for a device, mean, s", model.wait_s(rate), statistics.fmean(waits), 2),
        *((f"wait for a device, p{share}, s", None, waits[int(share / 100 * (len(waits) - 1))], 1)
          for share in (50, 95, 99)),
        ("parked for an operator", options.submissions * POISON, sum(one.parked for one in found), 0),
        ("cost per verdict, busy time only", paid * model.service_s, paid * busy_s / done, 4),
        ("cost per verdict, idle time paid too", paid * options.gpus / rate, paid * fleet.now * options.gpus / done, 4),
    ]  # fmt: skip
    print("| | model | simulation |\n| --- | --- | --- |")
    for name, said, came, digits in rows:
        print(f"| {name} | {'' if said is None else f'{said:.{digits}f}'} | {came:.{digits}f} |")
    broken = fleet.wrong + sum(one.verdicts + one.parked != 1 for one in found)
    print(f"\nlost, graded twice, or two on one device: {broken}")
    return 1 if broken else 0


class Model:
    """The closed form: what a fleet can do, and how long one waits for it."""

    def __init__(self, gpus: int) -> None:
        self.gpus = gpus
        first = sum(share * median * math.exp(spread**2 / 2) for _, share, median, spread in KINDS)
        second = sum(share * median**2 * math.exp(2 * spread**2) for _, share, median, spread in KINDS)
        # A run that dies half way costs half of itself and its lease, and comes again.
        lost = CRASH_PER_RUN * (first / 2 + RESTART_S)
        self.held_s = first
        self.service_s = first + GAP_S + lost
        self.variation = second / first**2 - 1
        self.down = XID_PER_RUN * REPAIR_S / (self.service_s + XID_PER_RUN * REPAIR_S)
        self.per_hour = gpus * (1 - self.down) * 3600 / self.service_s

    def put_aside(self, per_s: float) -> float:
        """Share of all device time that is spent in repair at this rate."""
        return per_s * XID_PER_RUN * REPAIR_S / self.gpus

    def wait_s(self, per_s: float) -> float:
        """Mean wait of M/G/c by Allen and Cunneen: Erlang's C times (1 + variation) / 2."""
        servers = self.gpus * (1 - self.put_aside(per_s))
        load = per_s * self.service_s
        c = max(1, round(servers))
        inverse = 1.0  # Erlang's B by its recurrence
        for k in range(1, c + 1):
            inverse = 1.0 + inverse * k / load
        blocked = 1.0 / inverse
        waits = blocked / (1 - (load / c) * (1 - blocked))
        return waits * self.service_s / (c - load) * (1 + self.variation) / 2


def simulate(submissions: int, gpus: int, per_s: float, learners: int, seed: int) -> tuple[Fleet, list[Submission]]:
    """Runs it until each submission has its verdict or is parked."""
    chance = random.Random(seed)
    fleet = Fleet()
    fleet.free = list(range(gpus))
    found: list[Submission] = []
    fleet.at(chance.expovariate(per_s), "arrive", 0)
    shares, total = [], 0.0
    for _, share, _, _ in KINDS:
        total += share
        shares.append(total)
    while fleet.events:
        fleet.now, _, what, who, about = heapq.heappop(fleet.events)
        if what == "arrive":
            found.append(Submission(chance.randrange(learners), fleet.now, chance.random() < POISON))
            _queue(fleet, found, who)
            if who + 1 < submissions:
                fleet.at(fleet.now + chance.expovariate(per_s), "arrive", who + 1)
        elif what == "again":
            fleet.queue.append(who)
        elif what == "done":
            _finish(fleet, found, who, about, chance)
        elif what == "free":
            fleet.free.append(who)
        elif what == "lease_over":
            fleet.running.discard(about)
            one = found[about]
            if one.attempts >= MAX_ATTEMPTS:
                one.parked = True
                _next_of(fleet, found, about)
            else:
                fleet.at(fleet.now + RETRY_S, "again", about)
        while fleet.queue and fleet.free:
            _start(fleet, found, chance, shares)
    return fleet, found


def _queue(fleet: Fleet, found: list[Submission], number: int) -> None:
    waiting = fleet.behind.get(found[number].learner)
    if waiting is None:
        fleet.behind[found[number].learner] = deque()
        fleet.queue.append(number)
    else:
        waiting.append(number)


def _next_of(fleet: Fleet, found: list[Submission], number: int) -> None:
    """The learner's next one may run."""
    waiting = fleet.behind[found[number].learner]
    if waiting:
        fleet.queue.append(waiting.popleft())
    else:
        del fleet.behind[found[number].learner]


def _start(fleet: Fleet, found: list[Submission], chance: random.Random, shares: list[float]) -> None:
    device, number = fleet.free.pop(), fleet.queue.popleft()
    one = found[number]
    fleet.wrong += device in fleet.busy or number in fleet.running
    fleet.busy[device] = number
    fleet.running.add(number)
    if one.attempts == 0:
        one.waited = fleet.now - one.came
    one.attempts += 1
    drawn = chance.random()
    kind = next((number for number, share in enumerate(shares) if drawn < share), len(shares) - 1)
    _, _, median, spread = KINDS[kind]
    seconds = median * math.exp(chance.gauss(0, spread)) if spread else median
    if one.poison or chance.random() < CRASH_PER_RUN:
        part = seconds * chance.random()
        fleet.crashes += 1
        fleet.lost_s += part + RESTART_S
        del fleet.busy[device]
        fleet.at(fleet.now + part + RESTART_S, "free", device)
        # The last renewal was at most a third of a lease before.
        fleet.at(fleet.now + part + LEASE_S * (2 / 3 + chance.random() / 3), "lease_over", device, number)
    else:
        fleet.held_s += seconds
        fleet.at(fleet.now + seconds + GAP_S, "done", device, number)


def _finish(fleet: Fleet, found: list[Submission], device: int, number: int, chance: random.Random) -> None:
    fleet.wrong += fleet.busy.pop(device) != number
    fleet.running.discard(number)
    found[number].verdicts += 1
    _next_of(fleet, found, number)
    if chance.random() < XID_PER_RUN:
        fleet.down_s += REPAIR_S
        fleet.at(fleet.now + REPAIR_S, "free", device)
    else:
        fleet.free.append(device)


if __name__ == "__main__":
    sys.exit(main())
