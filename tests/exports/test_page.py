"""The page on exports shows what the command really writes, and its tables say what it does."""

import re

import pytest

from grader_service.exports.gradescope import gradescope
from grader_service.exports.junit import junit
from grader_service.exports.prairielearn import prairielearn
from grader_service.model.verdict import Outcome, Status
from tests.exports.corpus import CORPUS, composed
from tests.levels.parts import ROOT

PAGE = (ROOT / "docs" / "interchange.md").read_text()


def rows(heading):
    """The rows of the table with this first heading: first cell to the others."""
    table = PAGE.split(f"| {heading} | Gradescope |")[1].split("\n\n")[0]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]
    return {first: others for first, *others in cells}


def test_the_examples_are_real_output():
    """Each block of the page is part of what is written for the verdict that it names."""
    gpu = CORPUS["gpu"]
    written = "\n".join(
        (
            gradescope(gpu).model_dump_json(indent=2, exclude_none=True),
            prairielearn(CORPUS["one_inconclusive"]).model_dump_json(indent=2, exclude_none=True),
            junit([gpu]),
            junit([CORPUS["not_reached"]]),
        )
    )
    blocks = re.findall(r"```(?:json|xml)\n(.*?)```", PAGE, re.DOTALL)
    assert len(blocks) == 5
    for block in blocks:
        assert block.rstrip("\n") in written


@pytest.mark.parametrize("outcome", Outcome)
def test_the_table_of_checks_is_what_happens(outcome):
    """Each outcome has its row, and each cell is true."""
    for_gradescope, for_prairielearn, for_junit = rows("check")[f"`{outcome.value}`"]
    item = composed(Outcome.PASSED, Outcome.PASSED, outcome, Outcome.PASSED)
    status = gradescope(item).tests[2].status
    assert for_gradescope == (f"`status: {status}`" if status else "no `status`, no score")
    assert for_prairielearn == ("no `points`" if prairielearn(item).tests[2].points is None else "`points`")
    kind = re.findall(r"<(failure|skipped|error) ", junit([item]))
    assert for_junit == (f"`{kind[0]}`" if kind else "a case without content")


def test_every_status_has_a_row():
    """No verdict is left without a word."""
    assert {word for row in rows("verdict") for word in re.findall(r"`(\w+)`", row)} == {item.value for item in Status}
