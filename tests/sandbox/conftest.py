"""Fixtures of the sandbox's tests."""

import contextlib
import gc
import os

import psutil
import pytest

from sandbox import warm_pool


@pytest.fixture
def few_imports(monkeypatch):
    """Pods that wait import two modules that nothing else of ours needs, in no time and with no memory to speak of."""
    monkeypatch.setattr(warm_pool, "AHEAD", {"GRADER_AHEAD": "wave,colorsys"})


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
