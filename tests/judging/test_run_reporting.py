"""What a verdict says of the run: how it ended, where, why, and what to do."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grader_service.judging.run_reporting import report
from grader_service.model.discovery import LearnerException
from grader_service.model.evidence import Ending
from grader_service.model.place import Place
from tests.checks.diagnosis.test_matching import DALI
from tests.factories import a_discovery, a_pipeline, an_evidence, ended

PLACE = Place(file="submission.py", line=40, source="batch = next(dali_iter)")
REPORT = DALI.format(operator="readers.file", file="/tmp/notebook-cells/cell_003.py", inner="failed: No files found.")


def raised(name="StopIteration", message="", place=PLACE, **changes):
    frames = () if place is None else (place,)
    exception = LearnerException(type=name, message=message, place=place, frames=frames)
    return a_discovery(ran="raised", exception=exception, **changes)


def told(discovery, **run):
    evidence = an_evidence(discovery=discovery)
    return report(evidence.model_copy(update={"run": evidence.run.model_copy(update=run)}))


def test_a_run_to_the_end():
    """Has no place, no cause and nothing to do."""
    run = told(a_discovery(duration_s=12.0))
    assert (run.state, run.code, run.outcome) == ("completed", "run.completed", "Your code ran to its end in 12 s.")
    assert (run.place, run.remedy, run.traceback, run.exception) == (None, "", "", None)


def test_a_known_stop_names_the_mistake_first():
    """Place, type and likely cause are one sentence; the remedy is apart."""
    run = told(raised(message="the end"))
    assert (run.state, run.code) == ("raised", "run.raised")
    assert run.outcome.startswith(
        "Your code stopped at submission.py, line 40 (StopIteration): The iterator was at the end of its epoch"
    )
    assert run.remedy.startswith("Give the DALI iterator auto_reset=True")
    assert run.traceback.splitlines() == [
        "Traceback (most recent call last):",
        '  File "submission.py", line 40',
        "    batch = next(dali_iter)",
        "StopIteration: the end",
    ]


def test_an_unknown_stop_is_told_as_python_says_it():
    """Where no row fits nothing is guessed, and there is something to do all the same."""
    run = told(raised("MyError", "my own"))
    assert run.outcome == "Your code stopped at submission.py, line 40 with MyError: my own"
    assert run.remedy.startswith("Correct submission.py, line 40")
    assert told(raised("MyError", "my own", place=None)).outcome == "Your code stopped with MyError: my own"


def test_the_line_of_the_graph_is_named_beside_the_line_that_stopped():
    """DALI stops where the pipeline is built; the mistake is in the graph, perhaps in another cell."""
    run = told(raised("RuntimeError", REPORT, Place(file="lab.ipynb", line=2, cell=4, source="pipe.build()")))
    assert run.outcome.startswith(
        "Your code stopped at cell 4, line 2 (RuntimeError), because of cell 3, line 12: The reader"
    )
    assert (run.cause_place.cell, run.cause_place.line) == (3, 12)
    assert "cell_003.py" not in run.exception.message + run.traceback + run.outcome


def test_the_same_line_is_not_named_twice():
    """An error at the very line that stopped has one place."""
    place = Place(file="lab.ipynb", line=12, cell=3, source="pipe.build()")
    assert told(raised("RuntimeError", REPORT, place)).cause_place is None
    module = REPORT.replace("/tmp/notebook-cells/cell_003.py", "/workspace/src/graph.py")
    same, other = (Place(file=file, line=12) for file in ("src/graph.py", "submission.py"))
    assert told(raised("RuntimeError", module, same)).cause_place is None
    assert told(raised("RuntimeError", module, other)).cause_place.where == "graph.py, line 12"


def test_a_module_that_python_cannot_read_did_not_start():
    """A syntax error of the entry point: no line of it ran. That of a helper, or of a later cell, stopped the run."""
    place = Place(file="submission.py", line=3, source="def f(:")
    run = told(raised("SyntaxError", "invalid syntax", place), entry_point="lab/submission.py")
    assert (run.state, run.code) == ("not_started", "run.syntax_error")
    assert run.outcome.startswith("None of your code ran: Python cannot read it at submission.py, line 3")
    assert "bracket" in run.remedy
    helper = told(raised("SyntaxError", "invalid syntax", Place(file="helper.py", line=3)))
    cell = told(raised("IndentationError", "unexpected indent", Place(file="lab.ipynb", line=3, cell=2)))
    assert [(one.state, one.code) for one in (helper, cell)] == [("raised", "run.syntax_error")] * 2


def test_what_a_rehearsal_cannot_do():
    """Is said to need a GPU, and nothing is diagnosed."""
    run = told(raised("RuntimeError", "Found no NVIDIA driver", needs_gpu="Found no NVIDIA driver"))
    assert run.code == "run.needs_gpu"
    assert run.outcome.startswith("Your code needs a GPU, from submission.py, line 40 on")
    assert "on a host with a GPU" in run.remedy


def test_a_loop_without_an_end_is_explained_by_its_iterator():
    """A timeout names an iterator without reader_name when there is one, and the limit."""
    slow = LearnerException(type="LearnerTimeout", message="stopped after 900 s", place=PLACE, frames=(PLACE,))
    endless = a_discovery(ran="timed_out", exception=slow, pipelines=(a_pipeline(name="train_iter"),))
    run = told(endless, learner_limit_s=900.0)
    assert (run.state, run.code, run.limit_s) == ("timed_out", "run.timed_out", 900.0)
    assert run.outcome.startswith(
        "Your code was still running at submission.py, line 40 when its time of 900 s was up: `train_iter` has no "
        "reader_name"
    )
    assert run.cause in run.outcome
    other = told(a_discovery(ran="timed_out", exception=slow, pipelines=(a_pipeline(reader_name="Reader"),)))
    assert other.outcome.endswith("when its time was up, and was stopped.")
    assert other.cause == ""
    assert "loop" in other.remedy


def test_waiting_for_nothing_is_told_as_that():
    """A stall is no timeout."""
    slow = LearnerException(type="LearnerTimeout", message="stopped after 130 s", place=PLACE, frames=(PLACE,))
    run = told(a_discovery(ran="stalled", exception=slow, duration_s=130.0))
    assert (run.state, run.code) == ("stalled", "run.stalled")
    assert run.outcome.endswith("at submission.py, line 40 without doing anything, and was ended after 130 s.")


def test_leaving_early():
    """`sys.exit` before the last line."""
    run = told(a_discovery(ran="exited", exit_code=3))
    assert (run.state, run.code) == ("raised", "run.exited")
    assert "with exit code 3" in run.outcome


@pytest.mark.parametrize(
    ("ending", "state", "code"),
    [
        (Ending.TIMED_OUT, "timed_out", "run.timed_out"),
        (Ending.OUT_OF_MEMORY, "killed", "run.out_of_memory"),
        (Ending.EXITED, "killed", "run.crashed"),
        (Ending.PROTOCOL_VIOLATION, "killed", "run.interfered"),
    ],
)
def test_a_pod_that_ended_without_a_word(ending, state, code):
    """How it ended is the host's word; every such end has something to do."""
    run = report(ended(ending))
    assert (run.state, run.code) == (state, code)
    assert run.outcome.startswith("Your code ")
    assert run.remedy


