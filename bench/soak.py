"""Random faults for minutes, and afterwards every promise of the service is looked at. The seed replays the faults.

    python bench/soak.py [--seed 1] [--submissions 500] [--seconds 240] [--docker 0]

Two judges and three runners on PostgreSQL and two instances of Redis, that of the answers apart from the broker; a
platform posts in bursts, posts some messages twice, and posts again what got no answer, as a platform may. Meanwhile
one fault after another: SIGKILL, SIGTERM and SIGSTOP of workers and of their children, either Redis killed or full,
PostgreSQL restarted in the middle, hints deleted. With `--docker N`, a second soak follows: N submissions, and one
runner that grades them in Docker pods.

Exit status 0 when each submission has exactly one verdict in force and none of its runs is open, every answer was
delivered, and no container is left.
"""

import argparse
import contextlib
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import psutil
from servers import GRADER, RedisServer, Servers, servers, submission
from sqlalchemy import func, select
from trivial import REFLECTIONS

from grader_service.errors import InfrastructureError
from grader_service.store.tables import EventRow, OutboxRow, RunRow, SubmissionRow, VerdictRow
from sandbox.docker_options import STATE_LABEL
from sandbox.docker_runner import connect_engine

STUB = [sys.executable, str(Path(__file__).with_name("stub_runner.py"))]
_AGAIN_S = 20.0
FAST = {"GRADER_LEASE_S": "4", "GRADER_SWEEP_S": "1", "GRADER_RETRY_DELAY_S": "0.5", "GRADER_SOFT_SHUTDOWN_S": "3"}


class Fleet:
    """Worker processes that are started again whenever they end."""

    def __init__(self, made: Servers) -> None:
        self._made = made
        self._commands: dict[str, tuple[list[str], dict[str, str]]] = {}
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._lock = threading.Lock()
        self.starts: Counter[str] = Counter()

    def add(self, name: str, command: list[str], **environment: str) -> None:
        """Starts a worker and keeps it running."""
        self._commands[name] = command, environment
        self._start(name)

    def names(self) -> list[str]:
        """Of all workers."""
        return sorted(self._commands)

    def pid(self, name: str) -> int:
        """Of a worker's main process."""
        return self._running[name].pid

    def children(self, name: str) -> list[int]:
        """Of its pool."""
        with contextlib.suppress(psutil.NoSuchProcess):
            return [child.pid for child in psutil.Process(self.pid(name)).children()]
        return []

    def tend(self) -> None:
        """Starts again what ended."""
        with self._lock:
            for name, process in list(self._running.items()):
                if process.poll() is not None:
                    self._start(name)

    def stop(self) -> None:
        """Ends all of them."""
        for process in self._running.values():
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGCONT)
                process.terminate()
        for process in self._running.values():
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()

    def _start(self, name: str) -> None:
        command, environment = self._commands[name]
        with (self._made.folder / f"{name}.log").open("ab") as log:
            self._running[name] = subprocess.Popen(
                command, env={**self._made.environment, **FAST, **environment}, stdout=log, stderr=log
            )
        self.starts[name] += 1


class Nemesis:
    """One fault after another, as its seed decides."""

    def __init__(self, made: Servers, fleet: Fleet, seed: int) -> None:
        self._made = made
        self._fleet = fleet
        self._random = random.Random(seed)
        self.done: Counter[str] = Counter()
        self._faults: dict[str, Callable[[], None]] = {
            "kill a worker": lambda: self._signal(signal.SIGKILL),
            "end a worker": lambda: self._signal(signal.SIGTERM),
            "kill a child": self._kill_child,
            "stop a worker for longer than its lease": lambda: self._freeze(6.0),
            "stop a child for longer than its lease": lambda: self._freeze(6.0, child=True),
            "kill the broker": lambda: self._kill_redis(self._made.redis),
            "kill the Redis of the answers": lambda: self._kill_redis(self._made.results),
            "fill the broker": lambda: self._fill_redis(self._made.redis),
            "fill the Redis of the answers": lambda: self._fill_redis(self._made.results),
            "restart PostgreSQL": self._restart_postgres,
            "delete all hints": self._delete_hints,
        }

    def strike(self) -> None:
        """The next fault."""
        name = self._random.choice(list(self._faults))
        self._faults[name]()
        self.done[name] += 1

    def _victim(self) -> str:
        return self._random.choice(self._fleet.names())

    def _signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._fleet.pid(self._victim()), number)

    def _kill_child(self) -> None:
        for child in self._fleet.children(self._victim()):
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)

    def _freeze(self, seconds: float, *, child: bool = False) -> None:
        victim = self._victim()
        frozen = self._fleet.children(victim) if child else [self._fleet.pid(victim)]
        for number in (signal.SIGSTOP, signal.SIGCONT):
            for pid in frozen:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)
            if number == signal.SIGSTOP:
                time.sleep(seconds)

    def _kill_redis(self, server: RedisServer) -> None:
        server.kill()
        time.sleep(self._random.uniform(0.0, 3.0))
        server.start()

    def _fill_redis(self, server: RedisServer) -> None:
        with server.full():
            time.sleep(self._random.uniform(2.0, 8.0))

    def _restart_postgres(self) -> None:
        root = self._made.database_url.partition("host=")[2]
        (data,) = Path(root).glob("data")
        main = int((data / "postmaster.pid").read_text().split()[0])
        for child in psutil.Process(main).children():  # every session at once, as after a crash of one of them
            if "grader" in " ".join(child.cmdline()):
                with contextlib.suppress(psutil.NoSuchProcess):
                    child.kill()
                    break

    def _delete_hints(self) -> None:
        with contextlib.suppress(Exception):
            client = self._made.redis.client()
            for key in client.keys("grader.*"):
                client.delete(key)


