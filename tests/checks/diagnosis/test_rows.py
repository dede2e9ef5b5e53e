"""The table itself: well-formed, documented, and safe to match against anything."""

import importlib.util
import re
import string
import warnings
from pathlib import Path
from re import _constants as codes
from re import _parser as parser

import pytest
from pydantic import ValidationError

from bench import diagnosis_page
from checks.diagnosis import diagnose
from checks.diagnosis.rows import ORDERS, SILENT, Row, all_rows, compiled, exception_rows
from grader_service.model.discovery import LearnerException
from tests.conftest import missing

ROOT = Path(__file__).resolve().parents[3]
PATTERNS = [
    pytest.param(pattern, id=f"{row.id}-{name}")
    for row in all_rows()
    for name in ("pattern", "source", "operator")
    if (pattern := getattr(row, name)) is not None
]
TEXT_ROWS = [row for row in exception_rows() if row.provoked == "text"]
_REPEATS = (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT)


def test_there_are_rows_enough():
    """At least sixty, each with an id of its own, in every family, in the order in which they are tried."""
    rows = all_rows()
    assert len({row.id for row in rows}) == len(rows) >= 60
    assert len({row.family for row in rows}) == 10
    assert [ORDERS.index(row.order) for row in rows] == sorted(ORDERS.index(row.order) for row in rows)


def test_the_documented_table_is_current():
    """`python bench/diagnosis_page.py > docs/diagnosis.md` was run after the last change."""
    page = (ROOT / "docs" / "diagnosis.md").read_text("utf-8")
    assert page == diagnosis_page.text()
    assert all(f"| `{row.id}` |" in page for row in all_rows())


@pytest.mark.parametrize("row", TEXT_ROWS, ids=lambda row: row.id)
def test_a_row_that_only_text_provokes_answers_its_example(row):
    """What a CPU cannot raise is matched as text, by this row alone of its order."""
    types = row.exceptions or ("RuntimeError",)
    for name in types:
        found = diagnose(LearnerException(type=name, message=row.example))
        assert found is not None
        assert found.id == row.id


@pytest.mark.parametrize("row", [row for row in TEXT_ROWS if row.literal_in], ids=lambda row: row.id)
def test_the_text_is_that_of_the_installed_library(row):
    """Where the library raises it from Python, its source still holds the text."""
    package = row.literal_in.partition("/")[0]
    spec = importlib.util.find_spec("nvidia.dali" if package == "nvidia" else package)
    if spec is None or spec.origin is None:
        missing(f"{package} is not installed (the `lab` extra)")
    site = Path(spec.origin).parents[2 if package == "nvidia" else 1]
    source = re.sub(r'"\s*"', "", (site / row.literal_in).read_text("utf-8"))
    assert any(text in source for text in row.contains)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_pattern_cannot_run_away(pattern):
    """Every repetition is bounded, none stands in another, and the ways to match from one place are few."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compiled(pattern)
    assert _ways(parser.parse(pattern), inside=False) <= 200_000


def _ways(parsed, *, inside):
    """An upper bound on the lengths that repetitions can take together; raises where there is none."""
    ways = 1
    for code, argument in parsed:
        if code in _REPEATS:
            _, most, body = argument
            assert most is not codes.MAXREPEAT, "a repetition has no upper bound"
            assert most <= 1 or not inside, "a repetition stands inside another"
            ways *= most * _ways(body, inside=inside or most > 1)
        elif code is codes.SUBPATTERN:
            ways *= _ways(argument[3], inside=inside)
        elif code is codes.BRANCH:
            ways *= max(_ways(branch, inside=inside) for branch in argument[1])
        elif code in (codes.ASSERT, codes.ASSERT_NOT):
            ways *= _ways(argument[1], inside=inside)
    return max(ways, 1)


@pytest.mark.parametrize("pattern", [r"(a+)+", r"(a{1,9}b{1,9}){1,9}", r".*", r"\d{1,900}x\w{1,900}"])
def test_a_dangerous_pattern_would_be_found(pattern):
    """The check above refuses nested, unbounded and too many repetitions."""
    with pytest.raises(AssertionError):
        assert _ways(parser.parse(pattern), inside=False) <= 200_000


@pytest.mark.parametrize("row", all_rows(), ids=lambda row: row.id)
def test_texts_are_short_and_name_known_values(row):
    """Cause and remedy end as sentences, leave room for the place, and name groups of the row's own pattern."""
    fields = {name for text in (row.cause, row.remedy) for _, name, spec, how in string.Formatter().parse(text) if name}
    if row.family != SILENT:
        known = set(compiled(row.pattern).groupindex) if row.pattern else set()
        assert fields <= known | ({"nearest"} if row.suggest else set())
    assert len(row.cause) + len(row.remedy) <= 400
    assert row.cause.endswith((".", "}"))
    assert row.remedy.endswith(".")


WRONG = {
    "nothing to match": {"provoked": "cpu"},
    "a pattern for any exception": {"pattern": "abc", "provoked": "cpu"},
    "an exception without a line": {"exceptions": ("ValueError",), "provoked": "cpu"},
    "text without an example": {"contains": ("x",), "provoked": "text"},
    "an exception that evidence shows": {"contains": ("x",), "provoked": "evidence"},
    "a silent row with an exception": {"family": "silent", "contains": ("x",), "provoked": "evidence"},
    "an unknown field": {"contains": ("x",), "provoked": "cpu", "because": "y"},
    "an unknown family": {"family": "weather", "contains": ("x",), "provoked": "cpu"},
}


@pytest.mark.parametrize("fields", WRONG.values(), ids=WRONG.keys())
def test_a_malformed_row_is_refused(fields):
    """Loading names what is wrong; nothing is guessed."""
    good = {"id": "some_row", "family": "graph", "cause": "a", "remedy": "b", "seen_with": "c"}
    Row.model_validate(good | {"contains": ("x",), "provoked": "cpu"})
    with pytest.raises(ValidationError):
        Row.model_validate(good | fields)
