"""What commands print on."""

import pytest

from grader_service.cli.output import console, error_console


@pytest.mark.parametrize("made", [console, error_console])
def test_a_console_is_as_wide_as_the_terminal_of_the_moment(monkeypatch, made):
    """Commands of one process are not held to the width that the first one found."""
    for width in (70, 150):
        monkeypatch.setenv("COLUMNS", str(width))
        assert made().width == width
