"""Fixtures of the sandbox's tests."""

import pytest

from sandbox import warm_pool


@pytest.fixture
def few_imports(monkeypatch):
    """Pods that wait import two modules that nothing else of ours needs, in no time and with no memory to speak of."""
    monkeypatch.setattr(warm_pool, "AHEAD", {"GRADER_AHEAD": "wave,colorsys"})
