"""The page in a real browser: no console message, no script, no page wider than a phone."""

import pytest

from tests.report.conftest import FOR_LEARNER
from tests.report.window import without_policy

pytestmark = [pytest.mark.integration, pytest.mark.slow]
TURN_DETAILS = "open => { for (const details of document.querySelectorAll('details')) details.open = open; }"
PLOT_WIDTHS = "[...document.querySelectorAll('svg.plot')].map((e) => e.getBoundingClientRect().width)"


@pytest.mark.parametrize("open_details", [False, True])
def test_page_fits_a_phone(visit, rendered, case, open_details):
    """At 360 px nothing but a table's own box scrolls sideways; the console stays empty, and nothing is asked for."""
    seen = visit(rendered(case), 360)
    seen.page.evaluate(TURN_DETAILS, open_details)
    assert seen.scroll_width <= 360
    assert seen.too_wide == []
    assert seen.console == []
    assert seen.stayed_offline
    assert seen.page.locator("h1").inner_text().strip()
    assert all(width > 250 for width in seen.page.evaluate(PLOT_WIDTHS))


@pytest.mark.parametrize("width", [320, 768, 1280])
def test_page_fits_other_windows(visit, rendered, width):
    """From the smallest phone to a desktop."""
    seen = visit(rendered("hostile"), width)
    assert seen.scroll_width <= width
    assert seen.console == []


@pytest.mark.parametrize("reader", ["", FOR_LEARNER])
def test_hostile_text_does_not_run(visit, rendered, reader):
    """Without the page's policy too: escaping alone is enough."""
    html = rendered("hostile" + reader)
    for text in (html, without_policy(html)):
        seen = visit(text)
        assert not seen.pwned
        assert seen.console == []


def test_console_messages_and_scripts_would_be_seen(visit, rendered):
    """The control: a page with a script and a request is caught, by its policy and without it."""
    html = rendered("official").replace(
        "</main>", '<img src="https://reports.invalid/x.png" alt=""><script>window.pwned = 1</script></main>'
    )
    seen = visit(html)
    assert not seen.pwned
    assert seen.console
    seen = visit(without_policy(html))
    assert seen.pwned
    assert not seen.stayed_offline


def test_wide_pages_would_be_seen(visit, rendered):
    """The control: a page that is too wide is caught."""
    seen = visit(rendered("official").replace("</main>", '<div style="width: 500px">wide</div></main>'), 360)
    assert seen.scroll_width > 360
    assert seen.too_wide
