"""No work is lost: files are checked before it, and the verdict is printed whatever becomes of them."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from grader_service.cli.delivery import Delivery
from grader_service.errors import UsageError
from grader_service.model.verdict import Verdict
from grader_service.report.audience import Audience
from tests.command_line import invoked
from tests.factories import an_evidence
from tests.report.factories import provenance, verdict

SEED = provenance().seed
FULL = "/dev/full"
"""Takes no byte, which is known only when one is written."""


@pytest.fixture
def delivered(capsys):
    """`delivered(found, **where)`: (whether all was written, what went to standard output and error)."""

    def deliver(found=None, /, **where):
        made = verdict()
        whole = Delivery(**where).deliver(made, made.model_dump_json(indent=2) + "\n", found)
        return whole, *capsys.readouterr()

    return deliver


def test_all_that_was_asked_for_is_written(delivered, tmp_path):
    """Beside the verdict in words."""
    names = {part: str(tmp_path / part) for part in ("json_file", "evidence", "report")}
    whole, said, aside = delivered(an_evidence(), **names)
    assert (whole, aside) == (True, "")
    assert said.startswith("PASSED")
    assert said.endswith(f"Report: {tmp_path / 'report'}\n")
    assert Verdict.model_validate_json((tmp_path / "json_file").read_text()) == verdict()
    assert json.loads((tmp_path / "evidence").read_text())["run"]
    assert (tmp_path / "report").read_text().startswith("<!doctype html>")


@pytest.mark.parametrize("lost", ["json_file", "evidence", "report"])
def test_a_file_that_fails_takes_nothing_else_away(delivered, tmp_path, lost):
    """The others are there, the verdict is printed, and as JSON too where its file is the one that is lost."""
    names = {part: FULL if part == lost else str(tmp_path / part) for part in ("json_file", "evidence", "report")}
    whole, said, aside = delivered(an_evidence(), **names)
    assert not whole
    assert aside == f"grader: {FULL} cannot be written: [Errno 28] No space left on device\n"
    assert said.startswith("PASSED")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted({"json_file", "evidence", "report"} - {lost})
    if lost == "json_file":
        assert Verdict.model_validate_json(said[said.index("\n{") :]) == verdict()
    assert (f"Report: {FULL}" in said) is False


def test_what_our_page_raises_comes_after_the_verdict(delivered, tmp_path, monkeypatch, capsys):
    """A defect of ours in it is still told, and the verdict is printed and written before."""
    monkeypatch.setattr("grader_service.report.html.render_report", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        delivered(json_file=str(tmp_path / "v.json"), report=str(tmp_path / "r.html"))
    assert capsys.readouterr().out.startswith("PASSED")
    assert (tmp_path / "v.json").read_text() == verdict().model_dump_json(indent=2) + "\n"


def test_standard_output_holds_one_thing(delivered):
    """The verdict as JSON and no word beside it; with the evidence there, the words go to standard error."""
    whole, said, aside = delivered(json_file="-")
    assert (whole, Verdict.model_validate_json(said), aside) == (True, verdict(), "")
    whole, said, aside = delivered(an_evidence(), evidence="-")
    assert (whole, "run" in json.loads(said)) == (True, True)
    assert aside.startswith("PASSED")


def test_evidence_that_there_is_not_is_said(delivered, tmp_path):
    """No empty file is left."""
    whole, _, aside = delivered(evidence=str(tmp_path / "e.json"))
    assert whole
    assert aside == f"grader: no evidence was written to {tmp_path / 'e.json'}: no run finished\n"
    assert not (tmp_path / "e.json").exists()


@pytest.mark.parametrize("audience", Audience)
def test_staff_are_shown_more(delivered, tmp_path, audience):
    """Codes on the terminal, and what the held-out images were made from in the report; learners see neither."""
    _, said, _ = delivered(report=str(tmp_path / "r.html"), audience=audience)
    page = (tmp_path / "r.html").read_text()
    for_staff = audience is Audience.STAFF
    assert (verdict().checks[0].code in said, SEED in page) == (for_staff, for_staff)


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder with a submission, in which commands are given; `graded` says what came of one."""
    (tmp_path / "s.pptx").write_text("no submission")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def graded(*words, status):
    """What came of grading it, which needs no pod: it is no kind of file that can be graded."""
    how = ("--sandbox", "process", "--device", "cpu")
    return invoked("grade", "s.pptx", *how, *words, status=status, GRADER_STATE_DIR=str(Path.cwd() / "state"))


@pytest.mark.parametrize("option", ["--json", "--report", "--evidence"])
@pytest.mark.parametrize(
    ("target", "said"),
    [(".", "is a folder"), ("none/f", "there is no folder none; make it first"), ("s.pptx", "would overwrite")],
)
def test_nothing_is_graded_for_a_file_that_cannot_be_written(place, option, target, said):
    """The message names option and reason; not even a state folder is made."""
    with pytest.raises(UsageError, match=f"^{option} .*{said}.*Nothing was done"):
        graded(option, target, status=2)
    assert [path.name for path in place.iterdir()] == ["s.pptx"]


def test_submit_checks_before_it_posts(place):
    """Redis is not even asked; a file for a verdict that is not waited for is refused."""
    nowhere = {"GRADER_REDIS_URL": "redis://127.0.0.1:1/0"}
    with pytest.raises(UsageError, match=r"^--json none/f cannot be written"):
        invoked("submit", "s.pptx", "--wait", "1", "--json", "none/f", **nowhere)
    with pytest.raises(UsageError, match="needs --wait SECONDS"):
        invoked("submit", "s.pptx", "--json", "v.json", **nowhere)


@pytest.mark.integration
def test_the_command_prints_a_verdict_that_could_not_be_kept(place):
    """In words and as JSON, with the exit code of our fault: nobody takes a missing file for a grade."""
    said = graded(status=5).stdout
    assert said.startswith("✗ ")
    assert "\nREJECTED" in said
    done = graded("--json", FULL, "--report", "r.html", "--evidence", "e.json", status=3)
    assert done.stdout.startswith(said)
    assert json.loads(done.stdout[done.stdout.index("\n{") :])["code"] == "submission.unknown_type"
    assert "No space left on device" in done.stderr
    assert "no evidence was written to e.json" in done.stderr
    assert (place / "r.html").exists()
    assert json.loads(graded("--json", "-", "--for", "staff", status=5).stdout)["status"] == "rejected"


@pytest.mark.integration
def test_a_reader_that_goes_away_is_no_failed_submission():
    """`grader … | head`: 141 as for other programs, where 1 would say that a submission failed."""
    command = [sys.executable, "-m", "grader_service", "labs", "list"]
    root = Path(__file__).parents[2]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=root) as process:
        process.stdout.close()
        assert (process.stderr.read(), process.wait()) == (b"", 141)
