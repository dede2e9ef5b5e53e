"""Fixtures of both ends."""

from contextlib import ExitStack

import pytest

from tests.runner_hosts.ends import Ends, portal_that_ends


@pytest.fixture
def ends():
    """Makes control hosts, runner hosts' ends and services; all of them end with the test."""
    with ExitStack() as kept, portal_that_ends() as portal:
        yield Ends(portal, kept)