def test_the_output_is_the_learners_alone():
    """Its last lines, without ours in tracebacks, cells by their numbers."""
    output = (
        "epoch 1\n"
        "Traceback (most recent call last):\n"
        '  File "/grader/code/grader_guest/learner/execution.py", line 120, in run_source\n'
        "    exec(code, namespace)\n"
        '  File "/tmp/notebook-cells/cell_002.py", line 7, in <module>\n'
        "    boom()\n"
        "ValueError: no\n"
    )
    tail = told(a_discovery(), learner_output="line\n" * 100 + output).output_tail
    assert "grader_guest" not in tail
    assert "execution.py" not in tail
    assert "  cell 2, line 7, in <module>\n    boom()\nValueError: no" in tail
    assert len(tail.splitlines()) == 40


@given(
    name=st.sampled_from(["RuntimeError", "FileNotFoundError", "StopIteration", "SyntaxError"]),
    message=st.text(max_size=8000) | st.text(max_size=300).map(lambda text: f"No such file or directory: '{text}'"),
    source=st.text(max_size=200) | st.just("x" * 180 + " next("),
)
def test_whatever_is_raised_is_bounded(name, message, source):
    """The first sentence and the traceback stay short, and nothing raises."""
    run = told(raised(name, message, Place(file="f" * 200, line=1, source=source)))
    assert len(run.outcome) <= 1000
    assert len(run.traceback) <= 4000
