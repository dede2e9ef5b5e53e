"""What the pages say, how large they are, and that nothing of a learner stands in them as it was written."""

import base64
import json
import re
import zlib
from dataclasses import replace

import pytest

from grader_service.model.diff import Filter
from grader_service.model.regrade import Selection
from grader_service.model.verdict import Outcome
from grader_service.model.verdict_summary import CohortEntry, RateSummary, RatioSummary
from grader_service.regrade.diff import diff_of
from grader_service.regrade.filters import rows_of
from grader_service.report.cohort import columns, wording
from grader_service.report.cohort.pages import batch_page, cohort_page
from grader_service.report.cohort.selection import described
from tests.regrade.makers import a_batch, a_change, a_check, a_progress, a_summary, pending
from tests.report.cohort.conftest import PAGES
from tests.report.cohort.data import HOSTILE, changes, entries, page_of, wide
from tests.report.page import Page


def embedded(html):
    """The data of a page."""
    packed = re.search(r'<script type="text/plain" id="data">([^<]*)</script>', html)[1]
    return json.loads(zlib.decompress(base64.b64decode(packed, validate=True), -zlib.MAX_WBITS))


def entry(number=0, **changes):
    """One submission of a cohort."""
    return CohortEntry(a_summary(f"s:{number}", **changes), 1_790_000_000.0, None, "submission.py")


def table(html, region):
    """Texts of the cells of the table in a region, row by row."""
    (box,) = [one for one in Page(html).elements if one.attributes.get("aria-label") == region]
    rows = [one for one in box.walk() if one.tag == "tr"]
    return [[cell.text for cell in row.children] for row in rows]


@pytest.mark.parametrize("name", PAGES)
def test_elements_are_balanced_and_ids_are_unique(rendered, name):
    """The markup is well-formed, every head cell says what it heads, and what is referred to exists."""
    page = Page(re.sub(r"(?s)<script type=\"module\">.*?</script>", "", rendered(name)))
    ids = [element.attributes["id"] for element in page.elements if "id" in element.attributes]
    assert len(ids) == len(set(ids))
    for element in page.elements:
        for reference in ("aria-labelledby", "aria-describedby"):
            assert element.attributes.get(reference, ids[0]) in ids
        if element.tag == "th":
            assert element.attributes["scope"] in {"col", "row"}
        assert "style" not in element.attributes
    assert all(any(child.tag == "caption" for child in one.children) for one in page.all("table"))


@pytest.mark.parametrize("name", PAGES)
def test_nothing_comes_from_elsewhere(rendered, name):
    """No address but the icon's empty one, and a policy that allows one style and one script by their hash."""
    html = rendered(name)
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', html)[1]
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policy
    assert re.findall(r"https?://[^\s\"'<]+", html) == []
    assert {value for element in Page(html).elements if (value := element.attributes.get("href"))} == {
        "data:,",
        "#main",
    }


def test_same_verdicts_same_page():
    """Pages can be compared byte by byte."""
    assert cohort_page(entries(20), title="x") == cohort_page(entries(20), title="x")


def test_hostile_text_stands_nowhere_as_written(rendered):
    """Neither in the markup nor in the embedded data, whose letters are those of base64."""
    for name in ("cohort", "batch"):
        html = rendered(name)
        for text in (HOSTILE[0], HOSTILE[1], "\u2028", "\u202e", "<b>lab"):
            assert text not in html
    said = embedded(rendered("cohort"))["rows"]
    assert said["learner"][0] == HOSTILE[0]
    assert "\u202e" not in "".join(name or "" for name in said["learner"])
    assert said["filename"][3] == "<b>lab</b>.ipynb"


def test_title_and_reason_are_escaped():
    """What an operator types is text as well."""
    assert "<h1><bdi>&lt;i&gt;x" in cohort_page([], title="<i>x")
    html = page_of([a_change()], reason="`1.1` <b>", author="<u>")
    assert "<code>1.1</code> &lt;b&gt;" in html
    assert "<u>" not in html


@pytest.mark.slow
@pytest.mark.parametrize("given", [pytest.param(entries, id="four checks"), pytest.param(wide, id="sixteen checks")])
def test_ten_thousand_submissions_fit_five_megabytes(given):
    """However many checks the lab has."""
    assert len(cohort_page(given(10_000), title="Everybody").encode()) < 5_000_000


