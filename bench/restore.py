"""How long a backup takes, and how long it takes to restore one into an empty database.

    python bench/restore.py [--submissions 10000] [--since 1000] [--artifact-kib 16] [--database postgresql|sqlite]

The submissions are those of `tests/regrade/stored.py`: really judged, each with evidence, a signed verdict and events;
every one has an artifact. So many more are answered after the backup, and come from the journal. The time to restore
counts everything `grader backup restore` does: every file is compared with its digest, and every signature is checked.
"""

import argparse
import os
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TypeVar

from servers import Servers, servers
from sqlalchemy import select, update

from grader_service.backup import making, restoring
from grader_service.backup.journal import Journal
from grader_service.backup.place import Place
from grader_service.signer.signatures import Signer
from grader_service.store import outbox
from grader_service.store.artifacts import ArtifactStore
from grader_service.store.engine import Store
from grader_service.store.outbox import Waiter
from grader_service.store.tables import OutboxRow, SubmissionRow, VerdictRow
from tests.regrade.stored import fill

T = TypeVar("T")


def main() -> None:
    """Prints the times."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--submissions", type=int, default=10_000)
    parser.add_argument("--since", type=int, default=1_000)
    parser.add_argument("--artifact-kib", type=int, default=16)
    parser.add_argument("--database", choices=("postgresql", "sqlite"), default="postgresql")
    options = parser.parse_args()
    with ExitStack() as stack:
        made, empty = (stack.enter_context(servers(options.database)) for _ in range(2))
        place = Place(f"file://{made.folder}/backups")
        keys, artifacts = made.folder / "keys", artifacts_of(made)
        store = made.store()
        fill(store, options.submissions, signer=Signer.from_folder(keys))
        give_artifacts(store, artifacts, options.artifact_kib)
        what = making.What(store, Signer.from_folder(keys), artifacts)
        manifest, first_s = timed(lambda: making.make(place, what))
        _, again_s = timed(lambda: making.make(place, what))
        per_message_s = answer_again(store, place, keys, options.since)
        target = empty.store()
        where = restoring.Where(target, empty.folder / "keys", artifacts_of(empty), "bench")
        done, restore_s = timed(
            lambda: restoring.restore(place, manifest, where, replace=True, progress=lambda _: None)
        )
        for opened in (store, target):
            opened.close()
    size = manifest.size_bytes / 1e6
    print(f"{options.database}: {options.submissions} verdicts, {done.rows} rows, {size:.0f} MB packed")
    print(f"backup, first    {first_s:7.1f} s, with {options.submissions} artifacts of {options.artifact_kib} KiB")
    print(f"backup, again    {again_s:7.1f} s, no new artifact")
    print(f"journal          {per_message_s * 1e3:7.2f} ms an answer, a hundred at a time")
    print(
        f"restore          {restore_s:7.1f} s, {done.artifacts} artifacts, {sum(done.checked.by_key.values())} "
        f"signatures, {done.adopted.answers} answers since"
    )
    assert not done.checked.bad
    assert not done.lost_artifacts


def timed(work: Callable[[], T]) -> tuple[T, float]:
    """What came of it, and its seconds."""
    began = time.perf_counter()
    done = work()
    return done, time.perf_counter() - began


def artifacts_of(made: Servers) -> ArtifactStore:
    """A folder of its own."""
    return ArtifactStore(f"file://{made.folder}/artifacts")


def give_artifacts(store: Store, artifacts: ArtifactStore, kib: int) -> None:
    """Each submission gets one that is really there."""
    with store.transaction() as connection:
        for submission_id in connection.execute(select(SubmissionRow.submission_id)).scalars().all():
            digest = artifacts.put(os.urandom(kib << 10))
            one = update(SubmissionRow).where(SubmissionRow.submission_id == submission_id)
            connection.execute(one.values(sha256=digest))


def answer_again(store: Store, place: Place, keys: Path, count: int) -> float:
    """So many verdicts are asked for once more, and kept in the journal; seconds for each."""
    with store.transaction() as connection:
        ids = connection.execute(select(VerdictRow.verdict_id).where(VerdictRow.current).limit(count)).scalars().all()
        for number, verdict_id in enumerate(ids):
            outbox.enqueue(connection, verdict_id, Waiter(f"task-{number}"))
    journal, spent = Journal(place, store, Signer.from_folder(keys)), 0.0
    while messages := outbox.due(store):
        began = time.perf_counter()
        journal.keep(messages)
        spent += time.perf_counter() - began
        outbox.delivered(store, [message.id for message in messages])
    with store.transaction() as connection:
        assert connection.execute(select(OutboxRow.id).where(OutboxRow.delivered_at.is_(None))).first() is None
    return spent / max(1, len(ids))


if __name__ == "__main__":
    main()
