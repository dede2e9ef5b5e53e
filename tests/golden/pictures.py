"""Takes pictures of all learner reports: at 1200 and 390 pixels, and in dark.

python -m tests.golden.pictures FOLDER [NAME…]    # FOLDER/NAME.html, NAME.1200.png, NAME.390.png, NAME.dark.png

A page that is wider than its window, or a message on the console, is told; then the exit status is 1.
"""

import argparse
import shutil
import sys
from pathlib import Path
from typing import NamedTuple

from playwright.sync_api import Browser, sync_playwright

from tests.golden.catalogue import Mistake, chosen
from tests.golden.pages import kept_page
from tests.report.window import offline_windows


class View(NamedTuple):
    """How a page is looked at."""

    word: str
    width: int
    scheme: str = "light"


VIEWS = (View("1200", 1200), View("390", 390), View("dark", 1200, "dark"))


def main() -> int:
    """Takes the pictures."""
    parser = argparse.ArgumentParser(prog="python -m tests.golden.pictures")
    parser.add_argument("folder", type=Path, help="Where pages and pictures are written.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="Those that stand in mistakes.toml; all if none.")
    options = parser.parse_args()
    try:
        mistakes = chosen(options.names)
    except ValueError as error:
        parser.error(str(error))
    found = shutil.which("chromium") or "/usr/bin/chromium"
    options.folder.mkdir(parents=True, exist_ok=True)
    problems = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        for mistake in mistakes:
            problems += taken(mistake, browser, options.folder)
        browser.close()
    print("\n".join(problems), file=sys.stderr, end="\n" * bool(problems))
    print(f"{len(mistakes)} reports, {len(VIEWS)} pictures of each, in {options.folder}")
    return 1 if problems else 0


def taken(mistake: Mistake, browser: Browser, folder: Path) -> list[str]:
    """Pictures of one report; what is wrong with how it is shown."""
    html = kept_page(mistake.name).html
    (folder / f"{mistake.name}.html").write_text(html)
    problems = []
    with offline_windows(browser, folder) as show:
        for view in VIEWS:
            window = show(html, view.width, scheme=view.scheme)
            window.page.screenshot(path=folder / f"{mistake.name}.{view.word}.png", full_page=True)
            problems += [f"{mistake.name} at {view.word}: {text}" for text in window.console]
            problems += [f"{mistake.name} at {view.word}: too wide: {tag}" for tag in window.too_wide]
    (folder / "page.html").unlink()
    return problems


if __name__ == "__main__":
    raise SystemExit(main())
