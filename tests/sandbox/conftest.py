"""Fixtures of the sandbox's tests."""

import os

import pytest

from sandbox import warm_pool


@pytest.fixture
def few_imports(monkeypatch):
    """Pods that wait import two modules that nothing else of ours needs, in no time and with no memory to speak of."""
    monkeypatch.setattr(warm_pool, "AHEAD", {"GRADER_AHEAD": "wave,colorsys"})


@pytest.fixture
def umask():
    """Sets the grader's umask until the end of the test."""
    before = os.umask(0o022)
    yield os.umask
    os.umask(before)
