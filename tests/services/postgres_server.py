"""A private PostgreSQL of the tests' own: a data folder in memory or on disk, a Unix socket, no TCP port."""

import os
import pwd
import shutil
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


@contextmanager
def postgres_server() -> Iterator[str]:
    """Yields an SQLAlchemy URL prefix that ends before the database's name: `…:///`-style with the socket as host."""
    folder = binaries()
    if folder is None:
        raise FileNotFoundError("PostgreSQL is not installed: apt-get install postgresql")
    root = Path(tempfile.mkdtemp(prefix="grader-pg-", dir="/var/tmp"))
    data = root / "data"
    prefix: list[str] = []
    if os.geteuid() == 0:
        user = _unprivileged_user()
        shutil.chown(root, user)
        prefix = ["setpriv", "--reuid", user, "--regid", user, "--init-groups"]
    try:
        options = [f"--pgdata={data}", "--username=grader", "--auth=trust", "--encoding=UTF8", "--no-locale"]
        subprocess.run([*prefix, str(folder / "initdb"), *options], check=True, capture_output=True, cwd=root)
        with (root / "log").open("wb") as log:
            process = subprocess.Popen(
                [
                    *prefix, str(folder / "postgres"), "-D", str(data), "-k", str(root), "-c", "listen_addresses=",
                    "-c", "max_connections=200", "-c", "shared_buffers=256MB",
                    # No test takes the machine's power away; waiting for a busy disk would let leases run out.
                    "-c", "fsync=off", "-c", "synchronous_commit=off", "-c", "full_page_writes=off",
                ],
                stdout=log,
                stderr=log,
                cwd=root,
            )  # fmt: skip
        try:
            _await(folder, root, process)
            yield f"postgresql+psycopg://grader@/{{name}}?host={root}"
        finally:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
    finally:
        shutil.rmtree(root, ignore_errors=True)


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
