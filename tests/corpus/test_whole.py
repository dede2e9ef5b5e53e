"""Every case through the Docker sandbox, as learners' submissions are graded."""

import pytest

from tests.corpus import catalogue
from tests.corpus.playing import check, opened

pytestmark = [pytest.mark.slow, pytest.mark.integration]


@pytest.fixture(scope="module")
def world(lab_image):
    """A world with containers."""
    with opened("docker") as made:
        yield made


@pytest.mark.parametrize("case", catalogue.cases(), ids=lambda case: case.id)
def test_case(case, world):
    """A cheat does not pass, for the reason that is named; good faith loses nothing."""
    check(case, world)