class Platform:
    """Posts, waits for answers, and posts again what got none."""

    def __init__(self, made: Servers, seed: int) -> None:
        self._app = made.app()
        self._random = random.Random(seed + 1)
        self._posted: dict[str, tuple[dict, float]] = {}
        self.posts = 0

    def post(self, submission_id: str, source: str, **other: object) -> None:
        """A new submission, some of them twice."""
        self._posted[submission_id] = submission(submission_id, source, **other), 0.0
        for _ in range(2 if self._random.random() < 0.1 else 1):
            self._send(submission_id)

    def again(self, answered: set[str]) -> None:
        """Repeats what was posted long ago and has no verdict."""
        for submission_id, (_, at) in list(self._posted.items()):
            if submission_id not in answered and time.monotonic() - at > _AGAIN_S:
                self._send(submission_id)

    def _send(self, submission_id: str) -> None:
        message, _ = self._posted[submission_id]
        with contextlib.suppress(Exception):  # a broker that is away: posted again later
            self._app.send_task(
                "grader.grade",
                kwargs={"submission": message},
                queue=self._random.choice(["live", "live", "regrade"]),
                task_id=f"task-{submission_id}",
                retry=False,
            )
            self.posts += 1
        self._posted[submission_id] = message, time.monotonic()


def main() -> int:
    """Runs the soak and says what was found."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--submissions", type=int, default=500)
    parser.add_argument("--seconds", type=float, default=240.0)
    parser.add_argument("--docker", type=int, default=0)
    options = parser.parse_args()
    wrong = phase(options.seed, options.submissions, options.seconds, real=False) if options.submissions else []
    if options.docker:
        wrong += phase(options.seed, options.docker, options.docker * 2.0, real=True)
    print("\n".join(wrong) or "every promise held")
    return 1 if wrong else 0


def phase(seed: int, submissions: int, seconds: float, *, real: bool) -> list[str]:
    """One soak with servers and workers of its own; returns what is wrong."""
    with servers("postgresql") as made:
        fleet = Fleet(made)
        try:
            for number in range(2):
                fleet.add(f"judge{number}", [GRADER, "worker", "judge"])
            if real:
                fleet.add("docker0", [GRADER, "worker", "run", "--slot", "0"], GRADER_SANDBOX="docker")
            else:
                for slot in range(3):
                    fleet.add(f"stub{slot}", [*STUB, str(slot)], GRADER_SANDBOX="process")
            wrong = soak(made, fleet, seed, submissions, seconds, real=real)
        finally:
            fleet.stop()
        return wrong + [f"container left: {name}" for name in left_behind(made)] if real else wrong


def soak(made: Servers, fleet: Fleet, seed: int, submissions: int, seconds: float, *, real: bool) -> list[str]:
    """Posts and strikes, waits for the rest, then checks; returns what is wrong."""
    nemesis, platform = Nemesis(made, fleet, seed), Platform(made, seed)
    chance = random.Random(seed + 2)
    started = time.monotonic()
    quiet_from = started + seconds
    striking = threading.Thread(target=_strike_until, args=(nemesis, fleet, quiet_from), daemon=True)
    time.sleep(5.0)
    striking.start()
    posted = 0
    ids = [f"soak:{seed}:{number}" for number in range(submissions)]
    answered: set[str] = set()
    while time.monotonic() < quiet_from + 240.0:
        share = min(1.0, (time.monotonic() - started) / (seconds * 0.9))
        while posted < len(ids) and posted < share * len(ids) + chance.randint(0, 20):
            kind = chance.choices(["quick", "fault", "hang"], [8, 1, 1])[0]
            if real:
                platform.post(ids[posted], REFLECTIONS, learner=f"l{posted}", steps=["reflection"])
            else:
                platform.post(ids[posted], f"# {kind} {posted}\n", learner=f"l{posted % 40}")
            posted += 1
        answered = _answered(made, answered)
        platform.again(answered)
        _retry_parked(made)
        fleet.tend()
        sys.stderr.write(f"\r{time.monotonic() - started:5.0f} s  posted {posted}  answered {len(answered)}   ")
        if len(answered) == len(ids) and not striking.is_alive() and not _undelivered(made):
            break
        time.sleep(1.0)
    striking.join(timeout=60)
    sys.stderr.write("\n")
    wrong = check(made, ids)
    print(f"seed {seed}: {len(ids)} submissions in {platform.posts} posts, {time.monotonic() - started:.0f} s")
    print("faults: " + ", ".join(f"{name} × {count}" for name, count in sorted(nemesis.done.items())))
    print("worker starts: " + ", ".join(f"{name} {count}" for name, count in sorted(fleet.starts.items())))
    return wrong


def _strike_until(nemesis: Nemesis, fleet: Fleet, until: float) -> None:
    while time.monotonic() < until:
        nemesis.strike()
        time.sleep(1.5)
        fleet.tend()


def _answered(made: Servers, before: set[str]) -> set[str]:
    store = made.store()
    try:
        with store.transaction() as connection:
            return set(connection.execute(select(VerdictRow.submission_id).where(VerdictRow.current)).scalars())
    except InfrastructureError:
        return before
    finally:
        store.close()


def _retry_parked(made: Servers) -> None:
    """What an operator does with runs that need attention."""
    subprocess.run([GRADER, "retry", "--all"], env=made.environment, check=False, capture_output=True)


def _undelivered(made: Servers) -> int:
    store = made.store()
    try:
        with store.transaction() as connection:
            open_letters = select(func.count()).select_from(OutboxRow).where(OutboxRow.delivered_at.is_(None))
            return connection.execute(open_letters).scalar_one()
    except InfrastructureError:
        return 1
    finally:
        store.close()


def left_behind(made: Servers) -> list[str]:
    """Names of pods of this soak that nobody removed."""
    mine = {"label": f"{STATE_LABEL}={made.folder.resolve()}"}
    found = connect_engine().containers.list(all=True, filters=mine)
    return [str(container.name) for container in found]


def check(made: Servers, ids: list[str]) -> list[str]:
    """Every promise, against the database and the broker."""
    store = made.store()
    wrong = []
    with store.transaction() as connection:
        accepted = set(connection.execute(select(SubmissionRow.submission_id)).scalars())
        current = Counter(connection.execute(select(VerdictRow.submission_id).where(VerdictRow.current)).scalars())
        every = Counter(connection.execute(select(VerdictRow.submission_id)).scalars())
        open_runs = connection.execute(select(RunRow.run_id, RunRow.state).where(RunRow.state != "done")).all()
        kinds = Counter(connection.execute(select(EventRow.kind)).scalars())
    store.close()
    if lost := set(ids) - accepted:
        wrong.append(f"never accepted: {sorted(lost)[:5]} and {len(lost)} in all")
    if missing := set(ids) - set(current):
        wrong.append(f"without a verdict: {sorted(missing)[:5]} and {len(missing)} in all")
    if twice := [name for name, count in (current | every).items() if count != 1]:
        wrong.append(f"with more than one verdict: {twice[:5]} and {len(twice)} in all")
    if open_runs:
        wrong.append(f"runs still open: {open_runs[:5]}")
    if undelivered := _undelivered(made):
        wrong.append(f"answers not delivered: {undelivered}")
    results = made.answers().backend
    if silent := [name for name in ids if results.get_task_meta(f"task-{name}")["status"] != "SUCCESS"]:
        wrong.append(f"tasks without a result: {silent[:5]} and {len(silent)} in all")
    print("events: " + ", ".join(f"{kind} {count}" for kind, count in sorted(kinds.items())))
    return wrong


if __name__ == "__main__":
    raise SystemExit(main())
