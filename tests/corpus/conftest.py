"""The worlds that cases are played in, one of each kind for a file of tests."""

from collections.abc import Iterator

import pytest

from tests.corpus.world import World, opened_world


@pytest.fixture(scope="module")
def docker_world(lab_image) -> Iterator[World]:
    """A world with containers."""
    with opened_world("docker") as world:
        yield world


@pytest.fixture(scope="module")
def forked_world() -> Iterator[World]:
    """A world whose pods have no walls, and need not import torch."""
    with opened_world("forked") as world:
        yield world
