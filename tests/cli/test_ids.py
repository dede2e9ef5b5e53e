"""One id everywhere: commands take the id of a submission, the id of a run, or a unique beginning of either."""

import json
from xml.etree.ElementTree import fromstring

import pytest
from sqlalchemy import insert, select

from grader_service.errors import InfrastructureError, UsageError
from grader_service.store import leases
from grader_service.store.ids import AmbiguousId, UnknownId
from grader_service.store.tables import RunRow, table_of
from tests.command_line import invoked, typed
from tests.exports.corpus import ROOT
from tests.regrade.deps import overwrite, read
from tests.regrade.stored import fill
from tests.report.factories import verdict
from tests.store.factories import a_submission, accept, migrated

FORMS = {
    "a submission": lambda submission_id, run_id: submission_id,
    "a run": lambda submission_id, run_id: run_id,
    "the beginning of a submission": lambda submission_id, run_id: submission_id[:6],
    "the beginning of a run": lambda submission_id, run_id: run_id[:12],
}


@pytest.fixture
def environment(tmp_path):
    """Of commands beside a database in a state folder."""
    return {"GRADER_STATE_DIR": str(tmp_path / "state")}


@pytest.fixture
def store(tmp_path):
    """That database, without a submission."""
    with migrated(f"sqlite:///{tmp_path}/state/grader.db") as opened:
        yield opened


@pytest.fixture
def dead_lettered(store):
    """Id and run of a submission that needs attention, behind one that waits."""
    accept(store, a_submission(submission_id="early:1", learner=None))
    accept(store, a_submission(submission_id="lms:4711", learner=None))
    (run_id,) = read(store, RunRow.run_id, where=[RunRow.submission_id == "lms:4711"])[0]
    dead_letter_run(store, run_id)
    return "lms:4711", run_id


def dead_letter_run(store, run_id):
    overwrite(store, RunRow, RunRow.run_id == run_id, state="needs_attention", attempts=3, last_error="engine gone")


def states(store):
    return dict(read(store, RunRow.run_id, RunRow.state))


@pytest.mark.parametrize("form", FORMS)
def test_every_command_takes_every_form(store, dead_lettered, environment, form):
    """They mean the same submission, and `queue` says in the form of the whole queue what is the matter with it."""
    submission_id, run_id = dead_lettered
    text = FORMS[form](*dead_lettered)
    told = json.loads(invoked("status", text, "--json", **environment).stdout)
    assert (told["submission"]["submission_id"], told["runs"][0]["run_id"]) == dead_lettered
    whole = json.loads(invoked("queue", "--json", status=1, **environment).stdout)
    alone = json.loads(invoked("queue", text, "--json", status=1, **environment).stdout)
    assert alone["submission_id"] == submission_id
    assert alone["needs_attention"] == whole["needs_attention"]
    assert alone["runs"] == [{"state": "needs_attention", "purpose": "live", "runs": 1}]
    assert set(whole) < set(alone)
    assert "engine gone" in invoked("queue", text, status=1, **environment).stdout
    assert typed("retry", text, **environment) == ["1 runs are queued again"]
    assert states(store)[run_id] == "run_queued"
    told = typed("queue", text, **environment)
    assert told[0] == f"submission {submission_id}"
    assert f"run {run_id}: run_queued (live), 1 ahead of it" in " ".join(told)
    (place,) = json.loads(invoked("queue", text, "--json", **environment).stdout)["places"]
    assert (place["run_id"], place["ahead"]) == (run_id, 1)


def test_ids_are_whole_where_output_is_no_terminal(store, environment):
    """However long they are and however narrow the terminal of whoever asks is: another program reads them."""
    submission_id = "lms:" + "4711" * 31
    accept(store, a_submission(submission_id=submission_id, learner=None))
    (run_id,) = read(store, RunRow.run_id, where=[RunRow.submission_id == submission_id])[0]
    dead_letter_run(store, run_id)
    narrow = {"COLUMNS": "40", **environment}
    assert f"needs attention: run {run_id} of {submission_id}: engine gone" in typed("queue", status=1, **narrow)
    told = typed("status", "lms:", **narrow)
    assert told[0] == f"submission {submission_id}"
    assert told[1] == f"run {run_id}: needs_attention (live), 3 infrastructure failures"


