"""Every page in a real browser: no console message, no script of a learner, names for everything, any window."""

from itertools import pairwise

import pytest

from tests.web.client import OPERATOR_TOKEN, served
from tests.web.stock import IMAGE, SCRIPT

pytestmark = [pytest.mark.integration, pytest.mark.slow]

WIDER_THAN_THE_WINDOW = """() => ({
  page: document.documentElement.scrollWidth,
  parts: [...document.querySelectorAll("body *")]
    .filter((e) => !e.closest(".scroll, pre, svg, .hidden, .skip, iframe, caption.quiet") &&
      e.getBoundingClientRect().right > innerWidth + 0.5)
    .map((e) => `${e.tagName}.${e.className}`),
})"""
NAMELESS = """() => {
  const labels = (e) => [...(e.labels || [])].map((label) => label.textContent).join(" ");
  const name = (e) => e.getAttribute("aria-label") || e.title || labels(e) || e.textContent || "";
  const used = "a, button, input:not([type=hidden]), select, textarea, iframe, [tabindex], summary";
  return [...document.querySelectorAll(used)]
    .filter((e) => name(e).trim() === "").map((e) => e.outerHTML.slice(0, 200));
}"""
HEADINGS = """() => [...document.querySelectorAll("h1, h2, h3, h4")].map((e) => Number(e.tagName[1]))"""
CELLS = """() => [...document.querySelectorAll("th")].filter((e) => !e.getAttribute("scope")).length"""
UNIQUE = """() => { const ids = [...document.querySelectorAll("[id]")].map((e) => e.id);
  return ids.filter((id, at) => ids.indexOf(id) !== at); }"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
def test_every_page_renders_in_any_window(place, visit, width, scheme):
    """No console message, nothing wider than the window, nothing of a learner's run, a title and one heading."""
    window = visit(place.port, width, scheme).sign_in()
    for name, path in place.pages().items():
        assert window.go(path) == (300 if name == "several" else 200), name
        window.page.wait_for_timeout(50)
        assert window.console == [], name
        seen = window.page.evaluate(WIDER_THAN_THE_WINDOW)
        assert seen["page"] <= width, name
        assert seen["parts"] == [], name
        assert not window.pwned, name
        assert window.page.title().endswith(" · Grader"), name


def test_every_page_is_accessible(place, visit):
    """Names for all that can be used, headings in order, landmarks, scopes, unique ids, a language."""
    window = visit(place.port).sign_in()
    for name, path in place.pages().items():
        window.go(path)
        assert window.page.evaluate(NAMELESS) == [], name
        assert window.page.evaluate(CELLS) == 0, name
        assert window.page.evaluate(UNIQUE) == [], name
        levels = window.page.evaluate(HEADINGS)
        assert levels[0] == 1, name
        assert levels.count(1) == 1, name
        assert all(after <= before + 1 for before, after in pairwise(levels)), name
        assert window.page.locator("main").count() == 1, name
        assert window.page.get_by_role("navigation", name="Pages").count() == 1, name
        assert window.page.evaluate("document.documentElement.lang") == "en", name


def test_the_keyboard_reaches_the_content(place, visit):
    """The first stop skips to it, and a stop can be seen."""
    window = visit(place.port)
    window.go("/submissions")
    window.page.keyboard.press("Tab")
    assert window.page.evaluate("document.activeElement.textContent") == "Skip to the content"
    window.page.keyboard.press("Enter")
    window.page.wait_for_url(lambda url: url.endswith("#main"))
    window.page.keyboard.press("Tab")
    assert window.page.evaluate("document.activeElement.id") == "q"
    assert window.page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"


def test_hostile_texts_stay_texts(place, visit):
    """Names, files, errors, devices and reasons are shown as they were written."""
    window = visit(place.port).sign_in()
    window.go("/submissions?q=%3Cscript")
    row = window.page.locator("tbody tr")
    assert row.count() == 1
    assert SCRIPT in row.inner_text()
    row.get_by_role("link").first.click()
    window.page.wait_for_load_state()
    text = window.page.locator("main").inner_text()
    for part in (SCRIPT, IMAGE, f"note={IMAGE}"):
        assert part in text
    window.go("/")
    text = window.page.locator("main").inner_text()
    for part in (f"pod died: {SCRIPT}", f"XID 79 {SCRIPT}", f"run space: {IMAGE}"):
        assert part in text
    window.go("/reviews")
    text = window.page.locator("main").inner_text()
    assert text.count(SCRIPT) >= 4
    assert text.count(IMAGE) >= 3
    window.go(f"/batches/{place.seen['finished']}")
    assert f"too low {SCRIPT}" in window.page.locator("main").inner_text()
    window.go(f"/submissions/{place.seen['ids'][2]}")
    assert "\u202e" not in window.page.content()
    assert "Ann\ufffdgpj" in window.page.content()
    assert window.console == []
    assert not window.pwned


