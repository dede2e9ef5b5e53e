"""Faults for half an hour, and afterwards every promise of the service is looked at. The seed decides the faults.

    python bench/soak.py [--seed 1] [--submissions 700] [--seconds 1800] [--docker 0]

Two judges and three runners on PostgreSQL and two instances of Redis, that of the answers apart from the broker; a
platform posts in bursts, posts some messages twice, and posts again only what the broker refused. What runs takes up to
five seconds; some of it fails once as our own failures do, some is rejected, and three submissions kill whoever runs
them, each time. Meanwhile one fault after another, each kind once before any comes again: SIGKILL, SIGTERM and SIGSTOP
of workers and of their children; either Redis, or both, killed or out of memory; a session of PostgreSQL killed, which
ends all of them; wake-ups deleted; and a full disk, for each of: the services' state and artifacts, PostgreSQL, either
Redis. In the middle the database is away for a tenth of the time. Nobody lends a hand: what ends is started again, as a
supervisor does, and that is all. It mounts four small file systems to fill them, and so runs as root.

With `--docker N`, a second soak follows: N submissions, and one runner that grades them in Docker pods.

Exit status 0 when each submission has exactly one verdict, none of its runs is open, no attempt was charged for a fault
of ours, every answer was delivered and is that verdict, those that kill their runner and no others are
dead-lettered, and neither messages, files, processes nor containers are left.
"""

import argparse
import contextlib
import random
import statistics
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from servers import GRADER, Folders, Servers, servers, submission
from soak_checks import REPLIES, check, open_runs, recoveries, story, undelivered
from soak_faults import OUTAGE, Fleet, Nemesis
from sqlalchemy import select
from trivial import REFLECTIONS

from grader_service.errors import InfrastructureError
from grader_service.store.engine import Store
from grader_service.store.tables import VerdictRow
from sandbox.docker.options import STATE_LABEL
from sandbox.docker.runner import connect_engine
from tests.services.disk import Disk, disk

STUB = [sys.executable, str(Path(__file__).with_name("stub_runner.py"))]
_AGAIN_S = 2.0
_PATIENCE_S = 600.0
"""After the last fault, until everything has to be done."""
_DISKS = {"the services": 512, "PostgreSQL": 1024, "the broker": 512, "the Redis of the answers": 512}
"""MiB of each."""
FAST = {
    "GRADER_LEASE_S": "15",
    "GRADER_SWEEP_S": "1",
    "GRADER_RETRY_DELAY_S": "0.5",
    "GRADER_SOFT_SHUTDOWN_S": "3",
    "GRADER_WARM_RUNS": "0",
    "GRADER_REPLY_QUEUE_LENGTH": "1000000",
}
_KINDS = {"measured": 6, "hang": 1, "fault": 1, "reject": 1}
_POISON = "poison"
_POISONED = (0.1, 0.4, 0.7)
"""Where among the submissions those stand that kill their runner."""


class Platform:
    """Posts, and posts again what was not taken."""

    def __init__(self, made: Servers, seed: int) -> None:
        self._app = made.app()
        self._random = random.Random(seed + 1)
        self._refused: dict[str, tuple[dict, float]] = {}
        self.posts = 0
        self.taken: dict[str, float] = {}
        """When the broker answered the first post of each submission, Unix time."""

    def post(self, submission_id: str, source: str, **other: object) -> None:
        """A new submission, some of them twice."""
        reply = {"queue": REPLIES, "task": "lab.verdict_ready"}
        message = submission(submission_id, source, reply_to=reply, **other)
        for _ in range(2 if self._random.random() < 0.1 else 1):
            self._send(submission_id, message)

    def again(self) -> None:
        """Repeats posts that failed."""
        for submission_id, (message, at) in list(self._refused.items()):
            if time.monotonic() - at > _AGAIN_S:
                self._send(submission_id, message)

    def _send(self, submission_id: str, message: dict) -> None:
        try:
            self._app.send_task(
                "grader.grade",
                kwargs={"submission": message},
                queue=self._random.choice(["live", "live", "regrade"]),
                task_id=f"task-{submission_id}",
                retry=False,
            )
        except Exception:  # noqa: BLE001 - whatever the client library makes of a broker that is away or full
            if submission_id not in self.taken:
                self._refused[submission_id] = message, time.monotonic()
            return
        self.posts += 1
        self._refused.pop(submission_id, None)
        self.taken.setdefault(submission_id, time.time())