def test_a_run_means_itself_and_a_submission_all_its_runs(store, dead_lettered, environment):
    """What is in another state is named with it, and nothing else is tried again."""
    submission_id, first = dead_lettered
    second = "0" * 32
    with store.transaction() as connection:
        row = connection.execute(select(table_of(RunRow)).where(RunRow.run_id == first)).mappings().one()
        connection.execute(insert(table_of(RunRow)).values(dict(row) | {"run_id": second}))
    typed("retry", second, **environment)
    assert (states(store)[first], states(store)[second]) == ("needs_attention", "run_queued")
    with pytest.raises(UsageError, match=f"run {second} of .* does not need attention: run {second} is run_queued"):
        typed("retry", second, **environment)
    dead_letter_run(store, second)
    assert typed("retry", submission_id, **environment) == ["2 runs are queued again"]
    claim = leases.claim(store, "run", "runner", 60.0)
    assert claim.submission_id == "early:1"
    with pytest.raises(UsageError, match=r"does not need attention: (run \w+ is run_queued(, )?){2};"):
        typed("retry", submission_id, **environment)


def test_what_fits_none_or_several_is_said(store, dead_lettered, environment):
    """Nothing is done; `status` of what was never accepted ends as it always did."""
    accept(store, a_submission(submission_id="lms:4712", learner=None))
    assert "no submission and no run has the id 'nobody'" in invoked("status", "nobody", status=1, **environment).stdout
    for command in ("queue", "retry"):
        with pytest.raises(UnknownId, match=r"`grader cohort export`"):
            typed(command, "nobody", **environment)
    for command in ("status", "queue", "retry"):
        with pytest.raises(AmbiguousId, match="submission lms:4711, submission lms:4712"):
            typed(command, "lms:", **environment)
    done = invoked("export", "--format", "junit", "lms:", "nobody", "lms:4711", status=2, **environment)
    several, unknown, ungraded = done.stderr.splitlines()
    assert "lms:: there is no such file, and 'lms:' is the beginning of several ids" in several
    assert "nobody: there is no such file, and no submission and no run has the id 'nobody'" in unknown
    assert "submission lms:4711 has no verdict yet. `grader status lms:4711`" in ungraded


def test_verdicts_in_force_are_exported_and_planned_by_id(store, environment, tmp_path, monkeypatch):
    """Beside files, which go first; a re-grade is planned of the same ids."""
    one, two, three = fill(store, 3)
    (run_id,) = read(store, RunRow.run_id, where=[RunRow.submission_id == two])[0]
    monkeypatch.chdir(tmp_path)
    (tmp_path / three).write_text(verdict(submission_id="of:a:file").model_dump_json())
    done = invoked("export", "--format", "junit", "--allow-rehearsal", one, run_id[:12], three, **environment)
    suites = fromstring(done.stdout)  # noqa: S314 - our own document
    assert {suite.get("name").partition(" ")[2] for suite in suites} == {one, two, "of:a:file"}
    chosen = ("--submission", one, "--submission", run_id[:12])
    batch = json.loads(invoked("regrade", "plan", *chosen, "-m", "why", "--json", "--dry-run", **environment).stdout)
    assert sorted(batch["selection"]["submissions"]) == [one, two]


def test_an_export_of_files_alone_makes_no_database(environment, tmp_path):
    """Nor does a slip in the name of one; a database that does not answer is our fault."""
    published = str(ROOT / "docs/gpu/verdict-h100.json")
    done = invoked("export", "--format", "junit", published, "verdict.jsn", status=2, **environment)
    assert "verdict.jsn: there is no such file, and no submission was accepted here" in done.stderr
    assert done.stdout
    assert list(tmp_path.iterdir()) == []
    gone = {"GRADER_DATABASE_URL": f"postgresql+psycopg://grader@/none?host={tmp_path}"}
    with pytest.raises(InfrastructureError, match=r"verdict\.jsn is not a file, and could not be looked up as an id"):
        invoked("export", "--format", "junit", published, "verdict.jsn", **environment, **gone)