def test_a_verdict_shows_its_report_whole(place, visit):
    """The frame is as high as the report, has the report's heading, and runs nothing."""
    window = visit(place.port)
    window.go(place.pages()["verdict"])
    frame = window.page.frame_locator("iframe")
    frame.locator("h1").wait_for()
    window.page.wait_for_function(
        "() => { const f = document.querySelector('iframe'); const d = f.contentDocument.documentElement;"
        " return Math.abs(f.clientHeight - d.getBoundingClientRect().height) < 8; }"
    )
    frame.get_by_text("Details for staff").first.click()
    window.page.wait_for_function(
        "() => { const f = document.querySelector('iframe'); const d = f.contentDocument.documentElement;"
        " return d.scrollHeight <= f.clientHeight + 1; }"
    )
    assert window.console == []


def test_reports_open_and_work_outside_of_this_origin(place, visit):
    """Their script runs, without this page's cookie and storage in its reach."""
    window = visit(place.port).sign_in()
    for path in (f"/batches/{place.seen['finished']}/report", "/cohorts/report?cohort=autumn&lab=dali-pipelines"):
        assert window.go(path) == 200
        window.page.locator("#explorer").wait_for(state="visible")
        assert window.page.evaluate("self.origin") == "null"
        assert window.console == []
        assert not window.pwned


def test_search_and_paging_lead_through_all_submissions(place, visit):
    """By clicking; a filter stays while paging."""
    window = visit(place.port)
    window.go("/submissions")
    seen = []
    while True:
        seen += window.page.locator("tbody th").all_inner_texts()
        following = window.page.get_by_role("link", name="Next submissions")
        if not following.count():
            break
        following.click()
        window.page.wait_for_load_state()
    assert seen == place.seen["ids"][::-1]
    window.go("/submissions")
    window.page.get_by_label("Status").select_option("passed")
    window.page.get_by_label("Cohort").select_option("autumn")
    window.press("Search")
    assert set(window.page.locator("tbody tr .chip").all_inner_texts()) == {"✓ passed"}
    window.page.get_by_role("link", name="Clear").click()
    assert window.page.get_by_label("Status").input_value() == ""


def test_numbers_of_the_diff_lead_to_their_submissions(place, visit):
    """A group, a cell of the matrix and a check open as many rows as they say."""
    window = visit(place.port)
    for choose in (
        lambda page: page.locator(".kind-newly_failing a"),
        lambda page: page.locator(".matrix td.worse a").first,
        lambda page: page.get_by_role("link", name="throughput_ratio differs"),
    ):
        window.go(f"/batches/{place.seen['finished']}")
        link = choose(window.page)
        wanted = int(link.inner_text().split()[-1])
        link.click()
        window.page.wait_for_load_state()
        assert window.page.locator("main tbody tr").count() == wanted
    assert window.console == []


def test_the_diff_of_a_large_batch_comes_after_its_page(place, visit):
    """The page does not wait for it; without scripts a link leads to it."""
    path = f"/batches/{place.seen['finished']}"
    with served(place.store, compares_at_once=10) as port:
        window = visit(port)
        window.go(path)
        window.page.locator(".matrix").wait_for()
        assert window.page.locator(".kind-newly_failing .tile-number").is_visible()
        assert window.console == []
        plain = visit(port, java_script_enabled=False)
        plain.go(path)
        assert plain.page.locator(".matrix").count() == 0
        plain.press("Summary", "link")
        assert plain.page.locator(".matrix").is_visible()


def test_a_page_that_lost_its_server_says_so(place, visit):
    """What it shows stays, with the time that it is from."""
    with served(place.store) as port:
        window = visit(port)
        window.go(f"/batches/{place.seen['running']}")
        note = window.page.locator("[data-live-note]")
        window.page.wait_for_function("() => document.querySelector('[data-live-note]').textContent.startsWith('Live')")
    window.page.wait_for_function(
        "() => document.querySelector('[data-live-note]').textContent.startsWith('Not current since')"
    )
    assert window.page.get_by_role("progressbar").is_visible()
    assert "reload" in note.inner_text()


def test_without_scripts_the_page_is_whole(place, visit):
    """And a running batch refreshes itself."""
    window = visit(place.port, java_script_enabled=False)
    window.go(f"/batches/{place.seen['running']}")
    assert window.page.get_by_role("progressbar").get_attribute("aria-valuenow") == "10"
    assert window.page.locator("meta[http-equiv=refresh]").get_attribute("content") == "5"
    window.go(place.pages()["verdict"])
    assert window.page.locator("iframe").bounding_box()["height"] > 300
    window.go("/")
    assert window.page.get_by_text("Learners waiting").is_visible()


def test_the_wrong_token_is_said_and_the_right_one_leads_on(place, visit):
    """To the page that was asked for."""
    window = visit(place.closed_port)
    window.go("/audit")
    assert window.page.get_by_role("heading", name="Sign in").is_visible()
    window.page.get_by_label("Token").fill("not-the-right-token")
    window.press("Sign in")
    assert "opens nothing" in window.page.get_by_role("alert").inner_text()
    window.page.get_by_label("Your name").fill("Zoë")
    window.page.get_by_label("Token").fill(OPERATOR_TOKEN)
    window.press("Sign in")
    assert window.page.get_by_role("heading", name="Audit log").is_visible()
    assert "Zoë (operator)" in window.page.locator("header").inner_text()
    window.press("Sign out")
    assert window.page.get_by_role("heading", name="Sign in").is_visible()
