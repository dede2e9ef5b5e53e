"""How long a claim takes with many runs waiting, for one worker and for several at once.

    python bench/claim.py [--queued 100000] [--claims 500] [--cohorts 50] [--each 20] [--database postgresql|sqlite]

Runs of two queues, of as many cohorts as told, and as many of each learner. Compares within one run: the same claims
with few runs waiting. Percentiles of the time of one `claim` call.
"""

import argparse
import statistics
import time
from concurrent.futures import ThreadPoolExecutor

from servers import servers
from warm import percentile

from grader_service.model.evidence import Need, RunPlan
from grader_service.model.lab import LabRef
from grader_service.model.submission import Submission
from grader_service.store import leases, results
from grader_service.store.acceptance import Arrival, IntakeLimits, accept_all
from grader_service.store.engine import Store
from grader_service.store.outbox import Waiter

LIMITS = IntakeLimits(max_queued=10_000_000, learner_per_hour=10_000_000)
PLAN = RunPlan(needs=(Need.DISCOVERY,), lab=LabRef(sha256="0" * 64, form="toml"))


def main() -> None:
    """Prints a table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--queued", type=int, default=100_000)
    parser.add_argument("--claims", type=int, default=500)
    parser.add_argument("--cohorts", type=int, default=50)
    parser.add_argument("--each", type=int, default=20, help="runs of each learner")
    parser.add_argument("--database", choices=("postgresql", "sqlite"), default="postgresql")
    options = parser.parse_args()
    with servers(options.database) as made:
        store = made.store()
        queued = 0
        for target in (options.claims + 100, options.queued):
            fill(store, queued, target - queued, options.cohorts, options.each)
            queued = target
            for workers in (1, 4):
                times = claims(store, options.claims // 2, workers)
                queued -= len(times)
                print(
                    f"{options.database}, {queued + len(times):7,} waiting, {workers} worker(s): "
                    f"p50 {statistics.median(times) * 1e3:6.2f} ms  p95 {percentile(times, 95) * 1e3:6.2f} ms  "
                    f"p99 {percentile(times, 99) * 1e3:6.2f} ms",
                    flush=True,
                )
        store.close()


def fill(store: Store, first: int, count: int, cohorts: int, each: int) -> None:
    """Queues runs, half of them `regrade`."""
    for start in range(first, first + count, 1000):
        arrivals = [
            Arrival(
                Submission(
                    submission_id=f"b:{time.monotonic_ns()}:{number}",
                    lab="dali-pipelines",
                    learner=f"l{number // each}",
                    cohort=f"c{number // each % cohorts}",
                    filename="s.py",
                    sha256="0" * 64,
                    size_bytes=1,
                ),
                PLAN,
                "live" if number % 2 else "regrade",
                Waiter(),
            )
            for number in range(start, min(start + 1000, first + count))
        ]
        accept_all(store, arrivals, LIMITS, "bench")


def claims(store: Store, count: int, workers: int) -> list[float]:
    """Seconds of each claim; what is claimed is finished outside the measured time."""

    def work(number: int) -> list[float]:
        times = []
        for _ in range(count // workers):
            started = time.perf_counter()
            claim = leases.claim(store, "run", f"bench/{number}", 60.0)
            times.append(time.perf_counter() - started)
            assert claim is not None
            results.store_evidence(store, claim, "evidence", b"{}", {})
        return times

    with ThreadPoolExecutor(workers) as pool:
        return [seconds for times in pool.map(work, range(workers)) for seconds in times]


if __name__ == "__main__":
    main()
