"""Which level a test belongs to; tests/conftest.py makes it a hook of pytest.

- A test without a mark needs nothing but this interpreter; `make check` runs it.
- `integration`: it asks for a service, a sandbox or a browser. Found by its fixtures, or said; from `make test` on.
- `slow`: only `make test-all` runs it.
- `alone`: it measures, or hurts what others use, so that nothing runs beside it, in whatever level it is.
"""

import pytest

SERVICES = frozenset(
    {"engine", "postgres", "redis", "chromium", "openid", "process_runner", "forked_runner", "bench", "lab_child"}
)
"""Fixtures behind which processes stand that do not belong to the test."""
LONG = frozenset({"learner", "workshop"})
"""Those of the built-in checks' own tests: hundreds of real observations, each made with torch and DALI."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks tests by the fixtures that they ask for, directly or through others."""
    for item in items:
        asked = set(getattr(item, "fixturenames", ()))
        alone = item.get_closest_marker("alone")
        if LONG & asked:
            item.add_marker(pytest.mark.slow)
        if (SERVICES | LONG) & asked or alone:
            item.add_marker(pytest.mark.integration)
