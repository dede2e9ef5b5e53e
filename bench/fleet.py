"""A fleet of GPUs in simulated time: the rules of the service, with runners that die and runners that stall.

Used by bench/capacity.py. Live before regrade, then the oldest; one run of a learner at a time; a claim that ends with
its lease; after an infrastructure failure a run is tried again in its old place of the queue, and the third one
dead-letters it; a result counts only while its claim holds; a device that its steward takes out of service comes back
after its repair. The durations are those measured (docs/gpu.md), as shares of submissions.
"""

import heapq
import math
import random
from collections.abc import Callable
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
SWEEP_S = 5.0
"""Between two looks for leases that ended, and between two releases of a batch's items."""
RETRY_S = 10.0
MAX_FAILURES = 3
CRASH_PER_RUN = 0.001
"""The runner, its engine or its host dies during a run, and comes back."""
RESTART_S = 45.0
STALL_PER_RUN = 0.0005
"""The runner stands still for longer than its lease, wakes, and hands in what it found."""
STALL_S = LEASE_S + SWEEP_S
STALL_MORE_S = 120.0
"""At least so long, and on the average so much longer."""
XID_PER_RUN = 0.0005
"""A device is taken out of service."""
REPAIR_S = 1800.0
POISON = 0.0001
"""Submissions whose every run ends the runner."""
PER_DEVICE = 2
"""Runs of a batch under way for each device: one that runs, and one that waits."""
LIVE, REGRADE = 0, 9


@dataclass(slots=True)
class Run:
    """One submission, or one item of a re-grade, and what became of it."""

    learner: int
    priority: int
    came: float
    kind: int
    poison: bool
    state: str = "queued"
    fence: int = 0
    failures: int = 0
    verdicts: int = 0
    claimable: float = 0.0
    """Since when nothing but a device is missing."""
    device_wait: float = -1.0
    learner_wait: float = 0.0
    beside_batch: bool = False


class Audit:
    """Sees what happens, knows nothing of how the fleet chooses, and counts what must not be."""

    def __init__(self, gpus: int, learners: int) -> None:
        self.broken: dict[str, int] = dict.fromkeys(
            ("two on one device", "two of one learner", "regrade before live", "stale result taken"), 0
        )
        self._until = [0.0] * gpus
        self._waiting = [0] * learners
        self._open = [0] * learners
        self._able = 0
        """Learners of whom a live submission could run now."""

    def queued(self, run: Run) -> None:
        """It may be claimed from now on."""
        if run.priority == LIVE:
            self._change(run.learner, waiting=1)

    def claimed(self, run: Run, device: int, now: float, until: float) -> None:
        """It runs, and keeps the device until then."""
        self.broken["regrade before live"] += run.priority != LIVE and self._able > 0
        self.broken["two on one device"] += now < self._until[device]
        self.broken["two of one learner"] += self._open[run.learner] > 0
        self._until[device] = until
        self._change(run.learner, waiting=-(run.priority == LIVE), opened=1)

    def left(self, run: Run) -> None:
        """Nobody holds its claim any more."""
        self._change(run.learner, opened=-1)

    def taken(self, fence: int, latest: int, *, lapsed: bool) -> None:
        """A result was stored that was found under this fence."""
        self.broken["stale result taken"] += lapsed or fence != latest

    def _change(self, learner: int, waiting: int = 0, opened: int = 0) -> None:
        before = self._waiting[learner] > 0 and not self._open[learner]
        self._waiting[learner] += waiting
        self._open[learner] += opened
        self._able += (self._waiting[learner] > 0 and not self._open[learner]) - before


