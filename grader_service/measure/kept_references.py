"""Our fair reference's rate on this host, measured between runs: while no learner's code is here to disturb it.

A first attempt that passes by the two-block bound needs no windows of the reference; any other outcome is measured in
full. A rate is kept for minutes, for one job in one image on one CPU set, by the process that measured it: what another
host, driver or release would change ends with that process.
"""

import json
import math
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace

import structlog

from grader_service.errors import InfrastructureError
from grader_service.measure.reference_run import ReferenceTask, TimedReference
from grader_service.model.measurement import KeptReference, LoaderSettings
from grader_service.retry_policy import REFERENCES

log = structlog.get_logger(__name__)

LEAST_LEARNERS = 2
"""A job that one learner had is his own; one that two had may be the cohort's."""
_MOST_JOBS = 4
_REMEMBERED_S = 6 * 3600.0
"""A job that no run had for so long is not measured any more."""
_SIZE_TOLERANCE = 0.1
"""How far the mean number of pixels of an image may lie from that of the run, as a share."""
_LEAST_SHARE = 0.7
"""Of the best rate that a run of this job saw of the same loader: what is slower than that was disturbed.

Noise alone stays above it; and what stays above it makes a ratio at most 1.43 times as large, where the two-block
bound has a margin of 2 or more.
"""
_MOST_RATES = 16
WORK = ("turn", "colour", "blur")
"""What a reference does to a share of the images only."""

Timing = Callable[[ReferenceTask], TimedReference | None]


@dataclass(frozen=True)
class JobKey:
    """What must be equal for a rate to speak of a job."""

    image_digest: str | None
    plan: str
    """As `comparable` writes it."""
    settings: LoaderSettings
    cpus: tuple[int, ...]
    block_s: float


def comparable(plan: Mapping[str, object]) -> str:
    """The plan of a job in a form that is equal for equal plans.

    How much of its work a graph does is counted on a few images, so it counts here in quarters.
    """
    job = {**plan, **{work: round(4 * float(str(plan.get(work, 0)))) / 4 for work in WORK}}
    return json.dumps(job, sort_keys=True)


@dataclass
class _Job:
    task: ReferenceTask
    learners: set[str] = field(default_factory=set)
    """The first that had it, `LEAST_LEARNERS` at most."""
    in_runs: deque[tuple[float, float]] = field(default_factory=lambda: deque(maxlen=_MOST_RATES))
    """Mean number of pixels of an image, and the rate, where a run timed the same loader beside its own blocks."""
    timed: TimedReference | None = None
    measured_at: float = -math.inf
    failures: int = 0
    seen_at: float = -math.inf


@dataclass
class KeptReferences:
    """The rates of one worker; use it from one thread at a time."""

    time_it: Timing
    fresh_s: float
    """How old a rate may be when it is used."""
    quiet: Callable[[], AbstractContextManager[None]] = nullcontext
    """Keeps runs from being prepared while a rate is taken."""
    clock: Callable[[], float] = time.monotonic
    _jobs: dict[JobKey, _Job] = field(default_factory=dict)

    def saw(
        self, key: JobKey, task: ReferenceTask, submitter: str, mean_pixels: float, rate: float | None = None
    ) -> None:
        """A run of this job was timed; jobs that no run had lately make room.

        Args:
            mean_pixels: of the run's images.
            rate: of the same loader in that run, images/s, where it was timed there.
        """
        job = self._jobs.pop(key, None) or _Job(task)
        job.task, job.seen_at = task, self.clock()
        if len(job.learners) < LEAST_LEARNERS:
            job.learners.add(submitter)
        if rate is not None:
            job.in_runs.append((mean_pixels, rate))
        self._jobs[key] = job
        while len(self._jobs) > _MOST_JOBS:
            del self._jobs[next(iter(self._jobs))]

    def rate(self, key: JobKey, mean_pixels: float) -> KeptReference | None:
        """The rate for a job on images of this size; None where none is fresh."""
        job = self._jobs.get(key)
        if job is None or job.timed is None:
            return None
        age_s = self.clock() - job.measured_at
        if age_s > self.fresh_s or not _alike(mean_pixels, job.timed.mean_pixels):
            return None
        # The fastest window: whatever slowed another one down must not make a graph look better.
        windows = job.timed.windows
        fastest = max(window.images_per_s for window in windows)
        best = max((rate for pixels, rate in job.in_runs if _alike(pixels, job.timed.mean_pixels)), default=0.0)
        if fastest < _LEAST_SHARE * best:
            log.warning("reference_doubted", images_per_s=round(fastest, 1), in_a_run=round(best, 1))
            return None
        return KeptReference(images_per_s=fastest, settings=key.settings, windows=len(windows), age_s=round(age_s, 1))

    def due(self) -> bool:
        """Whether `refresh` would measure."""
        return self._due() is not None

    def refresh(self) -> bool:
        """Measures the job that runs had last, when its rate is half as old as it may get; whether it did.

        Call it while no run is open. What fails on our side is logged: the next run measures everything itself.
        """
        job = self._due()
        if job is None:
            return False
        job.measured_at, job.timed = self.clock(), None  # a failure too is not repeated at once
        before = job.failures
        job.failures += 1  # until it is known better: whatever is raised here counts
        try:
            with self.quiet():
                job.timed = self.time_it(job.task)
        except InfrastructureError as error:
            log.warning("reference_not_measured", error=str(error)[:300], failures=job.failures)
            return True
        if job.timed is None:
            job.failures = before
            log.info("reference_contaminated")
            return True
        job.measured_at, job.failures = self.clock(), 0
        fastest = max(window.images_per_s for window in job.timed.windows)
        log.info("reference_measured", images_per_s=round(fastest, 1))
        return True

    def _due(self) -> _Job | None:
        """The job that a run had last, of those that want measuring and that some run had lately."""
        now = self.clock()
        policy = replace(REFERENCES, delay_s=self.fresh_s / 2)  # a rate that grew old is the first failure
        due = [
            job
            for job in self._jobs.values()
            if len(job.learners) >= LEAST_LEARNERS
            and now - job.measured_at > policy.wait_s(job.failures + 1)
            and now - job.seen_at < _REMEMBERED_S
        ]
        return max(due, key=lambda job: job.seen_at, default=None)


def _alike(pixels: float, others: float) -> bool:
    return abs(pixels / others - 1) <= _SIZE_TOLERANCE
