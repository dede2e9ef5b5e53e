"""The pages in a real browser: nothing on the console, filters, sorting, drill-down, names, phones, contrast."""

import re
from dataclasses import replace
from itertools import pairwise

import pytest

from grader_service.report.cohort.pages import cohort_page
from tests.regrade.makers import a_change, a_check, a_summary, pending
from tests.report.cohort.conftest import PAGES
from tests.report.cohort.data import HOSTILE, entries, page_of
from tests.report.window import without_policy

pytestmark = [pytest.mark.integration, pytest.mark.slow]

NAMED = {
    "button",
    "link",
    "textbox",
    "searchbox",
    "combobox",
    "checkbox",
    "DisclosureTriangle",
    "region",
    "search",
    "image",
}
"""Roles of what can be operated, or that stand for something."""
POOR = """() => {
  const parts = (text) => (text.match(/[\\d.]+/g) ?? []).map(Number);
  const light = (rgb) => rgb.slice(0, 3).map((v) => v / 255)
    .map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, place) => sum + v * [0.2126, 0.7152, 0.0722][place], 0);
  const ground = (e) => {
    for (let at = e; at; at = at.parentElement) {
      const colour = parts(getComputedStyle(at).backgroundColor);
      if (colour.length === 3 || colour[3] > 0) return colour;
    }
    return [255, 255, 255];
  };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const poor = new Set();
  while (walker.nextNode()) {
    const text = walker.currentNode, e = text.parentElement;
    const aside = e.closest("script, style, noscript, [hidden], option");
    if (!text.data.trim() || aside || !e.checkVisibility()) continue;
    const style = getComputedStyle(e);
    const ink = parts(e.closest("svg") ? style.fill : style.color);
    const [one, other] = [light(ink), light(ground(e))].sort((a, b) => b - a);
    const ratio = (one + 0.05) / (other + 0.05);
    const kind = e.className?.baseVal ?? e.className;
    if (ratio < 4.5) poor.add(`${ratio.toFixed(2)} ${e.tagName}.${kind} ${text.data.slice(0, 30)}`);
  }
  return [...poor];
}"""


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("width", [320, 360, 1280])
def test_page_fits_and_console_stays_empty(visit, rendered, name, width):
    """Only tables scroll sideways, in their own boxes; nothing is asked for but the file; the console is empty."""
    seen = visit(rendered(name), width).ready()
    for button in seen.page.locator("#rows .open").all()[:3]:
        button.click()
    for summary in seen.page.locator("summary").all():
        summary.click()
    assert seen.scroll_width <= width
    assert seen.too_wide == []
    assert seen.console == []
    assert seen.stayed_offline


@pytest.mark.parametrize("name", ["cohort", "batch"])
def test_everything_that_is_operated_has_a_name(visit, rendered, name):
    """Buttons, fields, selects, regions and pictures say what they are, with a row opened."""
    seen = visit(rendered(name)).ready()
    seen.page.locator("#rows .open").nth(1).click()
    tree = seen.page.context.new_cdp_session(seen.page).send("Accessibility.getFullAXTree")["nodes"]
    found = [node for node in tree if not node["ignored"] and node["role"]["value"] in NAMED]
    assert {"button", "combobox", "searchbox", "region", "image"} <= {node["role"]["value"] for node in found}
    assert [node["role"]["value"] for node in found if not node.get("name", {}).get("value", "").strip()] == []


@pytest.mark.parametrize("name", PAGES)
def test_headings_are_in_order(visit, rendered, name):
    """One first heading, and no level is left out on the way down."""
    seen = visit(rendered(name)).ready()
    if seen.page.locator("#rows .open").count():
        seen.page.locator("#rows .open").first.click()
    levels = seen.page.evaluate("[...document.querySelectorAll('h1,h2,h3,h4,h5,h6')].map((e) => Number(e.tagName[1]))")
    assert levels.count(1) == 1
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))


