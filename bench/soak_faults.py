"""The workers of a soak, and the faults that befall them and what they need."""

import contextlib
import os
import random
import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import psutil
from servers import Servers

from tests.services.disk import Disk
from tests.services.postgres_server import PostgresServer
from tests.services.redis_server import RedisServer

OUTAGE = "stop PostgreSQL for minutes"
_RESTART_S = 2.0
"""A worker that ended is started again after this time, as a supervisor does."""
_FROZEN_S = 20.0
"""Longer than a lease of `soak.FAST`."""
_ENDS_S = 30.0


class Fleet:
    """Worker processes that are started again whenever they end.

    Args:
        made: what they work with.
        logs: folder for what they say; on no disk that is filled.
        settings: variables of all of them.
    """

    def __init__(self, made: Servers, logs: Path, settings: Mapping[str, str]) -> None:
        self._logs = logs
        # Judging processes inherit the path and little else, and are known by it.
        self._mark = str(logs / "of-this-soak")
        path = f"{os.environ['PATH']}:{self._mark}"
        self._environment = {**made.environment, **settings, "PATH": path}
        self._commands: dict[str, tuple[list[str], dict[str, str]]] = {}
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._ended: dict[str, float] = {}
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
                    ended = self._ended.setdefault(name, time.monotonic())
                    if time.monotonic() - ended >= _RESTART_S:
                        del self._ended[name]
                        self._start(name)

    def stop(self) -> None:
        """Tells all of them to end."""
        for process in self._running.values():
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGCONT)
                process.terminate()
        for process in self._running.values():
            try:
                process.wait(_ENDS_S)
            except subprocess.TimeoutExpired:
                process.kill()

    def left(self) -> list[str]:
        """Processes of this soak that are still there a while after all workers were told to end; they are killed."""
        _, alive = psutil.wait_procs(list(self._processes()), timeout=_ENDS_S)
        found = []
        for process in alive:
            with contextlib.suppress(psutil.NoSuchProcess):
                found.append(" ".join(process.cmdline()))
                process.kill()
        return found

    def _processes(self) -> Iterator[psutil.Process]:
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                if self._mark in process.environ().get("PATH", ""):
                    yield process

    def _start(self, name: str) -> None:
        command, environment = self._commands[name]
        with (self._logs / f"{name}.log").open("ab") as log:
            self._running[name] = subprocess.Popen(
                command, env={**self._environment, **environment}, stdout=log, stderr=log
            )
        self.starts[name] += 1


@dataclass(frozen=True)
class Struck:
    """One fault that was."""

    name: str
    ended: float
    """Unix time."""


class Nemesis:
    """One fault after another.

    Args:
        made: servers.
        fleet: workers.
        disks: that of the services' state and artifacts, and that of each server, by what they are called in a report.
        seed: decides their order, and whom they befall.
        outage_s: how long the database is away in the middle.
    """

    def __init__(
        self, made: Servers, fleet: Fleet, disks: Mapping[str, Disk], seed: int, outage_s: float = 180.0
    ) -> None:
        self._made = made
        self._fleet = fleet
        self._random = random.Random(seed)
        self._outage_s = outage_s
        self.done: list[Struck] = []
        redis, results = made.redis, made.results
        self._faults: dict[str, Callable[[], None]] = {
            "kill a worker": lambda: self._signal(signal.SIGKILL),
            "end a worker": lambda: self._signal(signal.SIGTERM),
            "kill a child": self._kill_child,
            "stop a worker for longer than its lease": lambda: self._freeze(_FROZEN_S),
            "stop a child for longer than its lease": lambda: self._freeze(_FROZEN_S, child=True),
            "kill the broker": lambda: self._kill_redis(redis),
            "kill the Redis of the answers": lambda: self._kill_redis(results),
            "kill both Redis": lambda: self._kill_redis(redis, results),
            "fill the memory of the broker": lambda: self._fill_redis(redis),
            "fill the memory of the Redis of the answers": lambda: self._fill_redis(results),
            "crash PostgreSQL": self._crash_postgres,
            "delete all wake-ups": self._delete_wake_ups,
            **{f"fill the disk of {name}": lambda disk=disk: self._fill_disk(disk) for name, disk in disks.items()},
        }

    @property
    def kinds(self) -> set[str]:
        """Names of all faults, the long outage among them."""
        return {OUTAGE, *self._faults}

    def plan(self) -> Iterator[str]:
        """Names of faults without end: each once, in an order of the seed's, before any of them comes again."""
        while True:
            names = list(self._faults)
            self._random.shuffle(names)
            yield from names

    def strike(self, name: str) -> None:
        """Lets one fault happen, until it is over."""
        (self._outage if name == OUTAGE else self._faults[name])()
        self.done.append(Struck(name, time.time()))

    def pause(self) -> None:
        """Between two faults."""
        time.sleep(self._random.uniform(0.5, 4.0))

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

    def _kill_redis(self, *servers: RedisServer) -> None:
        for server in servers:
            server.kill()
        time.sleep(self._random.uniform(0.0, 3.0))
        for server in servers:
            server.start()

    def _fill_redis(self, server: RedisServer) -> None:
        with server.full():
            time.sleep(self._random.uniform(2.0, 8.0))

    def _crash_postgres(self) -> None:
        """A session dies, and PostgreSQL ends all of them and goes through its log again."""
        for session in psutil.Process(self._postgres.process.pid).children():
            with contextlib.suppress(psutil.NoSuchProcess):
                if "grader" in " ".join(session.cmdline()):
                    session.kill()
                    return

    def _outage(self) -> None:
        self._postgres.stop()
        time.sleep(self._outage_s)
        self._postgres.start()

    def _fill_disk(self, disk: Disk) -> None:
        with disk.full():
            time.sleep(self._random.uniform(5.0, 10.0))
        # A server that could not write may have ended; what supervises it starts it again.
        for server in (self._made.redis, self._made.results, self._postgres):
            if server.process.poll() is not None:
                server.start()

    def _delete_wake_ups(self) -> None:
        with contextlib.suppress(Exception):
            client = self._made.redis.client()
            for key in client.keys("grader.*"):
                client.delete(key)

    @property
    def _postgres(self) -> PostgresServer:
        assert self._made.postgres is not None
        return self._made.postgres
