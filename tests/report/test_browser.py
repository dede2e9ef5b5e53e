"""The page in a real browser: no console message, no script, no page wider than a phone."""

import json
import re
import shutil
import subprocess

import pytest

from tests.conftest import missing
from tests.report.page import Page

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--enable-logging=stderr",
    "--virtual-time-budget=3000",
    "--dump-dom",
)
# The page lies in a frame as narrow as asked for, since a headless window has a least width of its own.
HARNESS = """<!doctype html><meta charset="utf-8"><body><script>
const frame = document.createElement("iframe");
frame.style = "border:0;width:%(width)dpx;height:800px";
frame.srcdoc = %(page)s;
frame.onload = () => {
  const page = frame.contentDocument, window_ = frame.contentWindow;
  for (const details of page.querySelectorAll("details")) details.open = %(open)s;
  const wide = [...page.querySelectorAll("body *")].filter(
    (e) => !e.closest(".scroll, pre, svg, .hidden, .skip") &&
      e.getBoundingClientRect().right > window_.innerWidth + 0.5);
  const result = {
    scroll: Math.max(page.documentElement.scrollWidth, page.body.scrollWidth), inner: window_.innerWidth,
    wide: wide.map((e) => e.tagName + "." + e.className), pwned: Boolean(window_.pwned || window.pwned),
    plots: [...page.querySelectorAll("svg.plot")].map((e) => e.getBoundingClientRect().width),
    heading: page.querySelector("h1").innerText,
  };
  const out = document.createElement("output");
  out.textContent = JSON.stringify(result);
  document.body.replaceChildren(out);
};
document.body.append(frame);
</script></body>"""

pytestmark = [pytest.mark.integration, pytest.mark.slow]


@pytest.fixture(scope="session")
def browser():
    """A Chromium; missing, it is skipped at home and a failure with CI=true."""
    found = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if found is None:
        missing("no Chromium on PATH")
    return found


@pytest.fixture
def visit(browser, tmp_path):
    """Opens a page of this width; gives what was measured in it and what the console said."""

    def run(html, width=360, *, open_details=False):
        # Inside a script element only these three could end it or start a comment.
        page = json.dumps(html).replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
        harness = tmp_path / "harness.html"
        harness.write_text(HARNESS % {"page": page, "width": width, "open": str(open_details).lower()})
        dump, console = _dump(browser, harness, tmp_path)
        return json.loads(Page(dump).all("output")[0].text), console

    return run


def _dump(browser, file, folder):
    command = [browser, *FLAGS, f"--user-data-dir={folder / 'profile'}", file.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    return done.stdout, [line for line in done.stderr.splitlines() if re.search(r":CONSOLE[:(]", line)]


@pytest.mark.parametrize("open_details", [False, True])
def test_page_fits_a_phone(visit, rendered, case, open_details):
    """At 360 px nothing but a table's own box scrolls sideways; the console stays empty."""
    seen, console = visit(rendered(case), 360, open_details=open_details)
    assert seen["inner"] == 360
    assert seen["scroll"] <= 360
    assert seen["wide"] == []
    assert console == []
    assert seen["heading"].strip()
    assert all(width > 250 for width in seen["plots"])


@pytest.mark.parametrize("width", [320, 768, 1280])
def test_page_fits_other_windows(visit, rendered, width):
    """From the smallest phone to a desktop."""
    seen, console = visit(rendered("hostile"), width)
    assert seen["scroll"] <= width
    assert console == []


def test_hostile_text_does_not_run(visit, rendered):
    """Without the page's policy too: escaping alone is enough."""
    html = rendered("hostile")
    bare = re.sub(r"<meta http-equiv=[^>]*>", "", html)
    assert bare != html
    for text in (html, bare):
        seen, console = visit(text)
        assert not seen["pwned"]
        assert console == []


def test_page_opens_from_a_file(browser, rendered, tmp_path):
    """Opened as a learner opens it, the page renders and asks for nothing."""
    file = tmp_path / "report.html"
    file.write_text(rendered("official"))
    dump, console = _dump(browser, file, tmp_path)
    assert console == []
    assert Page(dump).all("h1")[0].text.endswith("Passed")


def test_console_messages_and_scripts_would_be_seen(visit, rendered):
    """The control: a page with a script and a request is caught, by its policy and without it."""
    html = rendered("official").replace(
        "</main>", '<img src="https://reports.invalid/x.png" alt=""><script>window.pwned = 1</script></main>'
    )
    seen, console = visit(html)
    assert not seen["pwned"]
    assert console
    seen, console = visit(re.sub(r"<meta http-equiv=[^>]*>", "", html))
    assert seen["pwned"]


def test_wide_pages_would_be_seen(visit, rendered):
    """The control: a page that is too wide is caught."""
    html = rendered("official").replace("</main>", '<div style="width: 500px">wide</div></main>')
    seen, _ = visit(html)
    assert seen["scroll"] > 360
    assert seen["wide"]
