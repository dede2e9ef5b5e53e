"""Audits and identities of one arm become one answer with one reason."""

import dataclasses

import pytest

from grader_service.held_out.audit import Audit
from grader_service.held_out.proof import Figures, prove
from grader_service.model.measurement import ContentKind

GOOD = Figures(delivered=1000, identified=1000, distinct=512, stale=0)


def audits(kind=ContentKind.FULL, texture=0.95, count=64, area=1.0, bottom=1.0):
    return [Audit(kind, texture, texture, area, bottom, (0, 0, 1, 1), mirrored=False)] * count


def test_honest_images_count():
    """Figures and audits without fault have no problem."""
    proof = prove(audits(area=0.5), GOOD, expected=(0.52, 0.89))
    assert proof.problem is None
    assert (proof.kind, proof.audited, proof.failed_audits) == (ContentKind.FULL, 64, 0)
    assert (proof.texture, proof.area, proof.low) == (pytest.approx(0.95), pytest.approx(0.5), 1.0)
    assert (proof.expected_area, proof.expected_low) == (0.52, 0.89)


@pytest.mark.parametrize(
    ("kind", "problem"),
    [
        (ContentKind.REDUCED, "partial_decode"),
        (ContentKind.RENDERED, "rendered"),
        (ContentKind.UNKNOWN, "not_comparable"),
    ],
)
@pytest.mark.parametrize("forged", [5, 64])
def test_failed_audits_name_the_problem(kind, problem, forged):
    """A twelfth of forged images is enough, and the proof is called by what they are."""
    proof = prove(audits(count=64 - forged) + audits(kind, 0.1, forged), GOOD)
    assert (proof.problem, proof.kind, proof.failed_audits) == (problem, kind, forged)


WINDOWS = [audits(area=area)[0] for area in (0.1, 0.2, 0.3, 0.9) * 3]
SETS = {
    "a single failed audit of 64 is noise": (audits(count=63) + audits(ContentKind.REDUCED, 0.4, 1), None),
    "images that all just pass one by one do not pass together": (audits(texture=0.58), "not_comparable"),
    "crops far smaller than the reference's are less work": (audits(area=0.3), "small_area"),
    "crops a little smaller are not": (audits(area=0.5), None),
    "windows are random, and a few are small by chance": (WINDOWS, None),
    "many small windows are no chance": (WINDOWS * 40, "small_area"),
    "windows near the top are less work": (audits(bottom=0.66, count=51) + audits(count=13), "small_area"),
    "a few of them are chance": (audits(bottom=0.6, count=16) + audits(count=48), None),
    "those that could not be placed say nothing": (
        audits(count=62) + audits(ContentKind.UNKNOWN, bottom=0.0, count=2),
        None,
    ),
}


@pytest.mark.parametrize(("audited", "problem"), SETS.values(), ids=SETS)
def test_audits_are_judged_together(audited, problem):
    """Beside a standard job whose windows are 0.55 of an image in the mean, and reach its end in 0.89 of all images."""
    assert prove(audited, GOOD, expected=(0.55, 0.89)).problem == problem


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"delivered": 0, "identified": 0, "distinct": 0}, "no_images"),
        ({"problem": "no_colour", "identified": 0, "distinct": 0}, "no_colour"),
        ({"problem": "colours_changed", "identified": 0, "distinct": 0}, "colours_changed"),
        ({"identified": 900}, "not_identified"),
        ({"identified": 700, "stale": 300}, None),
    ],
)
def test_figures_come_first(change, problem):
    """What was delivered is asked before how it was decoded; images of an earlier shard cost time, and are no fault."""
    assert prove(audits(), dataclasses.replace(GOOD, **change)).problem == problem


def test_no_audits_prove_nothing():
    """Without audits nothing is proved."""
    proof = prove([], GOOD)
    assert (proof.problem, proof.kind, proof.texture) == ("not_audited", ContentKind.UNKNOWN, None)
