"""Docstrings count the controls of the tests beside this one."""

from importlib import import_module

import pytest

from tests.checks.figures import figures

MODULES = ("dali_proxy", "ddp_ranks", "fair_baseline", "gpu_decode", "placement_table", "same_data", "training_loop")


@pytest.mark.parametrize("name", MODULES)
def test_the_figures_of_the_docstring(name):
    """Each control has a test in its module, so that none is an error while those pass."""
    module = import_module(f"tests.checks.claims.test_{name}")
    assert figures(module.CHECK) == (0, len(module.BAD), 0, len(module.GOOD))
