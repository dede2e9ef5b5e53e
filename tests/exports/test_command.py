"""`grader export` as it is called: files, folders, streams and exit codes."""

import json
from xml.etree.ElementTree import fromstring

import pytest
from typer.testing import CliRunner

from grader_service.cli.app import app
from grader_service.errors import UsageError
from grader_service.exports.gradescope import GradescopeResults
from grader_service.exports.prairielearn import PrairieLearnResults
from grader_service.signer.signatures import Signer
from tests.command_line import grader
from tests.exports.corpus import CORPUS, as_lines
from tests.exports.junit_schema import violations
from tests.levels.parts import ROOT
from tests.report.cases import rehearsed
from tests.report.factories import verdict

MODELS = {"gradescope": GradescopeResults, "prairielearn": PrairieLearnResults}


def call(*arguments, given=None):
    return CliRunner().invoke(app, ["export", *map(str, arguments)], input=given)


@pytest.fixture
def files(tmp_path):
    """Verdicts on three submissions, a file each."""
    found = []
    for name in ("lms:1", "lms:2", ".."):
        path = tmp_path / f"{len(found)}.json"
        path.write_text(verdict(submission_id=name).model_dump_json(indent=1))
        found.append(path)
    return found


@pytest.mark.parametrize("form", ["gradescope", "prairielearn", "junit"])
def test_the_installed_command_exports_the_published_verdict(form, tmp_path):
    """A verdict of a real GPU run becomes a valid document on standard output, and nothing else does."""
    done = grader("export", "--format", form, ROOT / "docs/gpu/verdict-h100.json", state_dir=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    if form == "junit":
        assert violations(fromstring(done.stdout)) == []  # noqa: S314 - our own document
    else:
        assert MODELS[form].model_validate_json(done.stdout).score == {"gradescope": 100, "prairielearn": 1}[form]


@pytest.mark.parametrize("form", MODELS)
def test_a_folder_gets_one_document_for_each_submission(form, files, tmp_path):
    """Under safe names, also for ids that are dots; the same call writes the same bytes."""
    out = tmp_path / "out" / "deep"
    assert call("--format", form, "--out", f"{out}/", *files).exit_code == 0
    first = {path.name: path.read_bytes() for path in out.iterdir()}
    assert set(first) == {"lms%3A1.json", "lms%3A2.json", "%2E%2E.json"}
    for content in first.values():
        MODELS[form].model_validate_json(content)
    assert call("--format", form, "--out", out, *files[::-1]).exit_code == 0
    assert {path.name: path.read_bytes() for path in out.iterdir()} == first


def test_junit_holds_many_in_one_file_or_one_in_each(files, tmp_path):
    """One `testsuites` on standard output; with a folder, a file for each submission."""
    root = fromstring(call("--format", "junit", *files).stdout)  # noqa: S314 - our own document
    assert [suite.get("name").split()[1] for suite in root] == ["..", "lms:1", "lms:2"]
    out = tmp_path / "reports"
    out.mkdir()
    assert call("--format", "junit", "--out", out, *files).exit_code == 0
    assert {path.name for path in out.iterdir()} == {"lms%3A1.xml", "lms%3A2.xml", "%2E%2E.xml"}


def test_many_documents_do_not_fit_into_one_file(files, tmp_path):
    """The message says how to name a folder, and nothing is written."""
    done = call("--format", "gradescope", "--out", tmp_path / "results.json", *files)
    assert isinstance(done.exception, UsageError)
    assert "--out DIR/" in str(done.exception)
    assert not (tmp_path / "results.json").exists()


def test_lines_come_by_standard_input():
    """`-` reads JSON lines."""
    done = call("--format", "junit", "-", given=as_lines(*CORPUS.values()))
    root = fromstring(done.stdout)  # noqa: S314 - our own document
    ids = {item.submission_id for item in CORPUS.values() if item.mode.value == "official"}
    assert {suite.get("name").split()[1] for suite in root} == ids
    assert done.exit_code == 1  # the rehearsals of the corpus


def test_what_is_no_verdict_does_not_stop_the_others(files, tmp_path):
    """Exit code 2 at the end, a line for each, and the rest is there."""
    (tmp_path / "notes.json").write_text("{}")
    done = call("--format", "gradescope", "--out", f"{tmp_path}/o/", tmp_path / "notes.json", "/nowhere.json", *files)
    assert done.exit_code == 2
    lines = done.stderr.splitlines()
    assert lines[0].startswith(f"grader: {tmp_path}/notes.json: expected a verdict of schema grader.verdict/v1")
    assert lines[1].startswith("grader: /nowhere.json: cannot be read: No such file or directory")
    assert len(list((tmp_path / "o").iterdir())) == 3


def test_a_rehearsal_needs_a_word(tmp_path):
    """Held back with exit code 1; with the option it is exported and says what it is."""
    path = tmp_path / "r.json"
    path.write_text(rehearsed().model_dump_json())
    done = call("--format", "gradescope", path)
    assert (done.exit_code, done.stdout) == (1, "")
    assert "--allow-rehearsal" in done.stderr
    done = call("--format", "gradescope", "--allow-rehearsal", path)
    assert done.exit_code == 0
    assert "this is not an official grade" in json.loads(done.stdout)["output"]


def test_only_what_the_key_signed_is_exported(tmp_path):
    """The signed verdict is, the changed one is held back."""
    signer = Signer.from_folder(tmp_path / "keys")
    good = signer.sign(verdict(submission_id="good", signature=None))
    bad = signer.sign(verdict(submission_id="bad", signature=None)).model_copy(update={"score": 49.0})
    lines = as_lines(good, bad)
    done = call("--format", "junit", "--verify", signer.public_key, "-", given=lines)
    assert done.exit_code == 1
    assert [suite.get("name") for suite in fromstring(done.stdout)] == ["dali-pipelines good"]  # noqa: S314
    assert "standard input, line 2: the signature does not hold" in done.stderr
    assert isinstance(call("--format", "junit", "--verify", "c4", "-", given=lines).exception, UsageError)


def test_older_verdicts_of_a_submission_are_left_out(files):
    """And the command says so."""
    done = call("--format", "junit", files[0], "-", given=as_lines(verdict(submission_id="lms:1")))
    assert done.exit_code == 0
    assert "1 older verdicts on the same submissions were left out" in done.stderr