@pytest.mark.slow
def test_ten_thousand_changes_fit_five_megabytes():
    """With two verdicts each."""
    assert len(page_of(changes(10_000)).encode()) < 5_000_000


def test_feedback_is_bounded(monkeypatch):
    """Long texts are cut, and from some length on the later submissions' texts are left out."""
    monkeypatch.setattr(columns, "MOST_FEEDBACK", 2500)
    said = {f"s:{number}": {"": f"{number}" * 5000} for number in range(4)}
    data = embedded(cohort_page([entry(number) for number in range(4)], title="x", feedback=said))
    texts = {row: data["texts"][place] for row, ((_, place),) in data["rows"]["feedback"].items()}
    assert {row: len(text) for row, text in texts.items()} == {"0": 1200, "1": 1200, "2": 1200}


def test_feedback_may_be_read_beside_the_entries():
    """A mapping that only ever holds the texts of the entry that was just given suffices."""
    texts = {}

    def given():
        for number in range(3):
            texts.clear()
            texts[f"s:{number}"] = {"": f"text {number}"}
            yield entry(number)

    data = embedded(cohort_page(given(), title="x", feedback=texts))
    assert [data["texts"][place] for ((_, place),) in data["rows"]["feedback"].values()] == [
        "text 0",
        "text 1",
        "text 2",
    ]


def test_pass_rates_are_of_those_that_were_decided():
    """A check that could not look for lack of a GPU counts in neither part of its rate, but among the outcomes."""
    given = [
        entry(1, outcomes={"cuda_batch": "failed"}),
        entry(2, outcomes={"cuda_batch": "skipped"}),
        entry(3),
        entry(4),
    ]
    rows = table(cohort_page(given, title="x"), "Pass rate of each check")
    assert [row[0].split()[0] for row in rows[1:]] == ["JPEG", "CUDA", "Throughput", "Reflections"]
    assert rows[2][1:] == ["66.7%", "20.8% to 93.9%", "3", "✓ 2 passed ✕ 1 failed ? 1 unverified"]


def test_what_was_not_reached_counts_as_failed():
    """In rates, outcomes, reasons, and the rows that the page's script filters."""
    unreached = a_check("cuda_batch", "skipped", code="run.not_reached", score=0.0)
    page = cohort_page([entry(1, checks=(a_check("jpeg_dataset"), unreached)), entry(2)], title="x")
    rows = table(page, "Pass rate of each check")
    assert rows[2][1:] == ["50.0%", "9.5% to 90.5%", "2", "✓ 1 passed ✕ 1 failed"]
    reasons = table(page, "Codes by number of submissions")
    assert ("run.not_reached", "failed") in [(row[0], row[1][2:]) for row in reasons]
    assert "skipped" not in Page(page).text


def test_codes_are_ranked():
    """By submissions; a verdict without checks gives its own code, and nobody's passing is a reason."""
    given = [
        entry(1, outcomes={"cuda_batch": "failed"}),
        entry(2, outcomes={"cuda_batch": "failed", "jpeg_dataset": "failed"}),
        entry(3, checks=(), status="rejected", code="submission.unreadable", score=None),
        entry(4),
    ]
    rows = table(cohort_page(given, title="x"), "Codes by number of submissions")
    assert [(row[0], row[1][2:], row[2], row[3], row[4]) for row in rows[1:]] == [
        ("cuda_batch.too_low", "failed", "CUDA batch", "2", "50.0%"),
        ("jpeg_dataset.too_low", "failed", "JPEG dataset", "1", "25.0%"),
        ("submission.unreadable", "rejected", "whole submission", "1", "25.0%"),
    ]


def test_scores_of_labs_with_other_points_are_shares():
    """Where points differ between labs, scores are in per cent; without a score is never 0."""
    given = [entry(1, score=25.0, max_score=50.0), entry(2), entry(3, score=None)]
    text = Page(cohort_page(given, title="x")).text
    assert "Mean 75.0%" in text
    assert "Without one 1 submission" in text
    assert "score in % of all points" in text


