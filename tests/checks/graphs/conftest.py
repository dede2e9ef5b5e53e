"""One process with DALI for all tests of this folder."""

from collections.abc import Iterator

import pytest

from tests.checks.graphs.control_tests import pytest_generate_tests  # noqa: F401 - a hook
from tests.checks.graphs.graphs import Workshop


@pytest.fixture(scope="session")
def workshop() -> Iterator[Workshop]:
    """Builds pipelines and runs probes on them."""
    opened = Workshop()
    yield opened
    opened.close()
