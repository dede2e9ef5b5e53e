"""The two tests of every table of controls; a test file that imports them has a table named `CONTROLS`."""

import pytest

from tests.checks.figures import figures


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Gives `control` each row of the module's table; tests/checks/graphs/conftest.py makes it a hook of pytest."""
    if "control" in metafunc.fixturenames:
        metafunc.parametrize("control", metafunc.module.CONTROLS.all, ids=lambda control: control.name)


def test_control(request, workshop, control):
    """Every control gets its own outcome and code."""
    request.module.CONTROLS.assert_right(workshop, control)


def test_figures_in_the_docstring(request):
    """The docstring counts these controls, of which none is an error while each passes the test above."""
    table = request.module.CONTROLS
    assert figures(table.check) == (0, len(table.failing), 0, len(table.passing))
