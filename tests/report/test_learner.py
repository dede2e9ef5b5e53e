"""The learner's page: how the run ended first, then what to do at each step, and nothing that is for staff."""

import pytest

from grader_service.model.run_report import RunEnding
from grader_service.model.verdict import Outcome, Status
from grader_service.report.changes import Attempt
from tests.report.cases import CASES, stopped, told
from tests.report.conftest import FOR_LEARNER
from tests.report.factories import PRINTED, check, measurement, provenance, step, stopped_run, told_check, verdict
from tests.report.page import learner_page


def sections(page):
    """The sections of the page, in order, by the id of their heading."""
    return [item.attributes["aria-labelledby"] for item in page.all("section")]


def test_what_stopped_the_run_stands_first():
    """What happened, the line with those around it, and what to do; once on the page, above all steps."""
    page = learner_page(stopped())
    assert sections(page) == ["cause", "step-1-name", "step-2-name"]
    cause = page.with_class("cause")[0]
    assert page.all("h2")[0].text == "Your code stopped at cell 3, line 2 (NameError): y was never set."
    for expected in ("cell 3, line 2", "What to do: Set y in a cell above."):
        assert expected in cause.text
    assert "1 import os 2 x = y 3 print('<i>')" in cause.text
    (marked,) = page.with_class("here")
    assert marked.text == "2 x = y"
    assert page.text.count("was never set") == 1


def test_traceback_and_output_are_folded_away():
    """They are there for who wants them, as they were printed."""
    page = learner_page(stopped())
    fold = next(item for item in page.with_class("cause")[0].walk() if item.tag == "details")
    assert "open" not in fold.attributes
    assert "NameError: name 'y' is not defined" in fold.text
    assert " ".join(PRINTED.split()) in fold.text


def test_a_step_that_was_not_reached_says_nothing_else():
    """Its title as the lab gives it, that it was not reached, and its points."""
    page = learner_page(stopped())
    assert page.with_class("eyebrow")[0].text == "Pipelines on a GPU"
    assert [item.text for item in page.with_class("step")] == [
        "The baseline – not reached 0 of 25",
        "The benchmark – not reached 0 of 25",
    ]
    assert not page.with_class("check")


def test_a_cause_that_the_outcome_does_not_say_is_told():
    """Such as an iterator without an end, where the time was up."""
    run = stopped_run(
        state=RunEnding.TIMED_OUT, code="run.timed_out", outcome="Your code was stopped.", cause="`it` never ends."
    )
    page = learner_page(stopped().model_copy(update={"run": run}))
    assert "it never ends." in page.with_class("cause")[0].text


def test_a_run_to_its_end_needs_no_card():
    """Nor a verdict that has none."""
    assert not learner_page(told()).with_class("cause")
    assert not learner_page(verdict(run=None)).with_class("cause")


@pytest.mark.parametrize("name", CASES)
def test_nothing_for_staff_is_on_it(page, name):
    """No seed, no details, no codes, no provenance, no flags, no arms; the page for staff has them."""
    given = CASES[name]()
    shown, staff = page(name + FOR_LEARNER), page(name)
    seed = given.provenance.seed
    for word in ("Details for staff", "For staff", "Provenance", "Reason", given.verdict_id, seed, given.run_id):
        assert word is None or word not in shown.text
    if seed is not None:
        assert seed in staff.text
    if name != "hostile":
        codes = {given.code, *(one.code for one in given.checks), *([given.run.code] if given.run else [])}
        assert not [code for code in codes if code in shown.text]
        assert not [one.id for one in given.checks if f"{one.id} {one.version}" in shown.text]
        assert '"seen": 3' not in shown.text
    assert not shown.all("table")


def test_feedback_is_shown_in_its_parts():
    """Outcome, what was seen and wanted, the line, what to do, the code to write, and advice in this order."""
    failed = learner_page(told()).with_class("check")[0]
    parts = [
        "dataset_dir is not defined.",
        "you may mean that. It should hold the folder with your <JPEG> files.",
        "cell 3, line 2",
        "What to do: Add this line:",
        "dataset_dir = data_root",
        "warning: Images are small. Enlarge them. cell 3, line 2",
        "note: A batch of 24 is odd.",
    ]
    places = [failed.text.index(part) for part in parts]
    assert places == sorted(places)


def test_advice_stands_under_a_step_that_passed():
    """It is told, and the step is a pass."""
    passed = learner_page(told()).with_class("step")[1]
    assert "✓ passed" in passed.text
    assert "Images are not normalised." in passed.text


def test_a_verdict_from_before_there_were_parts_is_told_whole():
    """Its text is the outcome, however long it is."""
    text = "Saw this. " * 200
    page = learner_page(verdict(checks=(check(feedback=text),), steps=(step(),), measurement=None))
    assert page.with_class("check")[0].text == text.strip()


def test_the_measurement_is_the_plots_and_the_rule():
    """No table, no claims; how it was decided is folded away."""
    page = learner_page(verdict(measurement=measurement()))
    assert len(page.with_class("plot")) == 2
    assert "How it was measured and decided" in page.text
    assert "10.98×" not in page.text


