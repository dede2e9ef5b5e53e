"""Runs one level of the tests: `make check`, `make test`, `make test-all`, and what CI does.

    python -m tests.levels check
    python -m tests.levels test
    python -m tests.levels all [--shard K/N]
    python -m tests.levels ci [--base COMMIT]
    python -m tests.levels engine          # the Docker engine of the tests, until Ctrl-C, for a test by hand
    python -m tests.levels record          # keeps what units took in the newest reports, for the shards

A part that fails ends nothing but the parts that need it; with FAILFAST=1 it ends the run. With CI=true a component
that is missing is a failure, never a skip.
"""

import argparse
import contextlib
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.levels import ci, levels, shards
from tests.levels.parts import REPORTS, ROOT, Done, Part, read_report, run
from tests.levels.record import Record
from tests.services.docker_engine import ensure_engine, missing_packages
from tests.services.forked_runner import fork_server

_ROOM = 4 << 30
"""Bytes in memory that tests' temporary files get, or they stay where they are."""
SHARDS = 6
"""How many `make test-all` has where none are named."""


def main() -> int:
    """Exit status: 0 when everything passed, 1 when something failed, 2 for wrong arguments."""
    parser = argparse.ArgumentParser(prog="python -m tests.levels")
    parser.add_argument("level", choices=("check", "test", "all", "ci", "engine", "record"))
    parser.add_argument("--shard", default=os.environ.get("SHARD", ""), help="k/n: one of n parts of `all`.")
    parser.add_argument("--base", default=os.environ.get("BASE") or None, help="Commit that `ci` compares with.")
    options = parser.parse_args()
    try:
        chosen = [shards.parsed(options.shard)] if options.shard else [(k, SHARDS) for k in range(1, SHARDS + 1)]
    except ValueError as error:
        parser.error(str(error))
    os.chdir(ROOT)
    if options.level == "record":
        shards.write([test for path in sorted(REPORTS.glob("*.xml")) for test in read_report(path)])
        return 0
    if options.level == "engine":
        return _engine_by_hand()
    record = Record({"all": "test-all"}.get(options.level, options.level))
    if options.level in {"check", "test", "ci"}:
        _run(record, levels.check())
    if options.level != "check" and not _stopped(record):
        with contextlib.ExitStack() as stack:
            if _engine(record, stack):
                if options.level in {"test", "ci"}:
                    _run(record, levels.test())
                if options.level == "all":
                    _run(record, [part for k, n in chosen for part in levels.shard(k, n)])
                if options.level == "ci" and not _stopped(record):
                    ci.more(record, options.base, SHARDS, _run)
    record.write(ended=True)
    for line in record.summary():
        say(line)
    return 0 if record.ok else 1


def _run(record: Record, parts: Sequence[Part]) -> None:
    """Runs parts one after the other, and says where it is."""
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    # Hundreds of processes are started, each of which would compile every module of ours anew.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    with ThreadPoolExecutor(1) as pool, in_memory() as memory:
        beside = []
        for number, part in enumerate(parts, 1):
            if _stopped(record):
                record.not_begun.append(f"{part.name}: FAILFAST=1")
                continue
            if any(done.name == part.after and not done.ok for done in record.parts):
                record.not_begun.append(f"{part.name}: {part.after} failed")
                continue
            say(f"{part.name} ({number} of {len(parts)}), {record.seconds:.0f} s so far")
            if part.beside:
                beside.append(pool.submit(run, part, environment))
            else:
                _note(record, run(part, {**environment, **memory} if part.report else environment))
        for future in beside:
            _note(record, future.result())


@contextlib.contextmanager
def in_memory() -> Iterator[Mapping[str, str]]:
    """Where tests put temporary files: gradings make and remove them by the hundred thousand, at a disk's expense."""
    place = Path("/dev/shm")
    if "TMPDIR" in os.environ or not place.is_dir() or shutil.disk_usage(place).free < _ROOM:
        yield {}
        return
    with tempfile.TemporaryDirectory(prefix="grader-", dir=place, ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o755)  # processes of other users find what is theirs in it
        yield {"TMPDIR": folder}


def _note(record: Record, done: Done) -> None:
    record.parts.append(done)
    record.write()
    say(f"{done.name}: {'ok' if done.ok else 'FAILED'}, {done.seconds:.0f} s")


def _stopped(record: Record) -> bool:
    return os.environ.get("FAILFAST") == "1" and not record.ok


def _engine_by_hand() -> int:
    """An engine with the images, until somebody ends it."""
    if (problem := _lacking()) is not None:
        say(problem)
        return 1
    with ensure_engine(say) as environment, contextlib.suppress(KeyboardInterrupt):
        done = run(levels.images(), {**os.environ, **environment})
        named = "".join(f"export {name}={value}; " for name, value in environment.items())
        say(f"images {'ready' if done.ok else 'FAILED'}; in another shell: {named}.venv/bin/python -m pytest …")
        signal.pause()
    return 0


def _lacking() -> str | None:
    """What the services need and cannot get here; widens the path for what they have."""
    # Where Debian keeps dockerd and debootstrap; not every way to become root brings these folders along.
    os.environ["PATH"] = f"{os.environ.get('PATH', '/usr/bin:/bin')}:/usr/local/sbin:/usr/sbin:/sbin"
    return missing_packages()


def _engine(record: Record, stack: contextlib.ExitStack) -> bool:
    """Starts what the services need; False where that cannot be had and nothing that needs it may run."""
    if (problem := _lacking()) is not None:
        record.broken.append(problem)
        return False
    os.environ.update(stack.enter_context(ensure_engine(say)))
    os.environ.update(stack.enter_context(fork_server()))
    return True


def say(text: str) -> None:
    """A line among the output of the parts."""
    sys.stderr.write(f"[tests] {text}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    # Either ends what was begun. A shell that starts this with & has them ignored, by pytest too, unless we listen.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.default_int_handler)
    raise SystemExit(main())
