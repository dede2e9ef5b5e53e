"""What is held against a graph: each row of the table in `acceptance`, their order, their limits and their words."""

import pytest

from grader_service.measure.acceptance import Observed, judge, not_examined
from grader_service.measure.work_parity import standard_work

SIZES = [(500, 375)]
AREA, LOW = standard_work(SIZES)
LESS = {"windows": 200, "area": 0.1, "low": 0.1}
"""Less work than the standard job."""


def judged(**seen):
    """The proof of a graph of which this was seen, and everything else is as it should be."""
    usual = {"samples": 100, "doubt": "", "alike": 100, "own": 100, "seconds": 2.5}
    return judge(Observed(**(usual | seen)), SIZES)


def test_a_graph_that_does_its_work_has_no_problem():
    """And no note; what was seen is kept as it was seen."""
    seen = {"windows": 200, "area": 0.52, "low": 0.8, "credits": {"turn": 0.5}, "on_gpu": 3}
    proof = judged(**seen)
    assert (proof.problem, proof.note) == (None, "")
    assert (proof.standard_area, proof.standard_low) == (AREA, LOW)
    assert {name: getattr(proof, name) for name in seen} == seen
    assert (proof.samples, proof.alike, proof.own, proof.seconds) == (100, 100, 100, 2.5)


def test_a_doubt_comes_before_everything():
    """Nothing that was seen counts where it could not be relied on."""
    proof = judged(doubt="It looks at names.", own=0, alike=0, **LESS)
    assert (proof.problem, proof.note) == ("not_examined", "It looks at names.")


def test_a_graph_that_ended_its_process_is_not_examined():
    """There is a proof of it, too, which says why."""
    proof = not_examined("Its process ended: out of memory.", SIZES)
    assert (proof.problem, proof.note) == ("not_examined", "Its process ended: out of memory.")
    assert proof.samples >= 1


@pytest.mark.parametrize(
    ("seen", "problem"),
    [
        ({"stayed": 91, "own": 9, "alike": 0, **LESS}, "independent"),
        ({"own": 10, "alike": 9, **LESS}, "unlike"),
        ({"alike": 10, **LESS}, "unclear"),
        ({"own": 74, **LESS}, "unclear"),
        ({"own": 75}, None),
        ({"stayed": 6, "own": 94}, "unclear"),
        ({"own": 95, "alike": 95, **LESS}, "lesser"),
        ({"own": 95, "alike": 95}, None),
        ({"stayed": 5, "own": 95, "alike": 95}, None),
        ({"own": 0}, "unclear"),
        # Whole images do not make up for others that are hardly decoded, however much of all pixels they are.
        ({"windows": 200, "area": 0.9, "low": 0.9, "scant": 0.11}, "lesser"),
        ({"windows": 200, "area": 0.5, "low": 1.0, "scant": 0.1}, None),
        # Nor are random numbers of the GPU, idle augmentations, and windows that no decoder cuts out held against it.
        ({"on_gpu": 0}, None),
        ({"credits": {}}, None),
        ({"credits": {"turn": 0.0, "blur": 1.0}}, None),
        ({"area": 0.01, "low": 0.0}, None),
        ({"seconds": 170.0}, None),
        ({"windows": 1, "area": 1.0, "low": 1.0}, None),
    ],
)
def test_the_gravest_problem_is_named(seen, problem):
    """Images that are not made of files at all, before those that are made of other ones, before less of them.

    Images that go by other files are no accusation: how many a shuffled batch leaves in their places is chance. A few
    that stay or differ are not even a question.
    """
    assert judged(**seen).problem == problem


@pytest.mark.parametrize(("good", "grave"), [(0, True), (9, True), (10, False), (94, False)])
def test_images_that_stay_or_differ(good, grave):
    """When their file changes, or from those of the whole file: most of them are an accusation, some are a question."""
    assert judged(stayed=100 - good, own=good).problem == ("independent" if grave else "unclear")
    assert judged(alike=good).problem == ("unlike" if grave else "unclear")


@pytest.mark.parametrize(("factor", "problem"), [(0.0, "lesser"), (0.79, "lesser"), (0.81, None), (1.0, None)])
def test_decoders_show_four_fifths_of_the_standard_area_and_of_files_ends(factor, problem):
    """Just below it is less work, just above it is not: a window near the top is cheap, however large it is."""
    assert judged(windows=10**8, area=factor * AREA, low=1.0).problem == problem
    assert judged(windows=10**8, area=0.9, low=factor * LOW).problem == problem


@pytest.mark.parametrize(("windows", "problem"), [(4, None), (16, None), (160, "lesser")])
def test_few_windows_are_no_reason(windows, problem):
    """Where one large file among small ones is most of all pixels, chance alone makes less of it."""
    assert judged(windows=windows, area=0.65 * AREA, low=1.0).problem == problem
    assert judged(windows=windows, area=1.0, low=0.6 * LOW).problem == problem


@pytest.mark.parametrize(
    ("seen", "figures"),
    [
        ({"stayed": 97, "own": 3}, ("97 of 100 images", "stayed")),
        ({"alike": 7}, ("93 of 100 images", "whole")),
        ({"own": 80, "stayed": 15, "alike": 90}, ("100 images", "80 changed", "15 stayed", "90 were")),
        (LESS, ("decodes 10% of each image", f"{AREA:.0%}")),
        ({"windows": 200, "scant": 0.64}, ("64% of the images", "a sixteenth")),
        ({**LESS, "area": 0.6}, ("10% of the windows", f"{LOW:.0%}")),
    ],
)
def test_the_note_says_what_was_seen(seen, figures):
    """In numbers that the learner can see for itself, in whole sentences."""
    note = judged(**seen).note
    assert all(figure in note for figure in figures), note
    assert note.endswith(".")


def test_the_standard_is_that_of_the_images_sizes():
    """Of a panorama a usual crop shows little, and so may a graph."""
    panoramas = [(2000, 400)]
    seen = Observed(samples=48, doubt="", alike=48, own=48, windows=192, area=0.15, low=0.9, seconds=1.0)
    assert judge(seen, panoramas).problem is None
    assert judge(seen, SIZES).problem == "lesser"
