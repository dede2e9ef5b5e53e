"""What bulk work costs a learner who waits: the queue wait of live submissions beside a batch, and on an idle service.

    python bench/politeness.py [--submissions 10000] [--blocks 12] [--posts 25] [--workers 2] [--database postgresql]

One judge, one stub runner whose runs take no time, and re-grading workers on a cohort of stored submissions. The batch
is paused and resumed in turn, and in every block of either kind the same number of live submissions is posted, one
after the other's verdict. Their queue wait is the time from the post to the runner's claim, and from the stored
evidence to the judge's claim. Blocks come in pairs of changing order, so that a busy host slows both kinds alike, and
the interval of the ratio is bootstrapped over pairs. A batch that ends meanwhile is followed by another one like it.
"""

import argparse
import contextlib
import json
import random
import statistics
import subprocess
import sys
import time
from pathlib import Path

from celery import Celery
from servers import GRADER, Servers, servers, submission
from sqlalchemy import select

from grader_service.model.regrade import BatchState
from grader_service.signer.signatures import Signer
from grader_service.store import regrade_states, regrades
from grader_service.store.engine import Store
from grader_service.store.tables import EventRow
from tests.regrade.stored import fill

STUB = [sys.executable, str(Path(__file__).with_name("stub_runner.py"))]
ACTOR = "bench"
_SETTLE_S = 1.5
_DRAWS = 4000
Waits = list[tuple[float, float, float]]
"""Seconds of each submission: until the runner's claim, from the evidence to the judge's claim, until its verdict."""


def main() -> None:
    """Prints waits of both kinds, their ratio and its interval."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--submissions", type=int, default=10_000)
    parser.add_argument("--blocks", type=int, default=12, help="of each kind")
    parser.add_argument("--posts", type=int, default=25, help="in each block")
    parser.add_argument("--workers", type=int, default=2, help="each judges on every core")
    parser.add_argument("--database", choices=("postgresql", "sqlite"), default="postgresql")
    options = parser.parse_args()
    with contextlib.ExitStack() as stack:
        made = stack.enter_context(servers(options.database))
        store = made.store()
        fill(store, options.submissions, signer=Signer.from_folder(made.settings().key_dir))
        stack.enter_context(made.process(GRADER, "worker", "judge"))
        stack.enter_context(made.process(*STUB, "0", GRADER_SANDBOX="process", STUB_LONGEST_S="0"))
        for _ in range(options.workers):
            stack.enter_context(made.process(GRADER, "worker", "regrade"))
        platform = Platform(made, store)
        bulk = Bulk(made, store)
        platform.waits(20)  # the children open what they need
        bulk.begin()
        pairs, regraded, busy_s = [], 0, 0.0
        for number in range(options.blocks):
            found: dict[str, Waits] = {}
            for kind in ("idle", "busy") if number % 2 == 0 else ("busy", "idle"):
                bulk.let(running=kind == "busy")
                time.sleep(_SETTLE_S)
                before, began = bulk.done(), time.monotonic()
                found[kind] = platform.waits(options.posts)
                if kind == "busy":
                    regraded, busy_s = regraded + bulk.done() - before, busy_s + time.monotonic() - began
            pairs.append((found["idle"], found["busy"]))
        store.close()
    print(
        f"{options.blocks} pairs of blocks of {options.posts} submissions, {options.database}, {options.workers} "
        f"re-grading workers; beside live submissions they made {regraded / busy_s:.0f} verdicts/s"
    )
    for name, of in (
        ("queue wait", lambda wait: wait[0] + wait[1]),
        ("until the runner's claim", lambda wait: wait[0]),
        ("until the judge's claim", lambda wait: wait[1]),
        ("post to verdict", lambda wait: wait[2]),
    ):
        show(name, [([of(wait) for wait in idle], [of(wait) for wait in busy]) for idle, busy in pairs])


class Platform:
    """Posts live submissions, one after the other's verdict."""

    def __init__(self, made: Servers, store: Store) -> None:
        self._app: Celery = made.app()
        self._results = made.answers().backend
        self._store = store
        self._posted = 0

    def waits(self, count: int) -> Waits:
        """Posts so many and returns how long each waited for what."""
        times = {}
        for _ in range(count):
            self._posted += 1
            submission_id = f"live:{self._posted}"
            times[submission_id] = self._one(submission_id)
            time.sleep(random.uniform(0.0, 0.05))  # not in step with anybody's polling
        happened: dict[str, dict[str, float]] = {submission_id: {} for submission_id in times}
        with self._store.transaction() as connection:
            for row in connection.execute(
                select(EventRow.submission_id, EventRow.kind, EventRow.at).where(EventRow.submission_id.in_(times))
            ):
                happened[row.submission_id][row.kind] = row.at
        found = []
        for submission_id, (posted, answered_s) in times.items():
            at = happened[submission_id]
            found.append((at["run_claimed"] - posted, at["judge_claimed"] - at["run_done"], answered_s))
        return found

    def _one(self, submission_id: str) -> tuple[float, float]:
        message = submission(submission_id, f"# {submission_id}\n", learner=submission_id)
        posted, started = time.time(), time.perf_counter()
        task = self._app.send_task("grader.grade", kwargs={"submission": message}, queue="live")
        key = self._results.get_key_for_task(task.id)
        while self._results.client.get(key) is None:
            if time.perf_counter() - started > 60:
                raise SystemExit("no answer within 60 s")
            time.sleep(0.002)
        return posted, time.perf_counter() - started