def test_a_rejection_says_why():
    """Where nothing ran there are no steps: the verdict's own text stands there."""
    page = learner_page(CASES["rejected"]())
    assert "The archive unpacks to 3 GiB" in page.text
    assert sections(page) == []


def test_a_rehearsal_without_a_gpu_is_no_failure():
    """The card is not that of a failure."""
    given = stopped().model_copy(update={"run": stopped_run(code="run.needs_gpu")})
    assert "is-unverified" in learner_page(given).with_class("cause")[0].attributes["class"]


def test_a_run_that_was_ended_after_all_steps_had_passed_is_no_failure():
    """A loop of training at the end: the card says that it cost nothing."""
    given = stopped().model_copy(update={"status": Status.PASSED})
    card = learner_page(given).with_class("cause")[0]
    assert "is-unverified" in card.attributes["class"]
    assert card.text.count("this cost no points") == 1
    assert "this cost no points" not in learner_page(stopped()).text


def test_checks_that_say_the_same_are_told_once():
    """In one step and in two, with the code to write and what to do."""
    names = [("one", "baseline"), ("two", "baseline"), ("three", "benchmark")]
    same = [told_check(*name) for name in names]
    steps = (step("baseline"), step("benchmark"))
    page = learner_page(verdict(checks=tuple(same), steps=steps, code="some.other", run=None, measurement=None))
    assert [page.text.count(parts) for parts in ("is not defined.", "Add this line:", "not normalised.")] == [1, 1, 1]
    assert "It is the reason above." in page.text
    assert "The reason stands at “baseline”." in page.text


def test_a_hidden_check_is_the_same_whatever_came_out():
    """Neither words, colour nor an action gives it away."""
    kept = {"visibility": "hidden", "details": {"staff_feedback": "x"}, "feedback": "Graded.", "code": "a.b"}

    def shown(outcome):
        hidden = check(outcome=outcome, score=0.0, **kept)
        return learner_page(verdict(checks=(hidden,), steps=(step(),), measurement=None))

    articles = [shown(outcome).with_class("check")[0] for outcome in (Outcome.PASSED, Outcome.FAILED, Outcome.ERROR)]
    assert len({(article.attributes["class"], article.text) for article in articles}) == 1


def test_advice_that_is_not_needed_says_so():
    """A check that does not count is marked where it did not pass."""
    advice = told_check(optional=True)
    page = learner_page(verdict(checks=(advice,), steps=(step(),), measurement=None))
    assert "you need not follow it to pass" in page.text
    passed = told_check(outcome=Outcome.PASSED, score=25.0, optional=True)
    assert "need not follow" not in learner_page(verdict(checks=(passed,), steps=(step(),), measurement=None)).text


def test_what_changed_since_the_last_one_is_told():
    """Steps, points and ratio that moved, with the number of the attempt."""
    page = learner_page(verdict(), Attempt(3, stopped()))
    attempt = page.with_class("attempt")[0]
    assert attempt.text.startswith("Attempt 3. Since what you handed in before:")
    assert [item.text for item in attempt.walk() if item.tag == "li"] == [
        "Baseline: not reached → passed",
        "Benchmark: not reached → passed",
        "Points: 0 → 50",
    ]


def test_the_first_attempt_is_not_counted():
    """Nor one of which nothing is known."""
    assert not learner_page(verdict()).with_class("attempt")
    assert not learner_page(verdict(), Attempt(1)).with_class("attempt")
    assert learner_page(verdict(), Attempt(2)).with_class("attempt")[0].text == "Attempt 2."


def test_code_that_stopped_has_no_number():
    """It was not measured; what came before it is told all the same."""
    attempt = learner_page(stopped(), Attempt(None, verdict())).with_class("attempt")[0]
    assert attempt.text.startswith("Since what you handed in before:")
    assert not learner_page(stopped(), Attempt()).with_class("attempt")


def test_the_same_result_is_said_to_be_the_same():
    """But not of a verdict that has no steps to compare."""
    same = learner_page(verdict(), Attempt(2, verdict())).with_class("attempt")[0]
    assert same.text == "Attempt 2. It came out as what you handed in before."
    rejected = CASES["rejected"]()
    assert learner_page(rejected, Attempt(2, verdict())).with_class("attempt")[0].text == "Attempt 2."


def test_the_staff_page_counts_no_attempts(page):
    """It is about one verdict."""
    assert not page("official").with_class("attempt")


def test_an_unisolated_run_is_no_matter_of_the_learner():
    """What staff are warned of stays with them."""
    assert "Not isolated" not in learner_page(verdict(provenance=provenance(isolated=False))).text


@pytest.mark.parametrize("status", list(Status))
def test_every_status_has_its_heading(status):
    """And its meaning, where no run stopped."""
    page = learner_page(verdict(status=status, measurement=None))
    assert page.all("h1")[0].text.endswith(status.value.capitalize())
