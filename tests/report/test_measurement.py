"""What the page says of a measurement: ratio, blocks, arms, proofs, and why there is none."""

import pytest

from grader_service.model.verdict import Outcome
from tests.report.factories import check, content, decision, graph_proof, measurement, step, verdict
from tests.report.page import staff_page

TOLD = {
    "official": (
        "DALI delivered 1.39× the images of the baseline; the 95% interval runs from 1.32× to 1.46×.",
        "More than 1.1× was needed.",
        "never less than 95% of our reference at your settings, nor less than 91% of our reference at fair settings",
        "After 4, 6, 8 and 12 valid blocks",
        "4 more blocks follow, with a last look after 16",
        "passes with a chance of at most 0.5%",
        "fails with one of at most 5%",
        "look 2 of 5 ended it, after 6 blocks",
        "779 to 853",
        "batch 32, 2 workers, prefetch 2, pinned memory",
        "prefetch queue depth 2, 2",
        "9,000 820 10.98×",
        "160 JPEGs, 500-500 × 375-375 px",
        "The baseline of every block was your DataLoader.",
    ),
    "proven": (
        "Different images 12,160",
        "64, 1 of them failed",
        "As recorded: 64 full; texture 0.94 to 1.00, worst block 0.81",
        "attempt number 3",
        "delivered 1.18× the images of our own PyTorch loader on this host",
        "nobody fails on it",
        "look 5 of 5, the one after the extension,",
        "Measure what this host can show 4.5 s",
        "never less than 80% of our reference at your settings",
    ),
    "lost_arm": ("not measured", "its pod ended: out of memory"),
    "spoiled": ("DALI delivered 1.0997×",),
}
"""The decision with its ratio, rule, arms, claims and settings; content, host and attempt; an arm without a rate; the
decision of the check, not the measurement's, whose 1.0997 is not rounded onto the threshold of 1.1."""


@pytest.mark.parametrize(("name", "expected"), TOLD.items(), ids=TOLD)
def test_everything_that_was_measured_is_told(page, name, expected):
    """In words and numbers, whatever a measurement holds."""
    text = page(name).text
    assert [part for part in expected if part not in text] == []


def test_every_block_has_a_row(page):
    """The table of blocks has the value of each block and arm."""
    rows = [row for row in _table(page("official"), "Ratio and images per second of each block") if row[0].isdigit()]
    assert [row[0] for row in rows] == ["1", "2", "3", "4", "5", "6"]
    assert rows[0][1:] == ["1.300×", "820", "570", "600", "640", "Your DataLoader"]


def test_spoiled_blocks_say_why(page):
    """Spoiled blocks, and those after the decision, are listed with the reason, and marked in the table."""
    shown = page("spoiled")
    assert "Block 2, discarded: another process used the GPU" in shown.text
    assert "Block 4, discarded: the clock was stepped" in shown.text
    assert "Block 7, taken after the decision" in shown.text
    assert len(shown.with_class("left-out")) == 3
    assert "Blocks timed 7, 2 of them discarded" in shown.text
    assert "discarded before anybody looked at its rates" in shown.text
    assert "discarded before anybody" not in page("official").text


def test_blocks_with_one_reason_are_told_once(page):
    """Twelve blocks that the host spoiled in the same way are one line, and twelve rows."""
    shown = page("unsteady")
    assert "Blocks 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, discarded: the host slept" in shown.text
    assert len(shown.with_class("left-out")) == 12
    assert "not steady, which is not your fault: 12 of 13 blocks were discarded" in shown.text
    assert "There is no decision." in shown.text


def test_plain_measurement_has_no_further_parts(page):
    """An older measurement of a graph, with nothing to remark, has no tier, proof, GPU, host or staff part."""
    shown = page("official")
    headings = [heading.text for heading in shown.all("h3")]
    absent = {
        "How strong the evidence is",
        "What your graph does",
        "What the images showed",
        "What the GPU did meanwhile",
        "For staff",
    }
    assert not absent & {*headings}
    assert "Your DALI graph" in shown.text
    assert "attempt number" not in shown.text
    assert "wanted of a host" not in shown.text


def test_learners_own_code_is_called_so(page):
    """In tier C no arm, legend or plot speaks of a graph in a clean room."""
    shown = page("proven")
    section = _section(shown, "measurement").text
    assert "Your DALI code" in section
    assert "Your DALI graph" not in section
    assert "run in our clean room" not in section
    assert "Evidence C: your own code ran from a cold start" in section


def test_stronger_tiers_say_why_not(page):
    """Each tier that could not be had is named with its reason."""
    refused = [item.text for item in page("proven").with_class("refused")[0].children]
    assert len(refused) == 2
    assert refused[0].startswith("A (your DALI graph in our clean room)")
    assert "python_function cannot be carried." in refused[0]
    assert refused[1].startswith("B (")
    assert "none was new. nothing_new" in refused[1]


def test_nothing_timed_names_every_tier_once(page):
    """Where no tier could be had each reason stands once, without a rule that nothing was decided by."""
    shown = page("nothing_timed")
    assert "Nothing could be timed" in shown.text
    assert shown.text.count("No function build_dali_iterator(dataset_dir, batch_size) is defined.") == 1
    assert "B and C" in shown.text
    assert "How it was decided" not in shown.text
    assert "0 JPEGs" not in shown.text


def test_images_that_do_not_count_make_no_outcome(page):
    """A fast ratio of replayed images is not shown as passed; the problem stands in words."""
    section = _section(page("replayed"), "measurement")
    assert not [item for item in section.walk() if "chip" in item.attributes.get("class", "").split()]
    assert "This ratio does not count" in section.text
    assert "Most images had come before, so they were not decoded again." in section.text


