"""A private Redis of the tests' own: a password, append-only file, a port that nobody else has."""

import os
import secrets
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import redis

from tests.levels.parts import ROOT
from tests.services.kept_port import kept_port

START = ROOT / "deploy" / "kubernetes" / "redis-start.sh"
USERS = ("admin", "judge", "runner")
"""Of the service's own, in both servers; the platform without a name is `default`."""
ServerT = TypeVar("ServerT", bound="RedisServer")
_START_S = 15


@dataclass
class RedisServer:
    """A Redis that a test may kill and start again.

    What it answered is in the kernel's hands by then, which a killed process does not take along: it need not wait for
    the disk.
    """

    folder: Path
    port: int
    password: str = field(default_factory=lambda: secrets.token_hex(8))
    options: tuple[str, ...] = ("--appendonly", "yes", "--appendfsync", "no", "--maxmemory-policy", "noeviction")
    process: "subprocess.Popen[bytes] | None" = None

    @property
    def url(self) -> str:
        """For Celery and redis-py."""
        return f"redis://:{self.password}@127.0.0.1:{self.port}/0"

    def start(self) -> None:
        """Starts it on its port with what its append-only file holds."""
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(self._command(), stdout=log, stderr=log, env=self._environment())
        deadline = time.monotonic() + _START_S
        while time.monotonic() < deadline:
            try:
                if self.client().ping():
                    return
            except redis.RedisError:
                time.sleep(0.05)
        raise RuntimeError(f"Redis did not start:\n{(self.folder / 'log').read_text()[-1500:]}")

    def client(self) -> "redis.Redis":
        """A client with the password."""
        return redis.Redis.from_url(self.url, socket_timeout=5)

    def _command(self) -> list[str]:
        return [
            "redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self.folder),
            "--save", "", "--requirepass", self.password, *self.options,
        ]  # fmt: skip

    def _environment(self) -> dict[str, str]:
        return dict(os.environ)

    @contextmanager
    def full(self) -> Iterator[None]:
        """At the limit of its memory, whatever is removed, until the block ends: it adds and moves nothing."""
        client = self.client()
        client.config_set("maxmemory", 100_000)
        try:
            yield
        finally:
            client.config_set("maxmemory", 0)

    def kill(self) -> None:
        """Ends it at once, as a power cut would."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


@dataclass
class RuledServer(RedisServer):
    """One of the service's two, with its users, started as in production; a test's own client may do everything."""

    role: str = "broker"
    options: tuple[str, ...] = ("--appendfsync", "no")

    def __post_init__(self) -> None:
        """Makes its passwords."""
        for user in USERS:
            (self.folder / f"redis_{user}_password").write_text(f"{self.password}-{user}\n")
        (self.folder / "redis_password").write_text(f"{self.password}\n")

    def url_of(self, user: str) -> str:
        """For a user of the service's own."""
        return self.url.replace("//:", f"//{user}:").replace("@", f"-{user}@")

    def client(self) -> "redis.Redis":
        """The administrator's."""
        return redis.Redis.from_url(self.url_of("admin"), socket_timeout=5)

    def refused(self) -> list[dict[str, str]]:
        """What users were not allowed, since the server was started."""
        return self.client().acl_log()

    def _command(self) -> list[str]:
        return [str(START), self.role, "--bind", "127.0.0.1", *self.options]

    def _environment(self) -> dict[str, str]:
        return {**os.environ, "DATA": str(self.folder), "SECRETS": str(self.folder), "PORT": str(self.port)}


def redis_server(*options: str, below: str = "/var/tmp") -> AbstractContextManager[RedisServer]:
    """A running Redis with its folder below this one; `options` replace the safe ones."""
    return _running(RedisServer, below, **({"options": options} if options else {}))


@contextmanager
def ruled_servers() -> Iterator[tuple[RuledServer, RuledServer]]:
    """The service's broker, and the Redis of its answers, with the same passwords."""
    with (
        _running(RuledServer, "/var/tmp", role="broker") as broker,
        _running(RuledServer, "/var/tmp", role="results", password=broker.password) as results,
    ):
        yield broker, results


@contextmanager
def _running(kind: type[ServerT], below: str, **options: Any) -> Iterator[ServerT]:
    if shutil.which("redis-server") is None:
        raise FileNotFoundError("Redis is not installed: apt-get install redis-server")
    folder = Path(tempfile.mkdtemp(prefix="grader-redis-", dir=below))
    with kept_port() as port:
        server = kind(folder, port, **options)
        try:
            server.start()
            yield server
        finally:
            server.kill()
            shutil.rmtree(folder, ignore_errors=True)
