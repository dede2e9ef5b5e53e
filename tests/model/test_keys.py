"""Which key is believed for which time."""

from datetime import UTC, datetime, timedelta

import pytest

from grader_service.errors import UsageError
from grader_service.model.keys import NEAR, KeyList, PublicKey, Revocation, dated

KEY = "ab" * 32
FROM, UNTIL = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 6, 1, tzinfo=UTC)
STOLEN = datetime(2026, 4, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)
ALL = Revocation(at=UNTIL, since=None, reason="stolen")
SINCE = Revocation(at=UNTIL, since=STOLEN, reason="stolen")


@pytest.mark.parametrize(
    ("at", "revoked", "said"),
    [
        (FROM, None, None),
        (UNTIL, None, None),
        (FROM - NEAR, None, None),
        (UNTIL + NEAR, None, None),
        (FROM - NEAR - SECOND, None, "was not in use at 2025-12-31T23:54:59+00:00, but from 2026-01-01"),
        (UNTIL + NEAR + SECOND, None, "was not in use at 2026-06-01T00:05:01+00:00, but until 2026-06-01"),
        (None, None, "signs documents with a time in them"),
        (FROM, ALL, "is revoked: stolen"),
        (STOLEN - SECOND, SINCE, None),
        (STOLEN, SINCE, "is revoked for all since 2026-04-01T00:00:00+00:00: stolen"),
        (None, SINCE, "is revoked"),
    ],
)
def test_a_key_is_believed_for_its_time(at, revoked, said):
    """From when it began to sign until another took its place, give or take what clocks differ; never once stolen."""
    found = PublicKey(public_key=KEY, from_=FROM, until=UNTIL, revoked=revoked).doubt(at)
    assert found is None if said is None else said in found


@pytest.mark.parametrize("at", [None, FROM])
def test_a_key_without_bounds_is_believed_for_any_time(at):
    """As one that somebody gave on the command line."""
    assert KeyList.of([KEY.upper()]).keys[0].doubt(at) is None


@pytest.mark.parametrize(
    ("document", "time"),
    [
        ({"created_at": "2026-01-01T00:00:00Z"}, FROM),
        ({"finished_at": "2026-01-01T01:00:00+01:00"}, FROM),
        ({"created_at": "2026-01-01T00:00:00"}, None),
        ({"created_at": "yesterday"}, None),
        ({"created_at": 17}, None),
        ({}, None),
    ],
)
def test_the_time_of_a_document(document, time):
    """Verdicts and notes of erasures have one; what is none counts as none."""
    assert dated(document) == time


def test_a_list_is_read_as_it_was_written():
    """And what is none is told by its place."""
    keys = KeyList(keys=(PublicKey(public_key=KEY, from_=FROM, until=UNTIL, revoked=SINCE),))
    assert KeyList.read(keys.model_dump_json(), "keys.json") == keys
    assert '"from":"2026-01-01T00:00:00Z"' in keys.model_dump_json()
    with pytest.raises(UsageError, match=r"keys.json: expected a list of keys .* got keys.0.public_key: String should"):
        KeyList.read('{"keys": [{"public_key": "x"}]}', "keys.json")
    with pytest.raises(UsageError, match="64 hexadecimal digits, got 'x'"):
        KeyList.of(["x"])
