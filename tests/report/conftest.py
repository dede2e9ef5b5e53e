"""Each case is rendered once and read by all tests."""

from functools import cache

import pytest

from grader_service.report.html import render_report
from tests.report.factories import CASES
from tests.report.page import Page
from tests.report.window import offline_windows


@pytest.fixture(scope="session")
def rendered():
    """The page of a named case."""
    return cache(lambda name: render_report(CASES[name]()))


@pytest.fixture(scope="session")
def page(rendered):
    """The parsed page of a named case."""
    return cache(lambda name: Page(rendered(name)))


@pytest.fixture(params=sorted(CASES))
def case(request):
    """The name of every case in turn."""
    return request.param


@pytest.fixture
def visit(chromium, tmp_path):
    """Opens a page from a file, offline."""
    with offline_windows(chromium, tmp_path) as run:
        yield run
