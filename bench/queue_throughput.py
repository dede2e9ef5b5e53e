"""Queue throughput beside plain Celery: submissions a second through the whole service, when the grading is nothing.

    python bench/queue_throughput.py [--rounds 12] [--submissions 250] [--figure docs/figures/queue_throughput.svg]

Each is posted by a Celery client, accepted in PostgreSQL by the judge's intake, run by a stub runner, judged, signed,
and answered on the platform's reply queue, which lies in the Redis of the answers. Beside it, wholly in the broker's
Redis, with as many workers and children, posted and awaited by the same code: a plain Celery chain of as many hops that
do nothing, and the same chain with one durable row for each hop, in the same PostgreSQL. The three play in every round,
in an order that changes; a round counts from the first post to the last answer, and whoever does not play has nothing
in hand.

Exit status 1, without a table, when a submission did not get exactly one verdict of the stub's, signed, in force and
answered; or when a chain lost or repeated something.
"""

import argparse
import base64
import contextlib
import itertools
import json
import os
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import plain_worker
import psutil
from redis import Redis
from regrade import families, processor_s
from servers import GRADER, Servers, servers, submission
from sqlalchemy import func, select
from warm import interval

from grader_service.signer.signatures import Signer, signed_by
from grader_service.store.engine import Store
from grader_service.store.tables import EventRow, OutboxRow, RunRow, RunState, VerdictRow

HERE = Path(__file__).parent
REPLIES = "platform.replies"
EXPECTED = ("rejected", "bench.stub")
"""Status and code of what the stub runner answers."""
_PATIENCE_S = 60.0
_SETTLE_S = 0.3
_WARM_UP = 30

Answers = list[tuple[list[Any], dict[str, Any]]]
"""Positional and keyword arguments of each message that the platform got."""


@dataclass
class Contestant:
    """One way from a post to an answer."""

    redis: Redis
    queue: str
    """Where answers come."""
    post: Callable[[str], None]
    wrong: Callable[[list[str], Answers], list[str]]
    """What is wrong at the end of a round with these submissions and answers."""
    pids: dict[str, int]
    """Its own worker processes."""
    rates: list[float] = field(default_factory=list)
    cpu_s: Counter[str] = field(default_factory=Counter)
    """Processor time of each family of processes, over all of its rounds."""

    def play(self, ids: Sequence[str]) -> tuple[float, Answers]:
        """Posts all, waits for as many answers; submissions a second."""
        began = time.perf_counter()
        for submission_id in ids:
            self.post(submission_id)
        raw: list[bytes] = []
        while len(raw) < len(ids) and (got := self.redis.blpop([self.queue], _PATIENCE_S)) is not None:
            raw.append(got[1])
        seconds = time.perf_counter() - began
        time.sleep(_SETTLE_S)  # whatever comes twice has come now
        raw += self.redis.lpop(self.queue, len(ids)) or []
        return len(ids) / seconds, [opened(one) for one in raw]