def test_images_of_a_graph_that_do_not_count_make_no_outcome():
    """Older verdicts held graphs to their pixels as well; a check that decided all the same has the last word."""
    timed = measurement(content=content(problem="small_area"))
    shown = staff_page(verdict(measurement=timed))
    assert "This ratio does not count" in shown.text
    assert "much less of each file" in shown.text
    judged = check("throughput_ratio", "benchmark", details={"decision": decision().model_dump(mode="json")})
    shown = staff_page(verdict(checks=(judged,), measurement=timed))
    assert "This ratio does not count" not in shown.text


def test_what_a_graph_does_is_told(page):
    """A graph that was tried out and timed: its proof stands beside the rates, without a problem."""
    shown = page("tried_out")
    section = _section(shown, "measurement")
    assert "What your graph does" in [item.text for item in section.walk() if item.tag == "h3"]
    assert "Follow their own file 63 of 64" in section.text
    assert "Problem:" not in section.text
    assert "DALI delivered 1.39×" in section.text
    assert "Run the graph on other pictures 2.5 s" in shown.text


def test_a_graph_that_was_not_timed_says_why_once(page):
    """Neither a ratio nor a rule stands there, and what was seen is not said twice."""
    shown = page("independent")
    section = _section(shown, "measurement")
    assert "Your graph was not timed" in section.text
    assert "Most images do not depend on the files" in section.text
    assert section.text.count("When the files showed other pictures") == 1
    assert "How it was decided" not in section.text
    assert "There is no decision" not in section.text
    assert not shown.with_class("plot")


def test_a_graph_that_was_not_timed_is_not_said_to_be_timed():
    """Nor in a lab that does not grade its speed."""
    seen = measurement((), decision=None, arms=(), graph=graph_proof(problem="not_examined", note="It blends."))
    text = staff_page(verdict(checks=(check(),), steps=(step("baseline"),), measurement=seen)).text
    assert "Your graph was not timed" in text
    assert "its speed is not graded" not in text
    assert "What was seen: It blends." in text
    assert "Images tried" not in text


def test_a_ratio_of_a_graph_with_a_problem_makes_no_outcome():
    """Whatever a stored verdict holds: a graph that was seen not to do its work has passed nothing."""
    timed = measurement(graph=graph_proof(problem="unlike", note="60 of 64 images differ."))
    section = _section(staff_page(verdict(measurement=timed)), "measurement")
    assert not [item for item in section.walk() if "chip" in item.attributes.get("class", "").split()]
    assert "taken of a graph that was not seen to do its work" in section.text
    assert "images that do not count as delivered" not in section.text


def test_outcome_is_that_of_the_check():
    """A ratio that is too low only for images that were not counted is shown as the check judged it."""
    low = decision(0.9, 0.8, 1.0, "failed")
    softened = check(
        "throughput_ratio", "benchmark", Outcome.INCONCLUSIVE, details={"decision": low.model_dump(mode="json")}
    )
    shown = staff_page(verdict(checks=(softened,), measurement=measurement(decision=low, tier="B")))
    chips = [item for item in _section(shown, "measurement").walk() if "chip" in item.attributes.get("class", "")]
    assert [item.text for item in chips] == ["≈ inconclusive"]


def test_use_of_the_gpu_has_a_row_for_each_arm(page):
    """Means of each arm; what the driver does not say is a dash, not zero."""
    rows = _table(page("proven"), "Means over the windows of each arm")
    assert rows[1:] == [
        ["● Your DALI code", "29%", "57%", "3,120 MiB", "3", "61"],
        ["■ Your DataLoader", "0.42%", "0%", "3,118 MiB", "3", "58"],
        ["▲ Reference, your settings", "0.5%", "–", "3,118 MiB", "3", "60"],
        ["◆ Reference, fair settings", "–", "–", "–", "–", "0"],
    ]


def test_flags_stand_at_the_end_for_staff(page):
    """Flags are the last part of the measurement, said to decide nothing."""
    section = _section(page("proven"), "measurement")
    headings = [item.text for item in section.walk() if item.tag == "h3"]
    assert headings[-1] == "For staff"
    assert "None of it passes or fails anybody." in section.text
    flags = next(item for item in section.walk() if item.attributes.get("class") == "flags")
    assert [item.text for item in flags.children] == [
        "the GPU was busy (31 % SM) in the windows of reference_fair, which only copies batches to it",
        "in a block: Xid 43, which a program caused",
    ]


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


def _section(page, name):
    return next(item for item in page.all("section") if item.attributes.get("aria-labelledby") == name)


def _table(page, caption):
    table = next(item for item in page.all("table") if caption in item.text)
    rows = [element for element in table.walk() if element.tag == "tr"]
    return [[cell.text for cell in row.children] for row in rows]


def test_a_ratio_that_no_check_judges_decides_nothing():
    """A lab may time a graph without grading its speed: no threshold, no rule, no outcome stands there."""
    text = staff_page(verdict(checks=(check(),), steps=(step("baseline"),))).text
    assert "its speed is not graded in this lab" in text
    assert "was needed" not in text
    assert "How it was decided" not in text


def test_a_kept_reference_is_shown_as_not_timed_in_the_run(page):
    """It stands among the arms with its age, in the legend and in the plot's words, and has no block of its own."""
    found = page("kept_reference")
    assert "not timed in this run: the fastest of 3 windows on this host, 4 min before" in found.text
    assert "The baseline of every block was our reference at fair settings." in found.text
    legends = [entry.text for entry in found.all("li") if "Reference, fair settings" in entry.text]
    assert legends
