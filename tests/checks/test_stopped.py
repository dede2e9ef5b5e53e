"""What checks say when a learner's code stopped half-way: where, with what, and what to do about it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checks.cuda_batch.check import CHECK as BATCH
from checks.jpeg_dataset.check import CHECK as JPEG
from checks.reflections.check import CHECK as REFLECTIONS
from checks.stopped import MAX_ADVICE, stopped_before
from checks.throughput_ratio.check import CHECK as RATIO
from grader_service.model.evidence import Claim, Ending, LearnerException, PathClaim, Place, TextList
from tests.checks.judged import judged
from tests.diagnosis.test_matching import DALI
from tests.factories import a_discovery, a_pipeline, an_evidence, ended

PLACE = Place(file="submission.py", line=40, source="batch = next(dali_iter)")
REPORT = DALI.format(operator="readers.file", file="/tmp/notebook-cells/cell_003.py", inner="failed: No files found.")


def raised(name="StopIteration", message="", place=PLACE, **changes):
    exception = LearnerException(type=name, message=message, place=place)
    return a_discovery(ran="raised", exception=exception, **changes)


def test_a_known_stop_says_what_to_do():
    """The first sentence names place, type and message; cause and remedy follow."""
    text = stopped_before(raised(message="the end"))
    first, _, rest = text.partition(" Likely cause: ")
    assert (
        first == " Your code stopped at submission.py, line 40 (`batch = next(dali_iter)`) with StopIteration: the end"
    )
    assert rest.startswith("The iterator was at the end of its epoch")
    assert " What to do: Give the DALI iterator auto_reset=True" in rest


def test_an_unknown_stop_is_told_as_it_is():
    """Where no row fits nothing is added."""
    text = stopped_before(raised("MyError", "my own", place=None))
    assert text == " Your code stopped with MyError: my own"


def test_the_line_of_the_graph_is_named_beside_the_line_that_stopped():
    """DALI stops where the pipeline is built; the mistake is in the graph, perhaps in another cell."""
    text = stopped_before(
        raised("RuntimeError", REPORT, Place(file="lab.ipynb", line=2, cell=4, source="pipe.build()"))
    )
    assert text.startswith(" Your code stopped at cell 4, line 2 (`pipe.build()`) with RuntimeError: Critical error")
    named = "cell 3, line 12 (`images = fn.readers.file(jpegs)`)"
    assert f" Likely cause, at {named}: The reader found no image" in text


def test_the_same_line_is_not_named_twice():
    """An error at the very line that stopped has one place."""
    place = Place(file="lab.ipynb", line=12, cell=3, source="pipe.build()")
    assert " Likely cause: The reader" in stopped_before(raised("RuntimeError", REPORT, place))
    module = REPORT.replace("/tmp/notebook-cells/cell_003.py", "/workspace/src/graph.py")
    same, other = (Place(file=file, line=12) for file in ("src/graph.py", "submission.py"))
    assert " Likely cause: The reader" in stopped_before(raised("RuntimeError", module, same))
    assert " Likely cause, at graph.py, line 12 " in stopped_before(raised("RuntimeError", module, other))


def test_a_loop_without_an_end_is_explained_by_its_iterator():
    """A timeout names an iterator without reader_name when there is one, and says nothing more when there is none."""
    slow = LearnerException(type="LearnerTimeout", message="stopped after 900 s", place=PLACE)
    endless = a_discovery(ran="timed_out", exception=slow, pipelines=(a_pipeline(name="train_iter"),))
    text = stopped_before(endless)
    assert text.startswith(" Your code was still running at submission.py, line 40 ")
    assert " was stopped. Likely cause: `train_iter` has no reader_name" in text
    ended = a_discovery(ran="timed_out", exception=slow, pipelines=(a_pipeline(reader_name="Reader"),))
    assert stopped_before(ended).endswith(" when its time was up, and was stopped.")


@pytest.mark.parametrize("ran", ["completed", "exited"])
def test_other_endings_are_told_as_before(ran):
    """A run to the end needs no words, and sys.exit only its code."""
    expected = {"completed": "", "exited": " Your code left early with exit code 3."}
    assert stopped_before(a_discovery(ran=ran, exit_code=3)) == expected[ran]


CASES = {
    "jpeg": (JPEG, {"dataset_dir": PathClaim(status="missing")}),
    "rate": (JPEG, {"pytorch_throughput": Claim(status="missing")}),
    "batch": (BATCH, {"pipelines": ()}),
    "ratio": (RATIO, {"pipelines": ()}),
    "reflections": (REFLECTIONS, {"where_dali_wins": TextList(status="missing")}),
}


@pytest.mark.parametrize(("check", "changes"), CASES.values(), ids=CASES)
def test_every_check_says_what_to_do(check, changes):
    """Whatever is missing because the code stopped, the feedback ends with the remedy."""
    discovery = raised("NameError", "name 'fn' is not defined", **changes)
    result = judged(check, an_evidence(discovery=discovery))
    assert "line 40 (`batch = next(dali_iter)`) with NameError: name 'fn' is not defined" in result.feedback
    assert "is not defined Likely cause: Nothing called `fn`" in result.feedback
    assert "What to do: Define or import `fn` above this line" in result.feedback


@pytest.mark.parametrize(("check", "changes"), CASES.values(), ids=CASES)
def test_a_rehearsal_that_needs_a_gpu_is_not_a_failure(check, changes):
    """What is missing because it cannot be rehearsed is unverified, with no score."""
    result = judged(check, an_evidence(discovery=a_discovery(needs_gpu="Found no NVIDIA driver", **changes)))
    assert (result.outcome, result.score, result.code.partition(".")[2]) == ("unverified", None, "needs_gpu")


@pytest.mark.parametrize(
    ("ending", "last"),
    [
        (Ending.TIMED_OUT, "timed_out"),
        (Ending.OUT_OF_MEMORY, "out_of_memory"),
        (Ending.EXITED, "exited"),
        (Ending.PROTOCOL_VIOLATION, "interfered"),
    ],
)
@pytest.mark.parametrize(("check", "word"), [(JPEG, "jpeg"), (BATCH, "batch"), (RATIO, "ratio")])
def test_no_evidence_is_never_a_pass(check, word, ending, last):
    """A pod that ended without a word fails the check, which says how it ended."""
    result = judged(check, ended(ending))
    assert (result.outcome, result.code) == ("failed", f"{word}.{last}")


@given(
    name=st.sampled_from(["RuntimeError", "FileNotFoundError", "StopIteration", "KeyError"]),
    message=st.text(max_size=400) | st.text(max_size=300).map(lambda text: f"No such file or directory: '{text}'"),
    source=st.text(max_size=200) | st.just("x" * 180 + " next("),
)
def test_advice_is_short(name, message, source):
    """Whatever the learner's text holds, at most 600 characters are added."""
    place = Place(file="f" * 200, line=1, source=source)
    exception = LearnerException(type=name, message=message, place=place)
    plain = len(stopped_before(a_discovery(ran="raised", exception=exception.model_copy(update={"type": "None"}))))
    whole = len(stopped_before(a_discovery(ran="raised", exception=exception)))
    assert whole <= plain - len("None") + len(name) + MAX_ADVICE
