"""A stratified part of the corpus: something of every defence, every family and every module."""

import pytest

from tests.corpus.case import sandbox_of
from tests.corpus.playing import check, opened
from tests.corpus.quick import quick

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def docker_world(lab_image):
    """A world with containers."""
    with opened("docker") as made:
        yield made


@pytest.fixture(scope="module")
def forked_world():
    """A world whose pods have no walls, and need not import torch."""
    with opened("forked") as made:
        yield made


@pytest.mark.parametrize("case", quick(), ids=lambda case: case.id)
def test_case(case, request):
    """What is measured is the same without walls; all else is played through the Docker sandbox."""
    check(case, request.getfixturevalue(f"{sandbox_of(case)}_world"))
