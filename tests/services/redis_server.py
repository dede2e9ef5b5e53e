"""A private Redis of the tests' own: a password, append-only file, a port that nobody else has."""

import secrets
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import redis

from tests.services.kept_port import kept_port

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
            self.process = subprocess.Popen(
                [
                    "redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self.folder),
                    "--save", "", "--requirepass", self.password, *self.options,
                ],
                stdout=log,
                stderr=log,
            )  # fmt: skip
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


@contextmanager
def redis_server(*options: str) -> Iterator[RedisServer]:
    """A running Redis; `options` replace the safe ones."""
    if shutil.which("redis-server") is None:
        raise FileNotFoundError("Redis is not installed: apt-get install redis-server")
    folder = Path(tempfile.mkdtemp(prefix="grader-redis-", dir="/var/tmp"))
    with kept_port() as port:
        server = RedisServer(folder, port)
        if options:
            server.options = options
        try:
            server.start()
            yield server
        finally:
            server.kill()
            shutil.rmtree(folder, ignore_errors=True)
