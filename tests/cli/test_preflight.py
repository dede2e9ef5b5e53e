"""`grader preflight` and `grader labs show`, as people run them."""

import io
import json

import pytest
from rich.console import Console

from grader_service.cli import preflight as command
from grader_service.cli.preflight_text import show_answer, show_preflight
from grader_service.errors import SandboxUnavailable, SubmissionRejected, UsageError
from grader_service.model.discovery import Claim, FirstBatch, LearnerException, NameFacts
from grader_service.model.place import Place
from grader_service.model.preflight import Preflight
from tests.command_line import invoked
from tests.factories import LOSES, WINS, a_discovery
from tests.report.factories import verdict
from tests.service.test_local_preflight import told

LISTS = f"where_dali_wins = {list(WINS)!r}\nwhere_dali_loses = {list(LOSES)!r}\n"


def shown(found, show=show_preflight):
    """What a terminal of 120 columns shows."""
    file = io.StringIO()
    show(Console(file=file, width=120, highlight=False), found)
    return file.getvalue()


@pytest.fixture
def looked(monkeypatch):
    """Has the command find this, without a sandbox."""

    def look(found):
        def answer(*_):
            if isinstance(found, Exception):
                raise found
            return found

        monkeypatch.setattr("grader_service.service.local.preflight", answer)

    return look


def test_all_is_there():
    """One line a name with what it holds, and a line for each other part."""
    text = shown(told())
    assert text.startswith("READY")
    assert "nothing was measured or graded" in text
    assert "✗" not in text
    for line in ("✓  dataset_dir", "✓  first_batch", "✓ 160 distinct JPEG files decode, and at least 100 were needed."):
        assert line in text


def test_what_is_missing_has_its_line_to_add():
    """Beside the mark; a name that nothing needs is told, and is no mistake."""
    discovery = a_discovery(
        first_batch=FirstBatch(status="missing"),
        dali_throughput=Claim(status="missing"),
        names=(NameFacts(name="batch0", kind="batch", count=32),),
    )
    text = shown(told(discovery=discovery))
    assert text.startswith("NOT READY")
    assert text.count("✗") == 2, "once in the table and once with what to do"
    assert "→ Add this line:" in text
    assert "first_batch = batch0" in text
    assert "·  dali_throughput     not found; nothing fails without it" in text


def test_a_stop_stands_above_all():
    """With its remedy, and once."""
    error = LearnerException(type="NameError", message="name 'x' is not defined", place=Place(file="s.py", line=3))
    text = shown(told(discovery=a_discovery(ran="raised", exception=error)))
    assert text.startswith("✗ Your code stopped at s.py, line 3")
    assert text.count("NameError") == 1


def test_text_of_learners_is_no_markup():
    """What looks like it is shown as it is."""
    text = shown(told(discovery=a_discovery(pytorch_throughput=Claim(status="unreadable", shown="[bold]x[/bold]"))))
    assert "[bold]x[/bold]" in text


def test_an_answer_of_the_service_is_shown_by_its_kind():
    """The preflight of a verdict that has one."""
    assert shown(verdict(preflight=told()), show_answer).startswith("READY")
    assert "PASSED" in shown(verdict(), show_answer)


@pytest.mark.parametrize(
    ("found", "status"),
    [
        (told(), 0),
        (told(discovery=a_discovery(first_batch=FirstBatch(status="missing"))), 1),
        (told(discovery=a_discovery(ran="raised", needs_gpu="Found no NVIDIA driver", pipelines=(), loaders=())), 4),
    ],
    ids=["ready", "something is missing", "only a GPU could tell"],
)
def test_exit_codes_and_json(looked, tmp_path, found, status):
    """With `--json -` standard output is the preflight and nothing else; with a file the terminal is told as well."""
    looked(found)
    path, saved = tmp_path / "s.py", tmp_path / "p.json"
    path.write_text("x = 1\n")
    words = ("preflight", str(path), "--sandbox", "process", "--json")
    environment = {"GRADER_STATE_DIR": str(tmp_path / "state")}
    done = invoked(*words, "-", status=status, **environment)
    assert Preflight.model_validate_json(done.stdout) == found
    assert json.loads(done.stdout)["schema"] == "grader.preflight/v1"
    done = invoked(*words, str(saved), status=status, **environment)
    assert Preflight.model_validate_json(saved.read_text()) == found
    assert "preflight: nothing was measured or graded" in " ".join(done.stdout.split())


@pytest.mark.parametrize(
    ("error", "code"),
    [(SubmissionRejected("submission.empty", "It is empty."), 5), (SandboxUnavailable("no engine"), 3)],
)
def test_what_ends_it_has_the_exit_code_of_the_error(looked, tmp_path, error, code):
    """A submission that cannot be run, and our own failure."""
    looked(error)
    path = tmp_path / "s.py"
    path.write_text("x = 1\n")
    with pytest.raises(type(error)) as raised:
        invoked("preflight", str(path), "--sandbox", "process", GRADER_STATE_DIR=str(tmp_path / "state"))
    assert raised.value.exit_code == code


def test_usage(tmp_path):
    """A path that is not there, a file that could not be written, and a lab that is not there."""
    path = tmp_path / "s.py"
    with pytest.raises(UsageError, match="is not a file or folder"):
        invoked("preflight", str(path), "--sandbox", "process", GRADER_STATE_DIR=str(tmp_path / "state"))
    path.write_text("x = 1\n")
    with pytest.raises(UsageError, match="Nothing was done"):
        invoked("preflight", str(path), "--sandbox", "process", "--json", str(tmp_path))
    with pytest.raises(UsageError, match="labs are"):
        invoked("preflight", str(path), "--lab", "nope", "--sandbox", "process")
    assert set(command.EXIT_CODES.values()) == {0, 1, 4}


def test_a_folder_is_packed(looked, tmp_path):
    """As for `grader grade`."""
    looked(told())
    (tmp_path / "lab").mkdir()
    (tmp_path / "lab" / "main.py").write_text("x = 1\n")
    words = ("preflight", str(tmp_path / "lab"), "--sandbox", "process")
    done = invoked(*words, GRADER_STATE_DIR=str(tmp_path / "state"))
    assert "entry point is main.py" in done.stderr


@pytest.mark.integration
def test_a_whole_preflight(tmp_path):
    """Without a data set and without DALI: what is there is told, and what is not."""
    path = tmp_path / "s.py"
    path.write_text(f"{LISTS}print('hello')\n")
    done = invoked("preflight", str(path), "--sandbox", "process", status=1, GRADER_STATE_DIR=str(tmp_path / "state"))
    assert "without isolation" in done.stderr
    assert "✗  dataset_dir" in done.stdout
    assert "✓  where_dali_wins     3 entries" in done.stdout


def test_labs_show_lists_the_names():
    """With what each holds and the steps that look at it."""
    text = invoked("labs", "show", "dali-pipelines", COLUMNS="160").stdout
    (row,) = [line for line in text.splitlines() if line.startswith("dataset_dir ")]
    assert "at least 100 different ones" in row
    assert row.rstrip().endswith("baseline")
    (row,) = [line for line in text.splitlines() if line.startswith("dali_throughput ")]
    assert row.rstrip().endswith("benchmark (optional)")
