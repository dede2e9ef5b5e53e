"""Each case is rendered once for each reader, and read by all tests."""

from functools import cache

import pytest

from grader_service.report.audience import Audience
from grader_service.report.html import render_report
from tests.report.cases import CASES
from tests.report.page import Page
from tests.report.window import offline_windows

FOR_LEARNER = " for its learner"


def render(name):
    """The page of a named case: for staff, or where the name says so for the learner."""
    audience = Audience.LEARNER if name.endswith(FOR_LEARNER) else Audience.STAFF
    return render_report(CASES[name.removesuffix(FOR_LEARNER)](), audience)


@pytest.fixture(scope="session")
def rendered():
    """The page of a named case."""
    return cache(render)


@pytest.fixture(scope="session")
def page(rendered):
    """The parsed page of a named case."""
    return cache(lambda name: Page(rendered(name)))


@pytest.fixture(params=[name + reader for name in sorted(CASES) for reader in ("", FOR_LEARNER)])
def case(request):
    """The name of every case in turn, for staff and for the learner."""
    return request.param


@pytest.fixture
def visit(chromium, tmp_path):
    """Opens a page from a file, offline."""
    with offline_windows(chromium, tmp_path) as run:
        yield run