def test_odd_verdicts_make_a_page():
    """No score, no checks, no learner, no lab's points, an arm of another grader, times that no calendar has."""
    rate = RateSummary(median=1e-9, low=1e-9, high=1e12)
    odd = a_summary(
        "odd", checks=(), steps=(), learner=None, cohort=None, score=None, max_score=None, created_at=1e300,
        rates={"<arm>": rate, "dali": rate}, gpu=None, image_digest=None, run_s=None, lab_version=None, status="error",
    )  # fmt: skip
    html = cohort_page([CohortEntry(odd, 1e300, -1e300, "\ud800" + "x" * 10_000)], title="")
    assert "&lt;arm&gt;" in html
    assert "<arm>" not in html
    assert len(embedded(html)["rows"]["filename"][0]) == 300
    assert "Nothing changes" in page_of([a_change("odd", old=odd, new=odd)])


def test_matrix_counts_those_that_were_compared():
    """Rows and columns add up; who is pending or outdated is not in it, and is said."""
    given = [
        a_change("s:1", {}, {"cuda_batch": "failed"}),
        a_change("s:2", {}, {"cuda_batch": "failed"}),
        a_change("s:3", {"cuda_batch": "failed"}, {}),
        a_change("s:4"),
        a_change("s:5", {}, {"cuda_batch": "failed"}, outdated=True),
        pending("s:6"),
    ]
    html = page_of(given, state="running")
    assert table(html, "Status before and after") == [
        ["", "✓ passed", "✕ failed", "all before"],
        ["✓ passed", "1", "2", "3"],
        ["✕ failed", "1", "0", "1"],
        ["all after", "2", "2", "4"],
    ]
    text = Page(html).text
    assert "3 of 4 verdicts change so far" in text
    assert "2 submissions without two comparable verdicts are not in it" in text
    moved = table(html, "Each check before and after")[2]
    assert moved[1:] == ["75.0% of 4", "50.0% of 4", "−25.0 pp", "2 passed → failed 1 failed → passed"]


def test_movers_say_why():
    """Status, points and each check that differs, with its codes."""
    html = page_of([a_change("s:1", {}, {"cuda_batch": "failed"})])
    assert table(html, "Submissions that fail now and did not before")[1] == [
        "s:1 learner s:1",
        "✓ passed → to ✕ failed",
        "100 of 100",
        "75 of 100",
        "−25.0%",
        "CUDA batch passed → to failed cuda_batch.ok → to cuda_batch.too_low",
    ]


NUMBERS = "Ratios and images per second in numbers"


def test_ratios_before_and_after():
    """Of submissions that were measured on both sides and are compared; how many moved further than their intervals."""

    def measured(ratio):
        """A verdict with this ratio."""
        interval = RatioSummary(ratio=ratio, low=ratio * 0.9, high=ratio * 1.1)
        rate = RateSummary(median=ratio * 100, low=1, high=1000)
        return a_summary(ratio=interval, rates={"dali": rate}, verdict_id=f"v{ratio}")

    given = [
        a_change("s:1", measured(2.0), measured(4.0)),
        a_change("s:2", measured(2.0), measured(2.1)),
        a_change("s:3", measured(2.0), measured(1.0)),
        a_change("s:4", measured(2.0), a_summary(ratio=None, rates={})),
        a_change("s:5", measured(2.0), measured(9.0), outdated=True),
        pending("s:6"),
    ]
    html = page_of(given)
    text = Page(html).text
    assert "3 submissions have a ratio on both sides, and 1 on one side only" in text
    assert "For 2 of them the intervals before and after have nothing in common" in text
    rows = {name: (count, median) for name, count, *_, median, _, _ in table(html, NUMBERS)[1:]}
    assert rows == {
        "ratio, before": ("3", "2.00×"),
        "ratio, after": ("3", "2.10×"),
        "DALI, before": ("3", "200"),
        "DALI, after": ("3", "210"),
    }


def test_nothing_is_said_to_have_moved_that_was_not_measured_again():
    """Judged again from the same evidence: the ratios are shown once; without any, there is nothing to show."""
    html = page_of(changes(50))
    assert "Nothing was measured anew" in Page(html).text
    assert "moved-ratios" not in html
    assert [row[0] for row in table(html, NUMBERS)[3:]] == [*wording.ARMS.values()]
    unmeasured = a_change("s:1", *(a_summary(ratio=None, rates={}, verdict_id=name) for name in "vw"))
    assert "Speed" not in page_of([unmeasured])


