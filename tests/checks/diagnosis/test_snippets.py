"""Every row that a CPU can provoke is provoked, with the real libraries, and is the row that answers."""

import pytest

from checks.diagnosis import diagnose, matching
from checks.diagnosis.message import read
from checks.diagnosis.rows import exception_rows
from grader_service.model.discovery import LearnerException
from grader_service.model.feedback import MAX_SENTENCE
from tests.checks.diagnosis.conftest import all_snippets

SNIPPETS = all_snippets()
pytestmark = [pytest.mark.slow, pytest.mark.integration]


def raised_by(provoked, key):
    """What the snippet raised, as the evidence of a run holds it."""
    found = provoked["raised"][key]
    assert found is not None, "the snippet ran to its end"
    return LearnerException.model_validate(found)


@pytest.mark.parametrize("key", SNIPPETS)
def test_a_real_mistake_is_answered_by_its_row(provoked, key):
    """The row that the snippet is named for answers, briefly, and no other row of its order matches as well."""
    exception = raised_by(provoked, key)
    found = diagnose(exception)
    assert found is not None, f"{exception.type}: {exception.message}"
    assert found.id == key.partition("#")[0]
    assert len(f"{found.cause} {found.remedy}") <= MAX_SENTENCE
    order = next(row.order for row in exception_rows() if row.id == found.id)
    alike = [row for row in exception_rows() if row.order == order]
    rivals = [row.id for row in alike if matching._values(row, read(exception)) is not None]
    assert rivals == [found.id]


def test_every_row_that_a_cpu_provokes_has_a_snippet():
    """No row is left to its text alone, and no snippet is without a row."""
    rows = {row.id for row in exception_rows() if row.provoked == "cpu"}
    assert rows == {key.partition("#")[0] for key in SNIPPETS}


@pytest.mark.parametrize("key", [key for key, source in SNIPPETS.items() if "pipe.run()" in source])
def test_a_mistake_in_a_graph_is_placed_at_its_own_line(provoked, key):
    """DALI stops in run(), and the diagnosis names the operator's line inside the graph."""
    exception = raised_by(provoked, key)
    found = diagnose(exception)
    if found.operator:
        assert found.place.file == "submission.py"
        assert found.place.source == SNIPPETS[key].splitlines()[found.place.line - 1].strip()
        assert found.operator in found.place.source
        assert found.place.line < exception.place.line
    else:
        assert found.place == exception.place


@pytest.mark.parametrize(
    ("key", "source", "operator"),
    [
        ("no_files_found#2", 'jpegs, labels = fn.readers.file(file_root="data/flat")', "fn.readers.file"),
        ("no_files_found#3", "return fn.readers.file(", "fn.readers.file"),
        ("no_files_found#4", "return self.input()", "ops.readers.File"),
        ("python_if_on_data#2", "return trivial_augment.trivial_augment_wide(images), labels", ""),
    ],
)
def test_the_line_is_found_in_every_way_to_define_a_graph(provoked, key, source, operator):
    """Rewritten code (conditionals), helper functions, classes and library policies lead to the learner's own line."""
    found = diagnose(raised_by(provoked, key))
    assert (found.place.source, found.operator) == (source, operator)


def test_a_mistake_in_a_worker_is_placed_at_its_own_line(provoked):
    """The data set's line is named, not the line that waited for the worker."""
    found = diagnose(raised_by(provoked, "worker_raised"))
    assert found.place.source == 'raise KeyError("images")'
    assert found.place.function == "__getitem__"