class Bulk:
    """A batch over the whole cohort, again and again."""

    def __init__(self, made: Servers, store: Store) -> None:
        self._made = made
        self._store = store
        self._batch_id = ""
        self._before = 0

    def begin(self) -> None:
        """Plans and starts a batch."""
        command = [GRADER, "regrade", "plan", "--cohort", "autumn", "--reason", "politeness", "--json"]
        done = subprocess.run(command, env=self._made.environment, check=True, capture_output=True, text=True)
        self._batch_id = json.loads(done.stdout)["batch_id"]
        regrade_states.start(self._store, self._batch_id, ACTOR)

    def let(self, *, running: bool) -> None:
        """Pauses or resumes it; a batch near its end is exchanged for a new one."""
        now = regrades.progress(self._store, self._batch_id)
        if running and now.done > 0.7 * now.total:
            if now.state is not BatchState.FINISHED:
                regrade_states.cancel(self._store, self._batch_id, ACTOR)
            self._before += now.done
            self.begin()
            return
        if running and now.state is BatchState.PAUSED:
            regrade_states.resume(self._store, self._batch_id, ACTOR)
        if not running and now.state is BatchState.RUNNING:
            regrade_states.pause(self._store, self._batch_id, ACTOR)

    def done(self) -> int:
        """Verdicts so far, of all batches."""
        return self._before + regrades.progress(self._store, self._batch_id).done


def show(name: str, pairs: list[tuple[list[float], list[float]]]) -> None:
    """Prints one row: medians and 95th percentiles of both kinds, and the ratio of the medians with its interval."""
    draw = random.Random(1)
    ratios = sorted(_ratio([draw.choice(pairs) for _ in pairs]) for _ in range(_DRAWS))
    low, high = ratios[int(0.025 * _DRAWS)], ratios[int(0.975 * _DRAWS)]
    idle, busy = ([value for pair in pairs for value in pair[side]] for side in (0, 1))
    print(
        f"{name:26} idle p50 {_ms(idle, 10)} p95 {_ms(idle, 19)} ms   beside a batch p50 {_ms(busy, 10)} "
        f"p95 {_ms(busy, 19)} ms   ratio {_ratio(pairs):.2f} (95 % interval {low:.2f} to {high:.2f})"
    )


def _ratio(pairs: list[tuple[list[float], list[float]]]) -> float:
    idle, busy = (statistics.median(value for pair in pairs for value in pair[side]) for side in (0, 1))
    return busy / idle


def _ms(values: list[float], twentieths: int) -> str:
    return f"{statistics.quantiles(values, n=20)[twentieths - 1] * 1e3:6.1f}"


if __name__ == "__main__":
    main()
