"""Each case is rendered once and read by all tests."""

from functools import cache

import pytest

from grader_service.report.html import render_report
from tests.report.factories import CASES
from tests.report.page import Page


@cache
def _rendered(name):
    return render_report(CASES[name]())


@cache
def _page(name):
    return Page(_rendered(name))


@pytest.fixture
def rendered():
    """The page of a named case."""
    return _rendered


@pytest.fixture
def page():
    """The parsed page of a named case."""
    return _page


@pytest.fixture(params=sorted(CASES))
def case(request):
    """The name of every case in turn."""
    return request.param