def test_flake_ledger_names_what_varies(rendered):
    """Checks with their rates, and the submissions with the outcome of each repetition."""
    rows = table(rendered("batch"), "How often each check varies")
    assert rows[1][0] == "Status of the submission"
    assert any(row[0] == "Throughput ratio Benchmark" and int(row[2]) > 0 for row in rows)
    assert "Flake ledger" not in page_of([a_change()])


def test_narrowed_figures_say_so():
    """A diff of chosen submissions names the choice, and the page is about those alone."""
    given = [a_change("s:1", {}, {"cuda_batch": "failed"}), a_change("s:2")]
    chosen = Filter(check="cuda_batch", new="failed", differs=True)
    diff = diff_of(a_batch(), a_progress(), iter(given), chosen=chosen)
    html = batch_page(diff, [change for _, change in rows_of(given, chosen)])
    assert "check cuda_batch; after failed; only what differs" in Page(html).text
    assert embedded(html)["rows"]["id"] == ["s:1"]


@pytest.mark.parametrize(
    ("state", "said"),
    [
        pytest.param("planned", "Nothing has run", id="planned"),
        pytest.param("finished", "in force until it is applied", id="finished"),
        pytest.param("applied", "The new verdicts are in force", id="applied"),
        pytest.param("reverted", "applied and undone", id="reverted"),
    ],
)
def test_page_says_what_is_in_force(state, said):
    """Nobody has to guess whether learners see the new verdicts."""
    text = Page(page_of([a_change("s:1", {}, {"cuda_batch": "failed"})], state=state)).text
    assert said in text
    assert ("1 of 1 verdict changed" in text) == (state == "applied")


def test_selection_in_words():
    """One part per condition; many names are cut; nothing chosen is everything."""
    assert described(Selection()) == ["every graded submission"]
    chosen = Selection(
        cohorts=("a and b", "c"), learners=tuple(f"l{number}" for number in range(9)), statuses=("failed",),
        checks={"cuda_batch": Outcome.FAILED, "reflections": None}, received_from=0.0, latest_only=True,
        check_versions={"cuda_batch": "1.0.0"},
    )  # fmt: skip
    several = Selection(checks={"a": ("failed", "error")}, check_versions={"a": ("1.0.0", "1.1.0", "1.2.0")})
    assert described(several) == ["check a: failed or error", "check a: judged by version 1.0.0, 1.1.0 or 1.2.0"]
    assert described(chosen) == [
        "cohort a and b or c",
        "learner l0, l1, l2, l3, l4, l5 or 3 more",
        "status failed",
        "check cuda_batch: failed",
        "check reflections: any outcome",
        "check cuda_batch: judged by version 1.0.0",
        "received from 1970-01-01 00:00 UTC on",
        "only the latest submission of each learner to each lab",
    ]


def test_columns_hold_what_the_verdicts_say():
    """Read back from the embedded data, every check of every submission has its outcome, code, points and tier."""
    given = list(entries(60))
    data = embedded(cohort_page(given, title="x"))
    (side,) = data["sides"]
    for row, one in enumerate(given):
        found = {}
        for place, column in side["checks"].items():
            if column[row] >= 0:
                found[data["checks"][int(place)]] = tuple(data["results"][column[row]])
        expected = {
            f"{check.step}/{check.id}": (check.counted, check.code, check.score, check.max_score, check.tier, "1.0.0")
            for check in one.summary.checks
        }
        assert found == expected
        assert data["texts"][side["status"][row]] == one.summary.status
        rates = {arm: column[row] for arm, column in side["rates"].items() if column[row]}
        assert set(rates) == set(one.summary.rates)


def test_a_later_row_may_bring_a_new_check():
    """Columns that start late are filled up, and so are those that end early."""
    extra = replace(entry(2), summary=a_summary("s:2", outcomes={"another": "failed"}))
    (side,) = embedded(cohort_page([entry(1), extra, entry(3)], title="x"))["sides"]
    assert [column[0] >= 0 for column in side["checks"].values()] == [True, True, True, True, False]
    assert [column[2] for column in side["checks"].values()][-1] == -1
    assert {len(column) for column in side["checks"].values()} == {3}
