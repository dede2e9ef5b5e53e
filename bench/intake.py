"""How many submissions a judge takes in per second, from the broker's list to the committed row.

    python bench/intake.py [--messages 4000] [--database postgresql|sqlite] [--judges 1]

Messages are posted first; then judges start, and the time from the first to the last committed submission counts. In
the same run, as a yardstick for this machine: the rate of transactions that insert one row of a few columns, from as
many threads of one process.
"""

import argparse
import contextlib
import time
from concurrent.futures import ThreadPoolExecutor

from servers import GRADER, Servers, servers, submission
from sqlalchemy import func, insert, select

from grader_service.store.tables import EventRow, SubmissionRow


def main() -> None:
    """Prints the rates and their ratio."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--messages", type=int, default=4000)
    parser.add_argument("--database", choices=("postgresql", "sqlite"), default="postgresql")
    parser.add_argument("--judges", type=int, default=1)
    parser.add_argument("--threads", type=int, default=4)
    options = parser.parse_args()
    with servers(options.database) as made:
        plain = plain_inserts(made, options.threads)
        post(made, options.messages)
        rate = intake(made, options.messages, options.judges, options.threads)
    print(f"{options.database}, {options.judges} judge(s) of {options.threads} threads, {options.messages} messages")
    print(f"intake          {rate:8.0f} submissions/s")
    print(f"plain inserts   {plain:8.0f} transactions/s")
    print(f"ratio           {rate / plain:8.2f}")


def post(made: Servers, count: int) -> None:
    """Puts messages on the queue, each with a small module of its own."""
    app = made.app()
    with app.pool.acquire() as connection, app.amqp.Producer(connection) as producer:
        for number in range(count):
            source = f"# submission {number}\n" + "x = 1\n" * 400
            message = submission(f"bench:{number}", source, learner=f"learner-{number}")
            app.send_task("grader.grade", kwargs={"submission": message}, queue="live", producer=producer)


def intake(made: Servers, count: int, judges: int, threads: int) -> float:
    """Submissions per second between the first tenth and the last."""
    store = made.store()
    with contextlib.ExitStack() as stack:
        for _ in range(judges):
            stack.enter_context(made.process(GRADER, "worker", "judge", GRADER_INTAKE_THREADS=str(threads)))
        first: tuple[float, int] | None = None
        while True:
            with store.transaction() as connection:
                taken = connection.execute(select(func.count()).select_from(SubmissionRow)).scalar_one()
            now = time.monotonic()
            if first is None and taken >= count // 10:
                first = now, taken
            if taken >= count:
                assert first is not None
                store.close()
                return (taken - first[1]) / (now - first[0])
            time.sleep(0.02)


def plain_inserts(made: Servers, threads: int, seconds: float = 3.0) -> float:
    """Transactions per second that insert one event."""
    store = made.store()
    until = time.monotonic() + seconds

    def work(_: int) -> int:
        done = 0
        while time.monotonic() < until:
            with store.transaction() as connection:
                connection.execute(insert(EventRow).values(at=0.0, kind="bench", actor="bench", detail={}))
            done += 1
        return done

    with ThreadPoolExecutor(threads) as pool:
        total = sum(pool.map(work, range(threads)))
    store.close()
    return total / seconds


if __name__ == "__main__":
    main()
