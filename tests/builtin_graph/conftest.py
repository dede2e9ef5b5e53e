"""One process with DALI for all tests of this folder."""

import importlib.util
from collections.abc import Iterator

import pytest

from tests.builtin_graph.control_tests import pytest_generate_tests  # noqa: F401 - a hook
from tests.builtin_graph.graphs import Workshop
from tests.conftest import missing


@pytest.fixture(scope="session")
def workshop() -> Iterator[Workshop]:
    """Builds pipelines and runs probes on them."""
    if importlib.util.find_spec("torch") is None:
        missing("torch and DALI are not installed")
    opened = Workshop()
    yield opened
    opened.close()
