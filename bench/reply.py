"""What the service adds to a grading: from the post to the verdict, when the grading itself is nothing.

    python bench/reply.py [--messages 200] [--database postgresql|sqlite]

One judge, one stub runner whose runs take no time, one message after another. In the same run, as a yardstick for this
machine: a Celery task that does nothing, posted and awaited in the same way. Also prints what the idle workers cost.
"""

import argparse
import contextlib
import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
from celery import Celery
from servers import GRADER, servers, submission
from warm import p95

STUB = [sys.executable, str(Path(__file__).with_name("stub_runner.py"))]
IDLE_S = 30.0


def main() -> None:
    """Prints percentiles and the cost of idling."""
    if os.environ.get("BENCH_ECHO"):
        echo_worker()
        return
    parser = argparse.ArgumentParser()
    parser.add_argument("--messages", type=int, default=200)
    parser.add_argument("--database", choices=("postgresql", "sqlite"), default="postgresql")
    options = parser.parse_args()
    with contextlib.ExitStack() as stack:
        made = stack.enter_context(servers(options.database))
        judge = stack.enter_context(made.process(GRADER, "worker", "judge"))
        stub = stack.enter_context(made.process(*STUB, "0", GRADER_SANDBOX="process", STUB_LONGEST_S="0"))
        app, answers = made.app(), made.answers()
        ask(answers, lambda number: post(app, number), 20)  # the children open what they need
        idle = {"judge": idle_share(judge.pid), "runner": idle_share(stub.pid)}
        ours = ask(answers, lambda number: post(app, 1000 + number), options.messages)
    with contextlib.ExitStack() as stack:
        made = stack.enter_context(servers("sqlite"))
        stack.enter_context(made.process(sys.executable, __file__, BENCH_ECHO="1"))
        app = echo_app(made.redis.url)
        bare = lambda _: app.send_task("echo", queue="echo").id  # noqa: E731
        ask(app, bare, 20)
        plain = ask(app, bare, options.messages)
    for name, times in (("post to verdict", ours), ("bare Celery task", plain)):
        print(
            f"{name:<17} p50 {statistics.median(times) * 1e3:6.1f} ms  "
            f"p95 {p95(times) * 1e3:6.1f} ms  ({len(times)} messages, {options.database})"
        )
    for name, share in idle.items():
        print(f"idle {name:<12} {share * 100:5.2f} % of a core over {IDLE_S:.0f} s")


def post(app: Celery, number: int) -> str:
    """Posts a small module; returns the task's id."""
    message = submission(f"reply:{number}", f"# quick {number}\n", learner=f"l{number}")
    return str(app.send_task("grader.grade", kwargs={"submission": message}, queue="live").id)


def ask(answers: Celery, send: Callable[[int], str], count: int) -> list[float]:
    """Seconds from each post to its result."""
    times = []
    for number in range(count):
        started = time.perf_counter()
        key = answers.backend.get_key_for_task(send(number))
        while answers.backend.client.get(key) is None:
            if time.perf_counter() - started > 30:
                raise SystemExit("no answer within 30 s")
            time.sleep(0.001)
        times.append(time.perf_counter() - started)
    return times


def idle_share(pid: int) -> float:
    """Share of a core that a process and its children use while nothing happens."""
    family = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]

    def used() -> float:
        return sum(sum(process.cpu_times()[:2]) for process in family)

    before = used()
    time.sleep(IDLE_S)
    return (used() - before) / IDLE_S


def echo_app(url: str) -> Celery:
    """Plain Celery, with its messages and results in one Redis."""
    return Celery("echo", broker=url, backend=url)


def echo_worker() -> None:
    """A worker with a task that does nothing."""
    app = echo_app(os.environ["GRADER_REDIS_URL"])

    @app.task(name="echo")
    def echo() -> None:
        """Nothing."""

    app.Worker(queues=["echo"], concurrency=1, loglevel="ERROR", quiet=True).start()


if __name__ == "__main__":
    main()
