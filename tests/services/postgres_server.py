"""A private PostgreSQL of the tests' own: a data folder in memory or on disk, a Unix socket, no TCP port."""

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import Engine, text

_START_S = 30


def binaries() -> Path | None:
    """Folder of `initdb` and `postgres`, newest first; None when PostgreSQL is not installed."""
    for folder in sorted(
        Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: float(path.parent.name), reverse=True
    ):
        if (folder / "initdb").exists():
            return folder
    found = shutil.which("initdb")
    return Path(found).resolve().parent if found else None


class PostgresServer:
    """A PostgreSQL that may be stopped and started again.

    Args:
        root: an empty folder, for its data, its log and its socket.
    """

    def __init__(self, root: Path) -> None:
        folder = binaries()
        if folder is None:
            raise FileNotFoundError("PostgreSQL is not installed: apt-get install postgresql")
        self._binaries = folder
        self._root = root
        self._prefix: list[str] = []
        self.process: subprocess.Popen[bytes] | None = None
        if os.geteuid() == 0:
            user = _unprivileged_user()
            shutil.chown(root, user)
            self._prefix = ["setpriv", "--reuid", user, "--regid", user, "--init-groups"]
        options = [f"--pgdata={root / 'data'}", "--username=grader", "--auth=trust", "--encoding=UTF8", "--no-locale"]
        subprocess.run([*self._prefix, str(folder / "initdb"), *options], check=True, capture_output=True, cwd=root)

    @property
    def url(self) -> str:
        """An SQLAlchemy URL with `{name}` for the database and the socket as host."""
        return f"postgresql+psycopg://grader@/{{name}}?host={self._root}"

    def start(self) -> None:
        """Starts it with what its data folder holds, and waits until it answers."""
        with (self._root / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [
                    *self._prefix, str(self._binaries / "postgres"), "-D", str(self._root / "data"),
                    "-k", str(self._root), "-c", "listen_addresses=",
                    "-c", "max_connections=200", "-c", "shared_buffers=256MB",
                    # No test takes the machine's power away; waiting for a busy disk would let leases run out.
                    "-c", "fsync=off", "-c", "synchronous_commit=off", "-c", "full_page_writes=off",
                ],
                stdout=log,
                stderr=log,
                cwd=self._root,
            )  # fmt: skip
        _await(self._binaries, self._root, self.process)

    def stop(self) -> None:
        """Ends it as an operator would: sessions are cut, what was committed is there at the next start."""
        if self.process is not None:
            self.process.send_signal(signal.SIGINT)
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
            self.process = None


@contextmanager
def running_postgres(below: str = "/var/tmp") -> Iterator[PostgresServer]:
    """A running PostgreSQL with its folder below this one."""
    root = Path(tempfile.mkdtemp(prefix="grader-pg-", dir=below))
    try:
        server = PostgresServer(root)
        try:
            server.start()
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(root, ignore_errors=True)


@contextmanager
def postgres_server() -> Iterator[str]:
    """Yields an SQLAlchemy URL prefix that ends before the database's name: `…:///`-style with the socket as host."""
    with running_postgres() as server:
        yield server.url


def somebody_waits(engine: Engine) -> bool:
    """Whether a transaction waits for another one's lock; `pg_stat_activity` would not change until this one ends."""
    with engine.connect() as connection:
        return bool(connection.execute(text("select count(*) from pg_locks where not granted")).scalar_one())


def _unprivileged_user() -> str:
    """PostgreSQL refuses to run as root."""
    known = {entry.pw_name for entry in pwd.getpwall()}
    return "postgres" if "postgres" in known else "nobody"


def _await(folder: Path, root: Path, process: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + _START_S
    while time.monotonic() < deadline and process.poll() is None:
        ready = subprocess.run(
            [str(folder / "pg_isready"), "-h", str(root), "-U", "grader", "-d", "postgres"],
            check=False,
            capture_output=True,
        )
        if ready.returncode == 0:
            return
        time.sleep(0.1)
    raise RuntimeError(f"PostgreSQL did not start:\n{(root / 'log').read_text(errors='replace')[-2000:]}")
