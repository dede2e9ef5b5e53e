"""A stratified part of the corpus: something of every defence, every family and every module."""

import pytest

from tests.corpus.case import sandbox_of
from tests.corpus.quick import quick
from tests.corpus.result import check

pytestmark = pytest.mark.integration


@pytest.mark.parametrize("case", quick(), ids=lambda case: case.id)
def test_case(case, request):
    """What is measured is the same without walls; all else is played through the Docker sandbox."""
    check(case, request.getfixturevalue(f"{sandbox_of(case)}_world"))
