"""Fixtures of the sandbox's tests."""

import contextlib
import gc
import os

import psutil
import pytest


@pytest.fixture
def nothing_stays_open():
    """For a block after which this process must have as many descriptors as before."""

    @contextlib.contextmanager
    def watched():
        gc.collect()  # what others left behind would be closed in between
        before = psutil.Process().num_fds()
        yield
        assert psutil.Process().num_fds() == before

    return watched


@pytest.fixture
def umask():
    """Sets the grader's umask until the end of the test."""
    before = os.umask(0o022)
    yield os.umask
    os.umask(before)
