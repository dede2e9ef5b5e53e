"""Checks a backup before it is restored, and the signature of every verdict that a database holds."""

import json
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from sqlalchemy import select

from grader_service.backup.making import digests_of
from grader_service.backup.place import Manifest, Place, artifact_file, reaching
from grader_service.signer.signatures import signed_by
from grader_service.store.engine import Store
from grader_service.store.tables import VerdictRow

_AT_ONCE = 100


def damaged(place: Place, manifest: Manifest, progress: Callable[[str], None]) -> list[str]:
    """Files of a backup, its artifacts among them, that are gone or not what was written.

    Raises:
        InfrastructureError: the place did not give them.
    """
    progress("files of the backup")
    found = place.damaged(manifest)
    if found:
        return found
    progress("artifacts")
    missing = set(manifest.missing_artifacts)
    with reaching(place.files.url):
        return [
            artifact_file(digest)
            for digest in digests_of(place, manifest)
            if digest not in missing and place.digest(artifact_file(digest)) != digest
        ]


@dataclass
class Checked:
    """What came of it."""

    by_key: Counter[str] = field(default_factory=Counter)
    """How many verdicts each key signed, hexadecimal."""
    bad: list[str] = field(default_factory=list)
    """Ids of verdicts that none of the expected keys signed, or that were changed since."""


def check(store: Store, keys: Iterable[str]) -> Checked:
    """Checks all of them.

    Args:
        keys: public keys that may have signed them, hexadecimal.

    Raises:
        StoreUnavailable: the database failed.
    """
    expected = set(keys)
    done = Checked()
    with store.snapshot() as connection:
        statement = select(VerdictRow.verdict_id, VerdictRow.document).order_by(VerdictRow.verdict_id)
        for row in connection.execute(statement.execution_options(yield_per=_AT_ONCE)):
            key = _signer(row.document)
            if key in expected:
                done.by_key[key] += 1
            else:
                done.bad.append(row.verdict_id)
    return done


def _signer(document: str) -> str | None:
    try:
        verdict = json.loads(document)
    except ValueError:
        return None
    return signed_by(verdict) if isinstance(verdict, dict) else None
