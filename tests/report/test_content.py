"""What stands on the page for each kind of verdict."""

import pytest

from grader_service.model.measurement import Arm
from grader_service.model.verdict import Outcome, Status, Tier
from grader_service.report import words
from tests.report.cases import without_run
from tests.report.factories import check, provenance, step, verdict
from tests.report.page import staff_page


def test_banner_names_status_and_score(page):
    """The first heading is the status; the score stands beside it."""
    official = page("official")
    assert official.all("h1")[0].text.endswith("Passed")
    assert official.with_class("score")[0].text == "50 of 50 points"
    assert not official.with_class("rehearsal")


def test_rehearsal_is_marked(page):
    """A rehearsal says that it is no grade, in the banner, the facts and the title."""
    rehearsal = page("rehearsed")
    assert "complete, but not a grade" in rehearsal.with_class("rehearsal")[0].text
    assert "rehearsal, not a grade" in rehearsal.text
    assert "rehearsal" in rehearsal.all("title")[0].text


@pytest.mark.parametrize("name", ["rejected", "our_error", "unverified", "spoiled"])
def test_absent_score_is_never_zero(page, name):
    """A null score reads `no score`."""
    assert page(name).with_class("score")[0].text == "no score 50 points possible"


def test_where_nobody_knows_what_it_was_worth():
    """Its lab is gone: no number of points is made up."""
    shown = staff_page(verdict(status=Status.REJECTED, code="submission.cancelled", score=None, max_score=None))
    assert shown.with_class("score")[0].text == "no score"


def test_a_score_of_zero_is_zero():
    """Zero points are a score."""
    shown = staff_page(verdict(status=Status.FAILED, code="jpeg.too_few", score=0.0))
    assert shown.with_class("score")[0].text == "0 of 50 points"


def test_every_status_outcome_and_tier_has_words():
    """No enum value is without a sign or a meaning."""
    assert set(words.STATUS_MEANING) == set(Status)
    assert set(words.TIER_MEANING) == set(Tier)
    assert set(words.ARM_SIGNS) == set(Arm)
    assert {item.value for enum in (Status, Outcome) for item in enum} <= set(words.MARKS)


@pytest.mark.parametrize("status", list(Status))
def test_every_status_renders(status):
    """Each status has its heading and its meaning."""
    shown = staff_page(without_run(status, "grade.some", "What happened."))
    assert shown.all("h1")[0].text.endswith(status.value.capitalize())
    assert words.STATUS_MEANING[status] in shown.text
    assert "What happened." in shown.text


@pytest.mark.parametrize("outcome", list(Outcome))
def test_every_outcome_renders_in_its_step(outcome):
    """Step and check show outcome, points, code, version and feedback."""
    one = check("cuda_batch", "pipeline", outcome, tier=Tier.PROOF, feedback="Saw `x`.\nWanted y.")
    earned = one.score
    shown = staff_page(verdict(steps=(step("pipeline", outcome, earned),), checks=(one,), measurement=None))
    section = shown.with_class("step")[0]
    assert section.attributes["id"] == "step-1"
    assert "CUDA batch" in section.text
    assert outcome.value in section.text
    assert ("– of 25" if earned is None else f"{earned:g} of 25 points") in section.text
    assert one.code in section.text
    assert "cuda_batch 1.0.0" in section.text
    assert "Evidence B: your own code ran" in section.text
    assert "Saw x . Wanted y." in section.text


def test_feedback_marks_code(page):
    """What stands between backticks is an element of its own."""
    feedback = page("official").with_class("outcome")[0]
    assert [child.text for child in feedback.children if child.tag == "code"] == ["jpeg_dataset"]
    assert "`" not in feedback.text


def test_details_for_staff_are_collapsed(page):
    """Details are JSON inside a closed disclosure."""
    pre = page("official").all("pre")[0]
    assert pre.parent.tag == "details"
    assert "open" not in pre.parent.attributes
    assert '"seen": 3' in pre.text


def test_staff_see_all_of_a_run_that_stopped(page):
    """How it ended stands once, above the steps; then what a learner's page leaves out."""
    shown = page("stopped")
    assert shown.text.count("Your code stopped at cell 3") == 1
    assert "0 of 2 checks passed" in shown.with_class("banner")[0].text
    assert "run.not_reached" in shown.text
    for expected in ("Seed of the held-out images", "30a5c63f5584221617bb05df0b1998dd", "Submission ID", "run.raised"):
        assert expected in shown.text


def test_parts_are_shown_with_details(page):
    """Outcome, what was seen, what to do and advice, and behind them code, version and details."""
    failed = page("told").with_class("check")[-1]
    for expected in ("you may mean that", "What to do: Add this line:", "Enlarge them.", "cuda.failed", '"seen": 3'):
        assert expected in failed.text


def test_check_without_a_listed_step_is_still_shown():
    """No check is lost when the verdict's steps do not name its step."""
    shown = staff_page(verdict(steps=(), checks=(check("odd_one", "nowhere"),), measurement=None))
    assert "Odd one" in shown.with_class("step")[0].text
    assert "not listed as a step" in shown.text


def test_summary_is_not_repeated(page):
    """Where the verdict's feedback only joins the checks', the banner counts instead."""
    banner = page("unverified").with_class("banner")[0]
    assert "1 of 2 checks passed" in banner.text
    assert "What throughput_ratio saw" not in banner.text
    assert "What throughput_ratio saw" in page("unverified").text


def test_other_feedback_is_kept():
    """Feedback that says something of its own stands in the banner."""
    shown = staff_page(verdict(feedback="A person looked at it."))
    assert "A person looked at it." in shown.with_class("banner")[0].text


def test_provenance_is_collapsed_and_complete(page):
    """Versions, digest, seed, timings, host, GPU and key stand inside a closed disclosure."""
    details = page("official").with_class("provenance")[0]
    assert details.tag == "details"
    assert "open" not in details.attributes
    for expected in (
        "ab" * 32,
        f"sha256:{'cd' * 32}",
        "30a5c63f5584221617bb05df0b1998dd",
        "ed25519, key 6b36f696cfb5fcab",
        "AMD EPYC 9654",
        "NVIDIA H200",
        "GPU-1234",
        "torch 2.11.0",
        "Run your code 61.5 s",
        "Tidy up 0.400 s",
        "1.0.0 (grader-service 0.1.0)",
    ):
        assert expected in details.text


def test_missing_signature_and_isolation_are_said(page):
    """A page of an unsigned or unisolated verdict says so outside the disclosure."""
    assert "Not signed" in page("rejected").text
    assert "Not signed" not in page("official").text
    unisolated = staff_page(verdict(provenance=provenance(isolated=False)))
    assert "Not isolated" in unisolated.text


def test_a_hidden_check_shows_nothing_but_its_name():
    """Neither outcome, points, code nor the staff's text; a check that shows its outcome keeps the text back."""
    hidden = check(
        "jpeg_dataset", outcome=Outcome.FAILED, code="jpeg.hidden_reason", feedback="Graded.",
        visibility="hidden", details={"staff_feedback": "The whole truth."},
    )  # fmt: skip
    bare = check("cuda_batch", code="batch.ok", visibility="outcome", details={"staff_feedback": "More truth."})
    advice = check("reflections", optional=True)
    page = staff_page(verdict(checks=(hidden, bare, advice), steps=(step("baseline"),), measurement=None))
    assert "jpeg.hidden_reason" not in page.text
    assert "truth" not in page.text
    assert "batch.ok" in page.text
    assert "advice" in page.text