def main() -> int:
    """Runs the soak and says what was found."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--submissions", type=int, default=700)
    parser.add_argument("--seconds", type=float, default=1800.0)
    parser.add_argument("--docker", type=int, default=0)
    options = parser.parse_args()
    wrong = phase(options.seed, options.submissions, options.seconds, real=False) if options.submissions else []
    if options.docker:
        wrong += phase(options.seed, options.docker, options.docker * 6.0, real=True)
    print("\n".join(wrong) or "every promise held")
    return 1 if wrong else 0


def phase(seed: int, submissions: int, seconds: float, *, real: bool) -> list[str]:
    """One soak with servers and workers of its own; returns what is wrong."""
    with contextlib.ExitStack() as stack:
        logs = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="grader-soak-", dir="/var/tmp")))
        disks = {name: stack.enter_context(disk(str(number), mib)) for number, (name, mib) in enumerate(_DISKS.items())}
        state, postgres, broker, answers = (str(one.folder) for one in disks.values())
        made = stack.enter_context(servers("postgresql", below=Folders(state, broker, answers, postgres)))
        remember_commits(made)
        fleet = Fleet(made, logs, FAST)
        try:
            for number in range(2):
                fleet.add(f"judge{number}", [GRADER, "worker", "judge"])
            if real:
                fleet.add("docker0", [GRADER, "worker", "run", "--slot", "0"], GRADER_SANDBOX="docker")
            else:
                failed = logs / "failed"
                failed.mkdir()
                for slot in range(3):
                    environment = {"GRADER_SANDBOX": "process", "STUB_FAILED": str(failed), "STUB_LONGEST_S": "1.5"}
                    fleet.add(f"stub{slot}", [*STUB, str(slot)], **environment)
            wrong = soak(made, fleet, disks, seed, submissions, seconds, real=real)
        except BaseException:
            keep(logs, seed)
            raise
        finally:
            fleet.stop()
        wrong += [f"process left: {name}" for name in fleet.left()]
        wrong += [f"container left: {name}" for name in left_behind(made)] if real else []
        if wrong:
            keep(logs, seed)
        return wrong


def remember_commits(made: Servers) -> None:
    """A PostgreSQL that crashes knows afterwards what it said was committed; those of tests may forget it."""
    store = made.store()
    with store.transaction() as connection:
        connection.exec_driver_sql("alter database bench set synchronous_commit = on")
    store.close()


def soak(
    made: Servers, fleet: Fleet, disks: dict[str, Disk], seed: int, submissions: int, seconds: float, *, real: bool
) -> list[str]:
    """Posts and strikes, waits for the rest, then checks; returns what is wrong."""
    nemesis, platform = Nemesis(made, fleet, disks, seed, outage_s=seconds / 10), Platform(made, seed)
    chance = random.Random(seed + 2)
    ids = [f"soak:{seed}:{number}" for number in range(submissions)]
    poison = set() if real else {ids[int(share * len(ids))] for share in _POISONED}
    time.sleep(5.0)
    started = time.monotonic()
    quiet_from = started + seconds
    striking = ThreadPoolExecutor(1, "nemesis").submit(strike, nemesis, started, seconds)
    store, posted, done = made.store(), 0, {}
    while time.monotonic() < quiet_from + _PATIENCE_S:
        share = min(1.0, (time.monotonic() - started) / (seconds * 0.95))
        while posted < len(ids) and posted < share * len(ids) + chance.randint(0, 10):
            name = ids[posted]
            kind = _POISON if name in poison else chance.choices(list(_KINDS), list(_KINDS.values()))[0]
            if real:
                platform.post(name, REFLECTIONS, learner=f"l{posted}", steps=["reflection"])
            else:
                learner = name if kind == _POISON else f"l{posted % 40}"
                platform.post(name, f"# {kind} {posted}\n", learner=learner)
            posted += 1
        platform.again()
        fleet.tend()
        done = verdict_times(store, done)
        sys.stderr.write(f"\r{time.monotonic() - started:5.0f} s  posted {posted}  verdicts {len(done)}   ")
        if len(done) == len(ids) - len(poison) and striking.done() and settled(store):
            break
        time.sleep(1.0)
    sys.stderr.write("\n")
    striking.result()  # raises where a fault could not be brought about, or a server did not come up again
    print(
        f"seed {seed}: {len(platform.taken)} submissions in {platform.posts} posts, {len(done)} verdicts, "
        f"{time.monotonic() - started:.0f} s, {time.monotonic() - quiet_from:.0f} s of it after the last fault"
    )
    for name, took in sorted(recoveries(store, nemesis.done).items()):
        print(f"{name}: {len(took)} ×, back within {max(took):.1f} s, median {statistics.median(took):.1f} s")
    if done:
        last = max(done, key=lambda name: done[name] - platform.taken[name])
        print(f"waited longest, {done[last] - platform.taken[last]:.1f} s: {last}: {story(store, last)}")
    if spared := nemesis.kinds - {one.name for one in nemesis.done}:
        print("had no turn: " + ", ".join(sorted(spared)))
    print("worker starts: " + ", ".join(f"{name} {count}" for name, count in sorted(fleet.starts.items())))
    try:
        return check(made, store, ids[:posted], poison)
    finally:
        store.close()


def strike(nemesis: Nemesis, started: float, seconds: float) -> None:
    """One fault after another; the long outage in the middle."""
    away = False
    for name in nemesis.plan():
        if time.monotonic() > started + seconds:
            return
        if not away and time.monotonic() > started + 0.45 * seconds:
            nemesis.strike(OUTAGE)
            away = True
            nemesis.pause()
        nemesis.strike(name)
        nemesis.pause()


def verdict_times(store: Store, before: dict[str, float]) -> dict[str, float]:
    """When the verdict of each submission was stored, Unix time; what was known before, where nobody answers."""
    try:
        with store.transaction() as connection:
            rows = connection.execute(select(VerdictRow.submission_id, VerdictRow.created_at))
            return {row.submission_id: row.created_at for row in rows}
    except InfrastructureError:
        return before


def settled(store: Store) -> bool:
    """Whether no run is open and no answer has to be sent."""
    try:
        return not open_runs(store) and not undelivered(store)
    except InfrastructureError:
        return False


def left_behind(made: Servers) -> list[str]:
    """Names of pods of this soak that nobody removed."""
    mine = {"label": f"{STATE_LABEL}={made.folder.resolve()}"}
    found = connect_engine().containers.list(all=True, filters=mine)
    return [str(container.name) for container in found]


def keep(logs: Path, seed: int) -> None:
    """The logs of workers, for whoever wants to know why a promise was broken."""
    kept = Path(tempfile.mkdtemp(prefix=f"grader-soak-{seed}-logs-", dir="/var/tmp"))
    for log in logs.glob("*.log"):
        log.rename(kept / log.name)
    print(f"logs: {kept}")


if __name__ == "__main__":
    raise SystemExit(main())