def main() -> int:
    """Plays the rounds and prints the tables; says what is wrong, if anything is."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--submissions", type=int, default=250, help="in each round, of each contestant")
    parser.add_argument("--figure", type=Path)
    options = parser.parse_args()
    with contextlib.ExitStack() as stack:
        made = stack.enter_context(servers("postgresql"))
        store = made.store()
        stack.callback(store.close)
        contestants = enter(stack, made, store)
        redis = [psutil.Process(server.process.pid) for server in (made.redis, made.results)]
        roots = {"PostgreSQL": families(made, [])["database"], "Redis": redis}
        for name, one in contestants.items():
            if wrong := turn(name, one, "warm-up", _WARM_UP, roots):
                return told(wrong)
        for one in contestants.values():
            one.rates.clear()
            one.cpu_s.clear()
        orders = list(itertools.permutations(contestants))
        for number in range(options.rounds):
            for name in orders[number % len(orders)]:
                if wrong := turn(name, contestants[name], str(number), options.submissions, roots):
                    return told(wrong)
            sys.stderr.write(f"\rround {number + 1} of {options.rounds}")
        sys.stderr.write("\n")
    table(contestants, options.submissions)
    if options.figure is not None:
        draw({name: one.rates for name, one in contestants.items()}, options.figure)
    return 0


def enter(stack: contextlib.ExitStack, made: Servers, store: Store) -> dict[str, Contestant]:
    """Starts every worker. Each contestant has two with one child each: intake and judging, and running."""
    judge = stack.enter_context(made.process(GRADER, "worker", "judge"))
    stub = [sys.executable, str(HERE / "stub_runner.py"), "0"]
    runner = stack.enter_context(made.process(*stub, GRADER_SANDBOX="process", STUB_LONGEST_S="0"))
    app, plain = made.app(), plain_worker.make_app(made.redis.url)
    sends = stack.enter_context(app.producer_pool.acquire(block=True))
    reply = {"queue": REPLIES, "task": "platform.graded"}

    def post(submission_id: str) -> None:
        message = submission(submission_id, f"# {submission_id}\n", learner=submission_id, reply_to=reply)
        arguments = {"submission": message}
        app.send_task("grader.grade", kwargs=arguments, queue="live", producer=sends, ignore_result=True)

    public_key = Signer.from_folder(made.settings().key_dir).public_key
    found = {
        "ours": Contestant(
            made.answers().backend.client,
            REPLIES,
            post,
            lambda ids, answers: wrong_of_ours(store, public_key, ids, answers),
            {"judge": judge.pid, "runner": runner.pid},
        )
    }
    command = [sys.executable, str(HERE / "plain_worker.py")]
    first, second, third = plain_worker.HOPS
    outer = stack.enter_context(made.process(*command, first, third))
    inner = stack.enter_context(made.process(*command, second))
    plain_sends = stack.enter_context(plain.producer_pool.acquire(block=True))
    for name, task, rows in (("plain", "plain.nothing", 0), ("plain + rows", "plain.row", len(plain_worker.HOPS))):

        def post_plain(submission_id: str, task: str = task) -> None:
            message = submission(submission_id, f"# {submission_id}\n", learner=submission_id)
            plain_worker.through(plain, task, message).apply_async(producer=plain_sends)

        found[name] = Contestant(
            plain.backend.client,
            plain_worker.REPLIES,
            post_plain,
            lambda ids, answers, rows=rows: wrong_of_plain(store, rows, ids, answers),
            {"first and third hop": outer.pid, "second hop": inner.pid},
        )
    return found


def turn(name: str, one: Contestant, number: str, count: int, shared: dict[str, list[psutil.Process]]) -> list[str]:
    """One contestant's part of a round; returns what is wrong."""
    roots = {worker: [psutil.Process(pid)] for worker, pid in one.pids.items()} | shared
    before, own = {family: processor_s(found) for family, found in roots.items()}, time.process_time()
    ids = [f"{name.replace(' ', '')}:{number}:{each}" for each in range(count)]
    rate, answers = one.play(ids)
    one.rates.append(rate)
    one.cpu_s.update({family: processor_s(found) - before[family] for family, found in roots.items()})
    one.cpu_s["client"] += time.process_time() - own
    return [f"{name}, round {number}: {problem}" for problem in one.wrong(ids, answers)]


def opened(raw: bytes) -> tuple[list[Any], dict[str, Any]]:
    """The arguments of a Celery message."""
    args, kwargs, _ = json.loads(base64.b64decode(json.loads(raw)["body"]))
    return args, kwargs


def not_once(ids: list[str], seen: Sequence[str], what: str) -> list[str]:
    """Submissions that do not stand there exactly once."""
    counts = Counter(seen)
    other = [f"{submission_id} × {counts[submission_id]}" for submission_id in ids if counts[submission_id] != 1]
    strange = [submission_id for submission_id in counts if submission_id not in set(ids)]
    return [f"{what} not exactly once: {(other + strange)[:5]} and {len(other + strange)} in all"] * bool(
        other + strange
    )


