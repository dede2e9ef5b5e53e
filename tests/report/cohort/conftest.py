"""Pages are rendered once; a real Chromium opens them from a file, without a network."""

from functools import cache

import pytest

from grader_service.report.cohort.pages import cohort_page
from tests.regrade.makers import MOMENT
from tests.report.cohort.data import changes, entries, measured_again, page_of
from tests.report.window import Window, offline_windows

PAGES = {
    "cohort": lambda: cohort_page(entries(300), title="Autumn <2026> & co", generated_at=MOMENT + 86400),
    "many": lambda: cohort_page(entries(1200), title="Everybody"),
    "empty": lambda: cohort_page([], title="Nobody"),
    "batch": lambda: page_of(changes(300, repeats=3), repeats=3),
    "again": lambda: page_of(measured_again(changes(300))),
    "nothing": lambda: page_of([], state="planned"),
}


@pytest.fixture(scope="session")
def rendered():
    """The text of a named page."""
    return cache(lambda name: PAGES[name]())


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
