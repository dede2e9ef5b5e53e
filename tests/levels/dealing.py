"""How tests are dealt to processes; tests/conftest.py makes it a hook of pytest."""

from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

from tests.levels.shards import unit_of


class _ByUnit(LoadScopeScheduling):
    """Deals units in the order in which they were named."""

    def _split_scope(self, nodeid: str) -> str:
        return unit_of(nodeid)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling | None:
    """`--dist loadfile`, but files of which `shards.py` says that their tests share nothing are dealt by the test."""
    if config.getoption("dist") != "loadfile":
        return None
    config.option.loadscopereorder = False
    return _ByUnit(config, log)