@dataclass
class Fleet:
    """The simulation: events in order of time, and the state that they change."""

    gpus: int
    per_s: float
    submissions: int
    learners: int
    regrades: int
    seed: int
    fenced: bool = True
    """Whether a result counts only while its claim holds; False shows that the audit sees it."""
    now: float = 0.0
    runs: list[Run] = field(default_factory=list)
    last_came: float = 0.0
    """When the last submission came: what follows is a fleet that runs dry."""
    done_till_then: int = 0
    held_s: float = 0.0
    """Device time of the runs that brought a verdict."""
    busy_s: float = 0.0
    """That, with gaps, dead and stalled runners."""
    repairs: list[float] = field(default_factory=list)
    crashes: int = 0
    stalls: int = 0
    refused: int = 0
    """Results that came after their claim had ended."""

    def __post_init__(self) -> None:
        self.audit = Audit(self.gpus, self.learners)
        self._chance = random.Random(self.seed)
        self._events: list[tuple[float, int, Callable[..., None], tuple[int, ...]]] = []
        self._number = count()
        self._queue: list[tuple[int, float, int]] = []
        self._behind: dict[int, list[tuple[int, float, int]]] = {}
        self._free = list(range(self.gpus))
        self._running: set[int] = set()
        self._freed: dict[int, float] = {}
        self._came = self._open_items = 0
        self._items_left = self.regrades

    def play(self) -> None:
        """Until each submission and each item of the batch has its verdict or is dead-lettered."""
        self._at(self._chance.expovariate(self.per_s), self._arrive)
        # After a quarter of the submissions: both a fleet without a batch and one beside it are seen.
        self._at(self.submissions / 4 / self.per_s, self._release)
        while self._events:
            self.now, _, happens, about = heapq.heappop(self._events)
            happens(*about)
            while self._queue and self._free:
                self._claim()

    def out_of_service_s(self) -> float:
        """Device time in repair until the last submission came."""
        return sum(max(0.0, min(REPAIR_S, self.last_came - since)) for since in self.repairs)

    def _at(self, when: float, happens: Callable[..., None], *about: int) -> None:
        heapq.heappush(self._events, (when, next(self._number), happens, about))

    def _arrive(self) -> None:
        self._came += 1
        self._new(LIVE, poison=self._chance.random() < POISON)
        self.last_came = self.now
        if self._came < self.submissions:
            self._at(self.now + self._chance.expovariate(self.per_s), self._arrive)

    def _release(self) -> None:
        """As many items of the batch become runs as keep a few under way for each device."""
        fresh = min(self._items_left, PER_DEVICE * self.gpus - self._open_items)
        self._items_left -= fresh
        self._open_items += fresh
        for _ in range(fresh):
            self._new(REGRADE, poison=False)
        if self._open_items:
            self._at(self.now + SWEEP_S, self._release)

    def _new(self, priority: int, *, poison: bool) -> None:
        drawn, kind = self._chance.random(), 0
        while kind < len(KINDS) - 1 and drawn >= KINDS[kind][1]:
            drawn -= KINDS[kind][1]
            kind += 1
        learner = int(self._chance.random() * self.learners)
        self.runs.append(Run(learner, priority, self.now, kind, poison))
        self._queued(len(self.runs) - 1)

    def _queued(self, number: int) -> None:
        run = self.runs[number]
        run.state = "queued"
        run.claimable = self.now
        self.audit.queued(run)
        heapq.heappush(self._queue, (run.priority, run.came, number))

    def _claim(self) -> None:
        """The first in the queue starts, or steps back when its learner has a run already."""
        first = heapq.heappop(self._queue)
        number = first[2]
        run = self.runs[number]
        if run.learner in self._running:
            heapq.heappush(self._behind.setdefault(run.learner, []), first)
            return
        device = self._free.pop()
        run.state = "running"
        run.fence += 1
        self._running.add(run.learner)
        if run.fence == 1:
            since = max(run.claimable, self._freed.get(run.learner, 0.0))
            run.device_wait = self.now - since
            run.learner_wait = since - run.came
            run.beside_batch = self._open_items > PER_DEVICE * self.gpus // 2
        busy_s, afterwards = self._lot(run, number)
        self.busy_s += busy_s
        self.audit.claimed(run, device, self.now, self.now + busy_s)
        self._at(self.now + busy_s, afterwards, device)

    def _lot(self, run: Run, number: int) -> tuple[float, Callable[[int], None]]:
        """What happens to the run: for how long it keeps its device, and what becomes of the device then."""
        _, _, median, spread = KINDS[run.kind]
        chance = self._chance
        seconds = median * math.exp(chance.gauss(0, spread)) if spread else median
        lot = chance.random()
        # The last renewal was at most a third of a lease before; somebody looks every few seconds.
        lapse_s = LEASE_S * (2 / 3 + chance.random() / 3) + SWEEP_S * chance.random()
        if run.poison or lot < CRASH_PER_RUN:
            part = seconds * chance.random()
            self.crashes += 1
            self._at(self.now + part + lapse_s, self._lapse, number, run.fence)
            return part + RESTART_S, self._back
        if lot < CRASH_PER_RUN + STALL_PER_RUN:
            stalled = STALL_S + chance.expovariate(1 / STALL_MORE_S)
            self.stalls += 1
            self._at(self.now + seconds * chance.random() + lapse_s, self._lapse, number, run.fence)
            # A real one would be stopped at its next renewal; this one hands its result in, which is worse.
            self._at(self.now + seconds + stalled, self._result, number, run.fence)
            return seconds + stalled + GAP_S, self._back
        self._at(self.now + seconds, self._result, number, run.fence)
        self.held_s += seconds
        return seconds + GAP_S, self._over

    def _result(self, number: int, fence: int) -> None:
        """Somebody hands in what it found under this fence."""
        run = self.runs[number]
        holds = run.state == "running" and run.fence == fence
        if self.fenced and not holds:
            self.refused += 1
            return
        self.audit.taken(fence, run.fence, lapsed=not holds)
        run.verdicts += 1
        self.done_till_then += self._came < self.submissions
        if holds:
            self._leave(number, "done")

    def _lapse(self, number: int, fence: int) -> None:
        """The lease is over: tried again after a while, or dead-lettered."""
        run = self.runs[number]
        if run.state != "running" or run.fence != fence:
            return
        run.failures += 1
        dead_lettered = run.failures >= MAX_FAILURES
        self._leave(number, "dead-lettered" if dead_lettered else "failed")
        if not dead_lettered:
            self._at(self.now + RETRY_S, self._queued, number)

    def _leave(self, number: int, state: str) -> None:
        """The claim ends; the next one of the learner may run."""
        run = self.runs[number]
        run.state = state
        self._running.discard(run.learner)
        self._freed[run.learner] = self.now
        self.audit.left(run)
        self._open_items -= run.priority == REGRADE and state != "failed"
        if waiting := self._behind.get(run.learner):
            heapq.heappush(self._queue, heapq.heappop(waiting))
            if not waiting:
                del self._behind[run.learner]

    def _over(self, device: int) -> None:
        """A run ended in order; its steward may take the device out of service."""
        if self._chance.random() < XID_PER_RUN:
            self.repairs.append(self.now)
            self._at(self.now + REPAIR_S, self._back, device)
        else:
            self._back(device)

    def _back(self, device: int) -> None:
        self._free.append(device)