def wrong_of_ours(store: Store, public_key: str, ids: list[str], answers: Answers) -> list[str]:
    """Every submission has one verdict as expected, in force, signed and answered once; nothing is open."""
    deadline = time.monotonic() + _PATIENCE_S
    undelivered_messages = select(func.count()).select_from(OutboxRow).where(OutboxRow.delivered_at.is_(None))
    verdicts = select(VerdictRow.submission_id, VerdictRow.status, VerdictRow.code, VerdictRow.current)
    with store.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        while connection.execute(undelivered_messages).scalar_one() and time.monotonic() < deadline:
            time.sleep(0.05)
        undelivered = connection.execute(undelivered_messages).scalar_one()
        rows = connection.execute(verdicts.where(VerdictRow.submission_id.in_(ids))).all()
        unfinished = connection.execute(
            select(func.count()).select_from(RunRow).where(RunRow.state != RunState.DONE.value)
        ).scalar_one()
    documents = [kwargs["verdict"] for _, kwargs in answers]
    wrong = not_once(ids, [row.submission_id for row in rows], "verdicts")
    wrong += not_once(ids, [document["submission_id"] for document in documents], "answers")
    seen = [tuple(row) for row in rows]
    seen += [(document["submission_id"], document["status"], document["code"], True) for document in documents]
    if unlike := sorted({one for one in seen if one[1:] != (*EXPECTED, True)}):
        wrong.append(f"not {EXPECTED} in force: {unlike[:5]} and {len(unlike)} in all")
    if unsigned := [document["submission_id"] for document in documents if signed_by(document) != public_key]:
        wrong.append(f"not signed by this service: {unsigned[:5]} and {len(unsigned)} in all")
    if undelivered or unfinished:
        wrong.append(f"{undelivered} answers not delivered, {unfinished} runs not done")
    return wrong


def wrong_of_plain(store: Store, rows: int, ids: list[str], answers: Answers) -> list[str]:
    """Every chain was answered once and left its rows."""
    written = select(EventRow.submission_id).where(EventRow.kind == plain_worker.EVENT, EventRow.submission_id.in_(ids))
    with store.transaction() as connection:
        found = Counter(connection.execute(written).scalars())
    wrong = not_once(ids, [str(args[0]) for args, _ in answers], "answers")
    if short := [submission_id for submission_id in ids if found[submission_id] != rows]:
        wrong.append(f"without their {rows} rows: {short[:5]} and {len(short)} in all")
    return wrong


def told(wrong: list[str]) -> int:
    """Says it; returns the exit status."""
    print("\n".join(wrong))
    return 1


def table(contestants: dict[str, Contestant], count: int) -> None:
    """Every round, medians with their intervals, ratios, and where the processor time went."""
    ours = contestants["ours"].rates
    others = {name: one.rates for name, one in contestants.items() if name != "ours"}
    print(f"submissions a second, {count} of each a round")
    print("| round | " + " | ".join(contestants) + " | " + " | ".join(f"ours / {name}" for name in others) + " |")
    print("| --- |" + " --- |" * (len(contestants) + len(others)))
    for number, own in enumerate(ours):
        rates = " | ".join(f"{one.rates[number]:.1f}" for one in contestants.values())
        print(f"| {number + 1} | {rates} | {' | '.join(f'{own / of[number]:.3f}' for of in others.values())} |")
    for name, one in contestants.items():
        low, high = interval(one.rates)
        print(f"{name:<20} median {statistics.median(one.rates):7.1f}/s (95 % interval {low:.1f} to {high:.1f})")
    for name, of in others.items():
        ratios = [own / other for own, other in zip(ours, of, strict=True)]
        low, high = interval(ratios)
        median = statistics.median(ratios)
        print(f"{'ours / ' + name:<20} median {median:7.3f}   (95 % interval {low:.3f} to {high:.3f})")
    for name, one in contestants.items():
        each = {family: seconds / len(one.rates) / count * 1e3 for family, seconds in one.cpu_s.items()}
        parts = ", ".join(f"{family} {ms:.2f}" for family, ms in each.items())
        print(f"processor time of one, {name}: {sum(each.values()):.2f} ms ({parts}); {os.cpu_count()} cores")


def draw(rates: dict[str, list[float]], path: Path) -> None:
    """Every round as a dot, medians as lines."""
    import matplotlib as mpl  # noqa: PLC0415 - only where a figure is asked for
    from matplotlib.figure import Figure  # noqa: PLC0415

    with mpl.rc_context({"svg.hashsalt": "queue_throughput", "svg.fonttype": "none", "font.family": "sans-serif"}):
        figure = Figure(figsize=(7, 3.0), layout="constrained")
        axes = figure.subplots()
        for (name, own), colour in zip(rates.items(), ("tab:blue", "tab:gray", "tab:olive"), strict=True):
            median = statistics.median(own)
            axes.plot(range(1, len(own) + 1), own, "o", color=colour, markersize=4, label=f"{name}: {median:.0f}/s")
            axes.axhline(median, color=colour, linewidth=1)
        axes.set_ylim(bottom=0)
        axes.set_xlabel("round")
        axes.set_ylabel("submissions a second")
        axes.grid(visible=True, axis="y", linewidth=0.3)
        figure.legend(loc="outside upper center", ncols=len(rates), fontsize=8)
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    raise SystemExit(main())
