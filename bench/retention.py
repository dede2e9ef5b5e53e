"""How fast what is old enough is removed from a database with much that is not, and how long an exporter starts.

    python bench/retention.py [--submissions 200000] [--old 20000] [--seconds 20]

Each submission has a run, evidence with a graph, a verdict, a delivered answer and six events. Of each kind: rows a
second, and the time of one step, which is one transaction of 200 rows. Compares within one run: the first scrape of an
exporter that reads all events with that of one that goes on from the totals of old ones.
"""

import argparse
import statistics
import time

from prometheus_client import CollectorRegistry, generate_latest
from servers import servers
from warm import percentile

from grader_service.service.event_figures import count_old
from grader_service.service.metrics import StoreCollector
from grader_service.service.retaining import Keeping
from grader_service.store.engine import Store

_AT_ONCE = 200
_DAY_S = 86_400
_ROWS = (
    "insert into submission (submission_id, lab, learner, cohort, received_at, filename, sha256, size_bytes, steps, "
    "content_key, queue) select 's:'||n, 'lab', 'l'||n/20, 'c', {at}, 's.py', md5(n::text)||md5(n::text), 1, '[]', "
    "md5(n::text), 'live' from {n}",
    "insert into run (run_id, submission_id, learner, cohort, purpose, priority, state, plan, fence, attempts, "
    "not_before, created_at) select md5(n::text), 's:'||n, 'l'||n/20, 'c', 'live', 0, 'done', '{{}}', 1, 0, 0, {at} "
    "from {n}",
    "insert into evidence (run_id, fence, kind, sha256, size_bytes, document, created_at) select "
    "md5(n::text), 1, 'measured', md5(n::text)||md5(n::text), 2000, decode(repeat(md5(n::text), 60), 'hex'), {at} "
    "from {n}",
    "insert into blob (sha256, size_bytes, data) select md5(n::text)||md5(n::text), 1, "
    "decode(repeat(md5(n::text), 30), 'hex') from {n}",
    "insert into evidence_blob (run_id, sha256) select md5(n::text), md5(n::text)||md5(n::text) from {n}",
    "insert into verdict (verdict_id, submission_id, run_id, status, mode, code, current, document, summary, "
    "created_at) select md5(n::text), 's:'||n, md5(n::text), 'passed', 'official', 'grade.passed', true, "
    "repeat(md5(n::text), 60), '{{}}', {at} from {n}",
    "insert into outbox (verdict_id, task_id, attempts, not_before, delivered_at) select md5(n::text), 't', 0, 0, {at} "
    "from {n}",
    "insert into event (at, kind, actor, submission_id, run_id, detail) select {at}, kind, 'host/GPU-1/a', 's:'||n, "
    "md5(n::text), '{{}}' from {n}, unnest(array['accepted', 'run_claimed', 'run_done', 'judge_claimed', 'verdict', "
    "'repeated']) kind order by n",
)


def main() -> None:
    """Prints a table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--submissions", type=int, default=200_000)
    parser.add_argument("--old", type=int, default=20_000)
    parser.add_argument("--seconds", type=float, default=20.0, help="at most, of each kind")
    options = parser.parse_args()
    with servers("postgresql") as made:
        store = made.store()
        fill(store, options.submissions, options.old)
        from_all = first_scrape(store)
        started = time.perf_counter()
        counted = sum(iter(lambda: count_old(store), 0))
        print(f"events counted into the totals: {counted / (time.perf_counter() - started):9,.0f} a second")
        from_totals = first_scrape(store)
        print(f"first scrape: {from_all:.2f} s from all events, {from_totals:.2f} s from totals and young ones")
        keeping = Keeping(evidence_days=30, event_days=30, answer_days=30, verdict_days=30)
        for kind, step, days in keeping.steps():
            times, removed, until = [], 0, time.perf_counter() + options.seconds
            while time.perf_counter() < until:
                began = time.perf_counter()
                done = step(store, days, _AT_ONCE)
                times.append(time.perf_counter() - began)
                removed += done
                if done < _AT_ONCE:
                    break
            print(
                f"{kind:>9}: {removed:7,} removed, {removed / sum(times):8,.0f} a second; a step "
                f"p50 {statistics.median(times) * 1e3:6.1f} ms  p95 {percentile(times, 95) * 1e3:6.1f} ms",
                flush=True,
            )
        store.close()


def fill(store: Store, count: int, old: int) -> None:
    """The first ones are 31 days old, the others two."""
    numbers = f"generate_series(1, {count}) n"
    at = f"extract(epoch from now()) - {_DAY_S} * case when n <= {old} then 31 else 2 end + n * 1e-3"
    with store.transaction() as connection:
        connection.exec_driver_sql("set local statement_timeout = 0")
        for statement in _ROWS:
            connection.exec_driver_sql(statement.format(n=numbers, at=at))
    with store.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.exec_driver_sql("analyze")


def first_scrape(store: Store) -> float:
    """Seconds of the first scrape of a new exporter."""
    registry = CollectorRegistry()
    registry.register(StoreCollector(store))
    started = time.perf_counter()
    generate_latest(registry)
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
