"""Bytes that strangers made: every reader gives a value or refuses in the way that it documents, within its limits."""

from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from grader_service.cli.verify import verify
from grader_service.errors import UsageError
from tests.fuzz.mutation import jumbled, mutated
from tests.fuzz.readers import READERS, SEEDS

PAGE = Path(__file__).parents[2] / "docs" / "hostile-bytes.md"
SLOW = {"pixels": 6, "means": 15, "verdict": 8, "page": 40, "intake": 60, "evidence": 25, "reflections": 60}
"""Examples of readers that take longer for one input; all others have `USUAL`."""
USUAL = 120
_MOST_SEED_BYTES = 200 << 10
pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.slow]


@cache
def _read(name):
    return READERS[name].load()


@cache
def _seeds(name):
    return [path.read_bytes() for path in READERS[name].seeds()]


@pytest.mark.parametrize("name", READERS)
def test_seeds(name):
    """What fuzzers start from, and what once crashed a reader (`crash-*`)."""
    assert _seeds(name), "a reader without seeds is hardly fuzzed"
    for data in _seeds(name):
        _read(name)(data)


@pytest.mark.parametrize("name", READERS)
def test_changed_seeds(name):
    """Seeds with a few places changed, as values where they are JSON."""
    seeds = _seeds(name)

    @settings(max_examples=SLOW.get(name, USUAL), deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(data=st.sampled_from(seeds), numbers=st.randoms(use_true_random=False), by_value=st.booleans())
    def attempt(data, numbers, by_value):
        changed = mutated(data, numbers) if by_value and READERS[name].is_json else None
        changed = changed if changed is not None else jumbled(data, numbers, seeds)
        _read(name)(changed[: READERS[name].most_bytes])

    attempt()


@pytest.mark.parametrize("name", sorted(READERS.keys() - {"pixels", "means"}))
@settings(max_examples=25, deadline=None, database=None)
@given(data=st.binary(max_size=300))
def test_any_bytes(name, data):
    """Bytes of any kind at all."""
    _read(name)(data)


def test_seeds_are_small_and_belong_to_a_reader():
    """The repository keeps no more than fuzzers need."""
    for folder in SEEDS.iterdir():
        assert folder.name in READERS
        assert sum(path.stat().st_size for path in folder.iterdir()) <= _MOST_SEED_BYTES, folder.name


def test_the_page_names_every_reader():
    """A reader that is not in the table of limits has none that anybody knows."""
    page = PAGE.read_text(encoding="utf-8")
    assert [name for name in READERS if f"`{name}`" not in page] == []


def test_a_deep_document_is_no_verdict(tmp_path):
    """What nests deeper than Python reads is refused in words, as other files are that hold no verdict."""
    path = tmp_path / "verdict.json"
    path.write_text("[" * 5000 + "]" * 5000)
    with pytest.raises(UsageError, match="cannot be read as JSON"):
        verify(path, "0" * 64)
