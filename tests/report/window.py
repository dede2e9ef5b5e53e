"""Windows of a real Chromium: what their console said, what they asked for, and what is wider than they are."""

import re
from contextlib import contextmanager

_WIDE = """() => [...document.querySelectorAll("body *")].filter(
  (e) => !e.closest(".scroll, pre, svg, .hidden, .skip") && e.getBoundingClientRect().right > innerWidth + 0.5
).map((e) => e.tagName + "." + e.className)"""


def without_policy(html):
    """The same page without what forbids scripts and requests."""
    bare = re.sub(r"<meta http-equiv=[^>]*>", "", html)
    assert bare != html
    return bare


class Window:
    """One open page, with what its console said and which requests it made."""

    def __init__(self, page):
        self.page = page
        self.console = []
        self.requests = []
        page.on("console", lambda message: self.console.append(message.text))
        page.on("pageerror", lambda problem: self.console.append(str(problem)))
        page.on("request", lambda request: self.requests.append(request.url))

    @property
    def scroll_width(self):
        """How wide the document is, in pixels."""
        return self.page.evaluate("Math.max(document.documentElement.scrollWidth, document.body.scrollWidth)")

    @property
    def too_wide(self):
        """Elements that end beyond the window's right edge, but for those in boxes that scroll."""
        return self.page.evaluate(_WIDE)

    @property
    def pwned(self):
        """Whether a script of somebody else ran."""
        return self.page.evaluate("Boolean(window.pwned)")

    @property
    def stayed_offline(self):
        """Whether nothing was asked for but files and what the page brings along."""
        return all(url.startswith(("file:", "data:")) for url in self.requests)


@contextmanager
def windows(chromium):
    """Opens empty pages of any size and scheme, and closes them all at the end."""
    contexts = []

    def opened(width=1280, scheme="light", **options):
        context = chromium.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme, **options)
        contexts.append(context)
        return context.new_page()

    yield opened
    for context in contexts:
        context.close()


@contextmanager
def offline_windows(chromium, folder, kind=Window):
    """Opens pages from files of a folder, without a network."""
    with windows(chromium) as opened:

        def run(html, width=1280, *, scheme="light", script=True):
            file = folder / "page.html"
            file.write_text(html)
            window = kind(opened(width, scheme, java_script_enabled=script, offline=True))
            window.page.goto(file.as_uri())
            return window

        yield run
