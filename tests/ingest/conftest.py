"""A folder to unpack into."""

import pytest

from tests.ingest.packing import Target


@pytest.fixture
def target(tmp_path) -> Target:
    """A target folder inside a tree that must stay as it is."""
    return Target(tmp_path / "tree")
