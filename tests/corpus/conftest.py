"""The worlds that cases are played in, one of each kind for a file of tests."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.corpus.world import World


@pytest.fixture(scope="module")
def docker_world(lab_image):
    """A world with containers."""
    yield from _opened("docker")


@pytest.fixture(scope="module")
def forked_world():
    """A world whose pods have no walls, and need not import torch."""
    yield from _opened("forked")


def _opened(sandbox: str) -> Iterator[World]:
    """A world of this process, of which nothing is left afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="grader-corpus-", dir="/var/tmp"))
    world = World(folder, sandbox=sandbox)
    try:
        yield world
    finally:
        world.close()
        shutil.rmtree(folder, ignore_errors=True)
