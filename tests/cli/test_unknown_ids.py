"""An id that nobody knows is answered with what was probably meant, and with all that there are."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grader_service.errors import UsageError
from grader_service.model.near import instead, nearest
from tests.command_line import invoked

KNOWN = ["cuda_batch", "jpeg_dataset", "throughput_ratio"]


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("cuda_batches", "cuda_batch"),
        ("jpeg-dataset", "jpeg_dataset"),
        ("through", "throughput_ratio"),
        ("cu", None),
        ("nope", None),
        ("", None),
    ],
)
def test_a_slip_and_a_beginning_are_understood(word, meant):
    """And what is like nothing is not guessed at."""
    assert nearest(word, KNOWN) == meant


def test_a_beginning_of_several_is_not_guessed_at():
    """Either could be meant."""
    assert nearest("abc", ["abc_first_of_two_long_names", "abc_second_of_two_long_names"]) is None


@given(st.text(max_size=300), st.lists(st.text(max_size=20), max_size=5, unique=True))
def test_only_what_there_is_is_offered(word, known):
    """Whatever was typed, and all of it is listed."""
    assert nearest(word, known) in {None, *known}
    assert instead(word, known, "labs").endswith(f"abs are: {', '.join(known) or 'none'}")


@pytest.fixture
def submission(tmp_path):
    """A file that could be graded."""
    path = tmp_path / "s.py"
    path.write_text("x = 1\n")
    return str(path)


STEPS = "baseline, pipeline, benchmark, reflection"
CHECKS = "jpeg_dataset, cuda_batch, throughput_ratio, reflections"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--lab", "dali-pipeline"), r'there is no lab .*; did you mean "dali-pipelines"\? Labs are: .*dali-pipelines'),
        (("--lab", "nope"), "there is no lab 'nope'; labs are: "),
        (("--steps", "bench"), rf'has no step bench; did you mean "benchmark"\? Its steps are: {STEPS}'),
        (("--steps", "reflections"), rf"reflections is a check of its step reflection, and its steps are: {STEPS}"),
    ],
)
def test_grade_says_which_lab_or_step_is_meant(submission, words, said):
    """Before anything runs."""
    with pytest.raises(UsageError, match=said):
        invoked("grade", submission, "--device", "cpu", "--sandbox", "process", *words)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("checks", "run", "reflection"), "reflection is a step, whose checks are: reflections"),
        (("checks", "run", "throughput"), rf'did you mean "throughput_ratio"\? Its checks are: {CHECKS}'),
        (("checks", "run", "nope"), rf"has no check 'nope'; its checks are: {CHECKS}"),
    ],
)
def test_a_check_of_a_lab_is_named(words, said):
    """A step's name is no slip, but another thing."""
    with pytest.raises(UsageError, match=said):
        invoked(*words, "--observations", "-")


def test_an_installed_check_and_a_lab_to_show_are_named():
    """Where authors and staff look them up."""
    with pytest.raises(UsageError, match=r'no installed check; did you mean "cuda_batch"\? Installed checks are: '):
        invoked("checks", "test", "cuda_batches")
    with pytest.raises(UsageError, match=r'did you mean "dali-pipelines"\?'):
        invoked("labs", "show", "dali_pipelines")
