"""Docstrings count the controls of the tests beside this one."""

import pytest

from tests.builtin_claims import (
    test_dali_proxy,
    test_ddp_ranks,
    test_fair_baseline,
    test_gpu_decode,
    test_placement_table,
    test_same_data,
    test_training_loop,
)
from tests.builtin_claims.figures import figures

MODULES = (
    test_dali_proxy,
    test_ddp_ranks,
    test_fair_baseline,
    test_gpu_decode,
    test_placement_table,
    test_same_data,
    test_training_loop,
)


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.CHECK.id)
def test_the_figures_of_the_docstring(module):
    """Each control has a test in its module, so that none is an error while those pass."""
    assert figures(module.CHECK) == (0, len(module.BAD), 0, len(module.GOOD))
