"""What stands on the page for each kind of verdict."""

import pytest

from grader_service.model.measurement import Arm
from grader_service.model.verdict import Outcome, Status, Tier
from grader_service.report import words
from grader_service.report.html import render_report
from tests.report.factories import check, rehearsed, step, verdict, without_run
from tests.report.page import Page


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


def test_a_score_of_zero_is_zero():
    """Zero points are a score."""
    shown = Page(render_report(verdict(status=Status.FAILED, code="jpeg.too_few", score=0.0)))
    assert shown.with_class("score")[0].text == "0 of 50 points"


def test_every_status_outcome_and_tier_has_words():
    """No enum value is without a sign or a meaning."""
    assert set(words.STATUS_MEANING) == set(Status)
    assert set(words.TIER_MEANING) == set(Tier)
    assert set(words.ARM_NAMES) == set(words.ARM_MEANING) == set(words.ARM_SIGNS) == set(Arm)
    assert {item.value for enum in (Status, Outcome) for item in enum} <= set(words.MARKS)


@pytest.mark.parametrize("status", list(Status))
def test_every_status_renders(status):
    """Each status has its heading and its meaning."""
    shown = Page(render_report(without_run(status, "grade.some", "What happened.")))
    assert shown.all("h1")[0].text.endswith(status.value.capitalize())
    assert words.STATUS_MEANING[status] in shown.text
    assert "What happened." in shown.text


@pytest.mark.parametrize("outcome", list(Outcome))
def test_every_outcome_renders_in_its_step(outcome):
    """Step and check show outcome, points, code, version and feedback."""
    one = check("cuda_batch", "pipeline", outcome, tier=Tier.PROOF, feedback="Saw `x`.\nWanted y.")
    earned = one.score
    shown = Page(render_report(verdict(steps=(step("pipeline", outcome, earned),), checks=(one,), measurement=None)))
    section = shown.with_class("step")[0]
    assert section.attributes["id"] == "step-1"
    assert "CUDA batch" in section.text
    assert outcome.value in section.text
    assert ("no score (25 possible)" if earned is None else f"{earned:g} of 25 points") in section.text
    assert one.code in section.text
    assert "cuda_batch 1.0.0" in section.text
    assert "Evidence B: your own code ran" in section.text
    assert "Saw x . Wanted y." in section.text


def test_feedback_marks_code(page):
    """What stands between backticks is an element of its own."""
    feedback = page("official").with_class("feedback")[0]
    assert [child.text for child in feedback.children if child.tag == "code"] == ["jpeg_dataset"]
    assert "`" not in feedback.text


def test_details_for_staff_are_collapsed(page):
    """Details are JSON inside a closed disclosure."""
    pre = page("official").all("pre")[0]
    assert pre.parent.tag == "details"
    assert "open" not in pre.parent.attributes
    assert '"seen": 3' in pre.text


def test_check_without_a_listed_step_is_still_shown():
    """No check is lost when the verdict's steps do not name its step."""
    shown = Page(render_report(verdict(steps=(), checks=(check("odd_one", "nowhere"),), measurement=None)))
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
    shown = Page(render_report(verdict(feedback="A person looked at it.")))
    assert "A person looked at it." in shown.with_class("banner")[0].text


def test_measurement_tells_the_decision(page):
    """Ratio, interval, threshold, rule, arms, claims and settings are there in words and numbers."""
    text = page("official").text
    for expected in (
        "DALI delivered 1.39× the images of the baseline; the 95% interval runs from 1.32× to 1.46×.",
        "More than 1.1× was needed.",
        "never less than 95% of our reference at your settings, nor less than 91% of our reference at fair settings",
        "tested after 4, 6, 8 and 12 blocks",
        "risk of at most 0.5%",
        "risk of at most 5%",
        "look 2 of 4 ended it, after 6 blocks",
        "779 to 853",
        "batch 32, 2 workers, prefetch 2, pinned memory",
        "prefetch queue depth 2, 2",
        "9,000 820 10.98×",
        "160 JPEGs, 500-500 x 375-375 px",
        "The baseline of every block was your DataLoader.",
    ):
        assert expected in text


def test_every_block_has_a_row(page):
    """The table of blocks has the value of each block and arm."""
    rows = [row for row in _table(page("official"), "Ratio and images per second of each block") if row[0].isdigit()]
    assert [row[0] for row in rows] == ["1", "2", "3", "4", "5", "6"]
    assert rows[0][1:] == ["1.300×", "820", "570", "600", "640", "Your DataLoader"]


def test_spoiled_blocks_say_why(page):
    """Spoiled blocks, and those after the decision, are listed with the reason, and marked in the table."""
    shown = page("spoiled")
    assert "Block 2: another process used the GPU" in shown.text
    assert "Block 4: the clock was stepped" in shown.text
    assert "Block 7: taken after the decision" in shown.text
    assert len(shown.with_class("left-out")) == 3


def test_decision_of_the_check_comes_first(page):
    """A check that judged by another threshold or other blocks is the one that is explained."""
    assert "DALI delivered 1.0997×" in page("spoiled").text


def test_ratio_close_to_the_threshold_is_not_rounded_onto_it(page):
    """1.0997 is not shown as 1.10 beside a threshold of 1.1."""
    text = page("spoiled").text
    assert "1.0997×" in text
    assert "delivered 1.10×" not in text


def test_lost_arm_is_not_measured(page):
    """An arm without a rate says so and keeps its note."""
    text = page("lost_arm").text
    assert "not measured" in text
    assert "its pod ended: out of memory" in text


def test_one_block_has_no_interval(page):
    """One block gives a value, no decision, and the problem."""
    text = page("one_block").text
    assert "There is no decision. The block that was timed gave 1.25×" in text
    assert "out of memory in fn.resize" in text
    assert "interval runs from" not in text


def test_no_block_has_no_plot(page):
    """Without blocks there is no plot, only the problem."""
    shown = page("no_blocks")
    assert not shown.with_class("plot")
    assert "no block was timed" in shown.text
    assert "The graph did not start." in shown.text


@pytest.mark.parametrize("name", ["rejected", "our_error", "unverified"])
def test_without_measurement_there_is_no_section(page, name):
    """Nothing stands in for a measurement that was not made."""
    assert "Measurement" not in [heading.text for heading in page(name).all("h2")]


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


def test_stage_bars_are_in_proportion(page):
    """The longest stage fills its bar, the others their share of it."""
    bars = [cell.children[0].children[0].attributes["width"] for cell in page("official").with_class("bar")]
    assert bars == ["0.01", "100.00", "38.96", "0.65"]


def test_missing_signature_and_isolation_are_said(page):
    """A page of an unsigned or unisolated verdict says so outside the disclosure."""
    assert "Not signed" in page("rejected").text
    assert "Not signed" not in page("official").text
    unisolated = rehearsed()
    unisolated = unisolated.model_copy(
        update={"provenance": unisolated.provenance.model_copy(update={"isolated": False})}
    )
    assert "Not isolated" in Page(render_report(unisolated)).text


def _table(page, caption):
    table = next(item for item in page.all("table") if caption in item.text)
    rows = [element for element in table.walk() if element.tag == "tr"]
    return [[cell.text for cell in row.children] for row in rows]
