"""Every case through the Docker sandbox, as learners' submissions are graded."""

import pytest

from tests.corpus import catalogue
from tests.corpus.result import check

pytestmark = [pytest.mark.slow, pytest.mark.integration]


@pytest.mark.parametrize("case", catalogue.cases(), ids=lambda case: case.id)
def test_case(case, docker_world):
    """A cheat does not pass, for the reason that is named; good faith loses nothing."""
    check(case, docker_world)
