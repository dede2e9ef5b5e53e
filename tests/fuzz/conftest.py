"""What readers log of hostile bytes is no part of a test's report."""

import logging

import pytest


@pytest.fixture(autouse=True)
def no_logs():
    """Libraries log what they read, and xdist cannot send a report with half a surrogate pair in it."""
    logging.disable()
    yield
    logging.disable(logging.NOTSET)
