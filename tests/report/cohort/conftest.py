"""Pages are rendered once; a real Chromium opens them from a file, without a network."""

from functools import cache

import pytest

from grader_service.report.cohort.pages import batch_page, cohort_page
from tests.regrade.makers import MOMENT
from tests.report.cohort.data import changes, entries, figures, measured_again
from tests.report.window import Window, offline_windows


def _rendered(name):
    if name == "cohort":
        return cohort_page(entries(300), title="Autumn <2026> & co", generated_at=MOMENT + 86400)
    if name == "many":
        return cohort_page(entries(1200), title="Everybody")
    if name == "empty":
        return cohort_page([], title="Nobody")
    if name == "nothing":
        return batch_page(figures([], state="planned"), [])
    if name == "again":
        given = list(measured_again(changes(300)))
        return batch_page(figures(given), given)
    given = list(changes(300, repeats=3))
    return batch_page(figures(given, repeats=3), given)


PAGES = ("cohort", "many", "empty", "batch", "again", "nothing")


@pytest.fixture(scope="session")
def rendered():
    """The text of a named page."""
    return cache(_rendered)


class Visit(Window):
    """One open page of submissions."""

    def ready(self):
        """Waits for the table."""
        self.page.locator("#explorer").wait_for(state="visible")
        return self

    def choose(self, **filters):
        """Sets filters, and waits until the table shows them."""
        form = self.page.locator("#filters")
        for name, value in filters.items():
            control = form.locator(f"[name={name}]")
            if control.evaluate("e => e.tagName") == "SELECT":
                control.select_option(value)
            else:
                control.fill(value)
        # A timer of the page's own, set after the one that its filters wait for: it ends after it, however slow both.
        self.page.evaluate("() => new Promise((done) => setTimeout(done, 130))")
        return self

    @property
    def count(self):
        """How many rows the page says fit the filters."""
        return int(self.page.locator("#count").inner_text().split(" of ")[0].replace(",", ""))

    def column(self, heading):
        """The cells below a heading, on the page of the table that is shown."""
        script = """heading => {
          const heads = [...document.querySelectorAll("#rows > thead th")].map((head) => head.innerText.trim());
          const place = heads.findIndex((head) => head.startsWith(heading));
          const rows = [...document.querySelectorAll("#rows > tbody > tr:not(.detail)")];
          return rows.map((row) => row.children[place].innerText.trim());
        }"""
        return self.page.evaluate(script, heading)


@pytest.fixture
def visit(chromium, tmp_path):
    """Opens a page from a file, offline."""
    with offline_windows(chromium, tmp_path, Visit) as run:
        yield run
