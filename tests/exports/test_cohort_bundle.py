"""The Gradescope bundle: a document for each submission, safe names, and a manifest of what has none."""

import csv
import io
import json
import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grader_service.errors import UsageError
from grader_service.exports.cohorts.bundle import MANIFEST, Bundled, folder_name, write_bundle
from grader_service.exports.gradescope import GradescopeResults, gradescope
from grader_service.model.verdict import Outcome, Status
from grader_service.model.verdict_summary import CohortEntry, summary_of
from tests.regrade.makers import MOMENT
from tests.report.cases import rehearsed
from tests.report.factories import check, verdict

IDS = ("lms:1", "lms:2", "LMS:1", "..", "con", "-x", "a.b", "x" * 128)


def an_entry(made):
    """The verdict in force of a cohort."""
    return CohortEntry(summary_of(made), MOMENT, None, "lab.py")


def cohort(**changes):
    """A verdict for each id, with a verdict id of its own."""
    return [
        verdict(submission_id=name, verdict_id=f"v:{number}", learner=f"=cmd|'{number}", **changes)
        for number, name in enumerate(IDS)
    ]


def bundled(tmp_path, verdicts, documents=None, **options):
    """What was done, the files of the bundle, and its manifest."""
    texts = {made.verdict_id: made.model_dump_json() for made in verdicts} if documents is None else documents
    path = tmp_path / "bundle.zip"
    done = write_bundle(
        str(path),
        (an_entry(made) for made in verdicts),
        lambda ids: {name: texts[name] for name in ids if name in texts},
        **options,
    )
    with zipfile.ZipFile(path) as bundle:
        assert bundle.testzip() is None
        files = {name: bundle.read(name).decode() for name in bundle.namelist()}
    rows = list(csv.DictReader(io.StringIO(files["manifest.csv"], newline="")))
    return done, files, rows


def test_every_submission_has_its_document(tmp_path):
    """That which the export of one verdict writes; the manifest tells whose it is."""
    verdicts = cohort()
    done, files, rows = bundled(tmp_path, verdicts)
    assert done == Bundled(documents=len(IDS), held_back=0)
    assert len(files) == len(IDS) + 1
    assert [row["submission_id"].removeprefix("'") for row in rows] == list(IDS)
    assert tuple(rows[0]) == MANIFEST
    for made, row in zip(verdicts, rows, strict=True):
        results = GradescopeResults.model_validate_json(files[row["file"]])
        assert results == gradescope(made)
        assert results.extra_data.submission_id == made.submission_id
        assert (row["graded"], row["problem"]) == ("true", "")
    assert rows[0]["learner"] == "'=cmd|'0"


def test_names_are_safe_on_any_file_system(tmp_path):
    """No path leaves its folder, none differs from another in case alone, and none is a device of Windows."""
    _, files, rows = bundled(tmp_path, cohort())
    assert [row["file"].removesuffix("/results.json") for row in rows] == [
        "lms%3A1",
        "lms%3A2",
        "%4C%4D%53%3A1",
        "%2E%2E",
        "%63on",
        "%2Dx",
        "a.b",
        folder_name("x" * 128),
    ]
    assert len(folder_name("x" * 128)) == 117
    assert len({name.casefold() for name in files}) == len(files)


def test_the_same_cohort_gives_the_same_bytes(tmp_path):
    """No time of ours is in the bundle."""
    first = (bundled(tmp_path, cohort()), (tmp_path / "bundle.zip").read_bytes())[1]
    bundled(tmp_path, cohort())
    assert (tmp_path / "bundle.zip").read_bytes() == first
    with zipfile.ZipFile(tmp_path / "bundle.zip") as bundle:
        assert {info.date_time for info in bundle.infolist()} == {(1980, 1, 1, 0, 0, 0)}


def test_a_rehearsal_has_no_document_unless_asked_for(tmp_path):
    """It is no grade; the manifest says so."""
    made = rehearsed()
    done, files, rows = bundled(tmp_path, [made])
    assert (done, list(files)) == (Bundled(0, 1), ["manifest.csv"])
    assert (rows[0]["file"], rows[0]["graded"]) == ("", "false")
    assert "rehearsal is no grade" in rows[0]["problem"]
    done, files, _ = bundled(tmp_path, [made], allow_rehearsal=True)
    assert (done, len(files)) == (Bundled(1, 0), 2)


def test_a_verdict_without_a_grade_has_a_document_without_a_score(tmp_path):
    """Our fault is never 0 points."""
    made = verdict(status=Status.ERROR, score=None, checks=(check(outcome=Outcome.ERROR),))
    _, files, rows = bundled(tmp_path, [made])
    assert "score" not in json.loads(files[rows[0]["file"]])
    assert (rows[0]["graded"], rows[0]["score"]) == ("false", "")


@pytest.mark.parametrize(
    ("documents", "words"),
    [({}, "is not there"), ({"v:1": "{}"}, "expected a verdict"), ({"v:1": "\ud800"}, "expected a verdict")],
    ids=["absent", "no_verdict", "no_text"],
)
def test_a_document_that_cannot_be_read_costs_only_itself(documents, words, tmp_path):
    """The others are exported, and the manifest says what is wrong."""
    good, bad = verdict(submission_id="a", verdict_id="v:0"), verdict(submission_id="b", verdict_id="v:1")
    done, _, rows = bundled(tmp_path, [good, bad], {"v:0": good.model_dump_json()} | documents)
    assert done == Bundled(1, 1)
    assert rows[0]["problem"] == ""
    assert words in rows[1]["problem"]


def test_documents_are_read_some_at_a_time(tmp_path):
    """However many there are, a few hundred are in memory."""
    base = verdict().model_dump_json()
    asked = []

    def documents(ids):
        asked.append(len(ids))
        return dict.fromkeys(ids, base)

    entries = (an_entry(verdict(submission_id=f"s{n:03d}", verdict_id=f"v{n}")) for n in range(450))
    assert write_bundle(str(tmp_path / "b.zip"), entries, documents) == Bundled(450, 0)
    assert asked == [200, 200, 50]


def test_a_place_that_cannot_be_written_is_told(tmp_path):
    """Nothing is left behind."""
    with pytest.raises(UsageError, match="cannot be written"):
        write_bundle(str(tmp_path / "absent" / "b.zip"), (), lambda _: {})
    assert list(tmp_path.iterdir()) == []


@given(st.sets(st.text(max_size=140), max_size=12))
def test_names_of_any_ids_differ_in_more_than_case(ids):
    """Whatever an id holds, its folder is one plain name."""
    names = {folder_name(submission_id).casefold() for submission_id in ids}
    assert len(names) == len(ids)
    for name in names:
        assert set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789_-.%~")
        assert 0 < len(name) <= 117
        assert not name.startswith((".", "-"))
        assert not name.endswith(".")