@pytest.mark.parametrize("name", ["cohort", "batch"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_contrast(visit, rendered, name, scheme):
    """WCAG 2.2 AA: 4.5 to 1 for every text that is shown, with a row opened and a filter set."""
    seen = visit(rendered(name), scheme=scheme).ready()
    seen.page.locator("#rows .open").nth(6).click()
    seen.choose(q="sub-0000")
    assert seen.page.locator(".panel").count() == 1
    assert seen.page.evaluate(POOR) == []


def test_poor_contrast_would_be_seen(visit, rendered):
    """The control: grey on white is caught."""
    seen = visit(rendered("cohort")).ready()
    seen.page.evaluate("document.querySelector('h2').style.color = '#999999'")
    assert len(seen.page.evaluate(POOR)) == 1


def test_search_and_filters_of_a_cohort(visit, rendered):
    """Each filter leaves exactly the submissions that have what it asks for; all of them must hold."""
    given = [entry.summary for entry in entries(300)]
    seen = visit(rendered("cohort")).ready()
    assert seen.count == 300
    failed = [one for one in given if one.status == "failed"]
    assert seen.choose(status="failed").count == len(failed)
    assert set(seen.column("Status")) == {"✕ failed"}
    ratio = [one for one in failed if any(c.id == "throughput_ratio" and c.outcome == "failed" for c in one.checks)]
    assert 0 < seen.choose(check="benchmark/throughput_ratio", outcome="failed").count == len(ratio) < len(failed)
    coded = [one for one in ratio if any(check.code == "reflections.too_low" for check in one.checks)]
    assert 0 < seen.choose(code="reflections.too_low").count == len(coded) < len(ratio)
    seen.page.get_by_role("button", name="Clear filters").click()
    seen.choose()
    assert seen.count == 300
    assert seen.choose(q="SUB-0012").count == 10
    assert seen.choose(q="", learner="window.pwned").count == 2
    assert seen.choose(q="submission-17.ipynb", learner="").column("Submission") == ["sub-00017"]


def test_sorting_and_pages(visit, rendered):
    """A heading sorts, again the other way round; what has no value comes last both ways; pages go to the end."""
    seen = visit(rendered("cohort")).ready()
    heading = seen.page.get_by_role("columnheader", name="Ratio")
    heading.get_by_role("button").click()
    assert heading.get_attribute("aria-sort") == "ascending"
    ratios = sorted(entry.summary.ratio.ratio for entry in entries(300) if entry.summary.ratio)
    assert seen.column("Ratio")[0] == f"{ratios[0]:.2f}×"
    heading.get_by_role("button").press("Enter")
    assert heading.get_attribute("aria-sort") == "descending"
    assert seen.column("Ratio")[0] == f"{ratios[-1]:.2f}×"
    assert seen.page.locator("[aria-sort]").count() == 1
    seen.page.get_by_role("button", name="Last").click()
    assert seen.column("Ratio")[-1] == "–"
    assert "Rows 251 to 300" in seen.page.locator("#count").inner_text()
    following = seen.page.get_by_role("button", name="Next")
    assert following.get_attribute("aria-disabled") == "true"
    following.press("Enter")
    assert seen.page.locator("#where").inner_text() == "Page 6 of 6"
    seen.page.get_by_role("button", name="Previous").click()
    assert seen.page.locator("#where").inner_text() == "Page 5 of 6"
    seen.page.get_by_label("Rows").select_option("250")
    assert seen.page.locator("#where").inner_text() == "Page 1 of 2"


def test_a_row_opens_its_verdict(visit, rendered):
    """By keyboard: the button says whether it is open, and the verdict has steps, checks, ratio, rates and ids."""
    summary = next(entry.summary for entry in entries(300) if entry.summary.rates and entry.summary.status == "failed")
    seen = visit(rendered("cohort")).ready().choose(q=summary.submission_id)
    button = seen.page.get_by_role("button", name=summary.submission_id)
    assert button.get_attribute("aria-expanded") == "false"
    button.focus()
    seen.page.keyboard.press("Enter")
    assert button.get_attribute("aria-expanded") == "true"
    panel = seen.page.locator(f"#{button.get_attribute('aria-controls')}")
    text = panel.inner_text()
    for part in (
        summary.verdict_id,
        summary.run_id,
        summary.code,
        "NVIDIA H100",
        "tier A",
        "Throughput ratio",
        "Baseline",
    ):
        assert part in text
    assert f"({summary.ratio.low:.2f}× to {summary.ratio.high:.2f}×)" in text
    assert f"{summary.rates['dali'].median:,.0f} (" in text
    button.press("Enter")
    assert panel.is_hidden()


def test_feedback_is_shown_where_it_was_given(visit):
    """Texts for learners stand beside their checks, as text."""
    said = {"sub-00003": {"reflection/reflections": "<b>More</b> scenarios", "": "One step to go."}}
    seen = visit(cohort_page(entries(5), title="With feedback", feedback=said)).ready().choose(q="sub-00003")
    seen.page.locator("#rows .open").click()
    text = seen.page.locator(".panel").inner_text()
    assert "<b>More</b> scenarios" in text
    assert "One step to go." in text
    assert seen.console == []


@pytest.mark.parametrize("name", ["cohort", "batch"])
def test_every_figure_that_filters_shows_as_many_rows(visit, rendered, name):
    """Counts of the summary and what the table shows for them never disagree."""
    seen = visit(rendered(name)).ready()
    checked = 0
    for button in seen.page.locator(".pick button").all():
        figure = re.match(r"[\d,]+\b", button.inner_text())
        if not button.is_visible() or not figure:
            continue
        button.click()
        if "more submission" not in button.inner_text():
            assert seen.count == int(figure[0].replace(",", "")), button.get_attribute("aria-label")
            checked += 1
    assert checked > 12
    assert seen.console == []


def test_cell_of_the_matrix_filters_the_table(visit, rendered):
    """From passed to failed: the table below shows those, says so, and has the focus."""
    seen = visit(rendered("batch")).ready()
    cell = seen.page.locator(".matrix .moved button").first
    expected = int(cell.inner_text())
    assert re.match(r"\d+ from passed to failed: show them", cell.get_attribute("aria-label"))
    cell.press("Enter")
    assert seen.count == expected
    assert set(seen.column("Before")) == {"✓ passed"}
    assert set(seen.column("After")) == {"✕ failed"}
    assert seen.page.locator("#filters .set").count() == 3
    assert seen.page.evaluate("document.activeElement.id") == "table-heading"


def test_change_opens_both_verdicts_beside_each_other(visit, rendered):
    """What differs carries a sign beside its shade; ids and times do not."""
    seen = visit(rendered("batch")).ready().choose(kind="newly_failing", old="passed")
    seen.page.locator("#rows .open").first.click()
    panel = seen.page.locator(".panel").first
    differing = panel.locator(".differs th").all_inner_texts()
    assert [text.split("\n")[0] for text in differing] == ["Status", "Score", "Code", "Benchmark", "Throughput ratio"]
    assert panel.get_by_role("table", name="Checks before and after").locator("tbody tr").count() == 4
    assert "passed 100" not in panel.inner_text()
    sign = panel.locator(".differs th").first.evaluate("e => getComputedStyle(e, '::before').content")
    assert "≠" in sign


def test_pending_and_outdated_submissions_are_told_apart(visit):
    """Without a new verdict there is nothing after it, and no filter of the new side finds it."""
    given = [pending("s:1"), a_change("s:2", outdated=True), a_change("s:3", {"cuda_batch": "failed"}, {})]
    seen = visit(page_of(given, state="running")).ready()
    assert seen.column("Change") == ["… pending", "↷ outdated", "▲ newly passing"]
    assert seen.column("After")[0] == "–"
    assert seen.choose(new="passed").column("Submission") == ["s:2", "s:3"]
    assert seen.choose(kind="compared").column("Submission") == ["s:3"]
    assert seen.choose(kind="pending", new="").column("Submission") == ["s:1"]
    seen.page.locator("#rows .open").click()
    assert seen.page.locator(".differs").count() == 0
    assert seen.console == []


def test_hostile_text_stays_text(visit, rendered):
    """With the page's policy and without it: nothing of a learner becomes an element or runs."""
    for name in ("cohort", "batch"):
        html = rendered(name)
        for text in (html, without_policy(html)):
            seen = visit(text).ready()
            for button in seen.page.locator("#rows .open").all()[: len(HOSTILE)]:
                button.click()
            assert not seen.pwned
            assert seen.page.locator("main img").count() == 0
            assert HOSTILE[0] in seen.page.locator("#rows").inner_text()
            assert seen.console == []


def test_policy_refuses_what_is_not_ours(visit, rendered):
    """The control: a script, a style and a picture that got into the page are refused, and the console says so."""
    extra = (
        "<script>window.pwned = 1</script><p style='color: red'>x</p><img src='https://reports.invalid/x.png' alt=''>"
    )
    seen = visit(rendered("cohort").replace("</main>", f"{extra}</main>")).ready()
    assert not seen.pwned
    assert len(seen.console) >= 3
    assert not [url for url in seen.requests if "reports.invalid" in url and url.startswith("http:")]
    with pytest.raises(Exception, match="TrustedHTML"):
        seen.page.evaluate("document.body.innerHTML = '<b>x</b>'")


@pytest.mark.parametrize("name", ["cohort", "batch"])
def test_without_scripts_the_summary_is_whole(visit, rendered, name):
    """Figures, plots and the matrix show; the table says what it needs; no button does nothing."""
    seen = visit(rendered(name), script=False)
    assert seen.page.locator("svg.plot").count() >= 1
    assert seen.page.locator("#explorer").is_hidden()
    assert "scripts are switched off" in seen.page.locator("noscript").inner_text()
    assert seen.page.locator("button:visible").count() == 0
    assert all(count.strip() for count in seen.page.locator(".card-count").all_inner_texts())
    if name == "batch":
        assert seen.page.locator(".matrix td.moved").count() >= 2


def test_embedded_data_that_cannot_be_read_is_said(visit, rendered):
    """A file that was cut still shows its summary, and says that the table is not there."""
    html = re.sub(r'id="data">[^<]*<', 'id="data">AAAA<', rendered("cohort"))
    seen = visit(html)
    seen.page.locator("#trouble").wait_for(state="visible")
    assert "could not be read" in seen.page.locator("#trouble").inner_text()
    assert seen.page.locator("#explorer").is_hidden()


@pytest.mark.parametrize("name", ["cohort", "batch"])
def test_paper_has_the_summary_and_no_controls(visit, rendered, name):
    """Printed on A4, filters and pages are left out, tables are whole and nothing is cut off at the right."""
    seen = visit(rendered(name), 680).ready()
    seen.page.locator("#rows .open").nth(1).click()
    seen.page.emulate_media(media="print")
    assert seen.page.locator("#filters").is_hidden()
    assert seen.page.locator(".pages").is_hidden()
    assert seen.page.locator("#rows .open").first.is_visible()
    assert seen.scroll_width <= 680


def test_ten_thousand_submissions_make_one_page_of_rows(visit):
    """The document holds no more rows than are shown, and filters look at all of them."""
    seen = visit(cohort_page(entries(10_000), title="Everybody")).ready()
    assert seen.page.locator("#rows > tbody > tr:not(.detail)").count() == 50
    assert seen.choose(q="sub-09999").count == 1


def test_a_check_of_two_labs_filters_by_its_lab(visit):
    """Two labs may have a check of the same name; a figure of one shows the submissions of that one."""
    given = list(entries(40, hostile=False))
    cohorts = (" <b>odd</b>\n& 'name' ", "plain")
    for place, entry in enumerate(given):
        changed = entry.summary.model_copy(update={"lab": f"lab-{place % 2}", "cohort": cohorts[place % 3 == 0]})
        given[place] = replace(entry, summary=changed)
    seen = visit(cohort_page(given, title="Two labs")).ready()
    row = seen.page.locator(".rates tbody tr").first
    assert "lab-0" in row.inner_text()
    row.get_by_role("button", name=re.compile("passed")).click()
    assert seen.count == int(row.get_by_role("button", name=re.compile("passed")).inner_text().split()[0])
    assert set(seen.column("Lab")) == {"lab-0"}
    seen.page.get_by_role("button", name="Clear filters").click()
    assert seen.choose(cohort=cohorts[0]).count == sum(entry.summary.cohort == cohorts[0] for entry in given)


def test_moves_of_two_labs_filter_by_their_lab(visit):
    """In a batch as well: a check's transition shows the submissions of its own lab, and steps are summed up."""
    given = []
    for number in range(9):
        sides = [
            a_summary(
                f"s:{number}",
                checks=(a_check("one", step="same"), a_check("two", outcome, step="same")),
                lab=f"lab-{number % 3 == 0:d}",
            )
            for outcome in ("passed", "failed")
        ]
        given.append(a_change(f"s:{number}", *sides))
    seen = visit(page_of(given)).ready()
    moves = seen.page.get_by_role("button", name=re.compile("passed → failed"))
    assert sorted(moves.all_inner_texts()) == ["3 passed → failed", "6 passed → failed"]
    for move in moves.all():
        move.click()
        assert seen.count == int(move.inner_text().split()[0])
        assert len(set(seen.column("Lab"))) == 1
    steps = seen.page.get_by_role("table", name=re.compile("Pass rate of each step"))
    assert steps.locator("tbody tr").count() == 2
