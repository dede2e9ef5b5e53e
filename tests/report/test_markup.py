"""The page is well-formed, accessible, self-contained and the same every time."""

import hashlib
import itertools
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.report.conftest import render

REFERENCES = {
    "src",
    "href",
    "xlink:href",
    "srcset",
    "action",
    "formaction",
    "data",
    "poster",
    "background",
    "cite",
    "ping",
}
RENDER = """
import hashlib
from tests.report.cases import CASES
from grader_service.report.audience import Audience
from grader_service.report.html import render_report
print(hashlib.sha256(render_report(CASES["official"](), Audience.STAFF).encode()).hexdigest())
"""


def test_ids_are_unique_and_references_resolve(page, case):
    """Two plots do not share a name, and every label, link and clip path points at something."""
    elements = page(case).elements
    ids = [element.attributes["id"] for element in elements if "id" in element.attributes]
    assert len(ids) == len(set(ids))
    for element in elements:
        for name in ("aria-labelledby", "aria-describedby"):
            assert set(element.attributes.get(name, "").split()) <= set(ids)
        if element.attributes.get("href", "").startswith("#"):
            assert element.attributes["href"][1:] in ids
        for value in element.attributes.values():
            assert set(re.findall(r"url\(#([^)]+)\)", value or "")) <= set(ids)


def test_nothing_outside_is_referred_to(page, case):
    """Every reference stays on the page or is data, in attributes and in CSS alike."""
    shown = page(case)
    for element in shown.elements:
        for name, value in element.attributes.items():
            if name in REFERENCES:
                assert value.startswith("#") or value == "data:,", f"<{element.tag} {name}={value!r}>"
            if name == "style":
                assert not re.search(r"url\((?!#)", value), value
    for style in shown.all("style"):
        assert "url(" not in style.text
        assert "@import" not in style.text
    assert not {"script", "iframe", "object", "embed", "img", "base", "form"} & {item.tag for item in shown.elements}
    assert "xmlns" not in "".join(name for item in shown.elements for name in item.attributes)
    assert not [name for item in shown.elements for name in item.attributes if name.startswith("on")]


def test_policy_forbids_scripts_and_requests(page):
    """The page's own policy lets nothing run and nothing load, should escaping ever fail."""
    policy = next(item for item in page("official").all("meta") if item.attributes.get("http-equiv"))
    assert "default-src 'none'" in policy.attributes["content"]
    assert "script-src" not in policy.attributes["content"]


def test_headings_are_in_order(page, case):
    """One first heading; no level is skipped on the way down."""
    levels = [int(item.tag[1]) for item in page(case).elements if re.fullmatch(r"h[1-6]", item.tag)]
    assert levels.count(1) == 1
    assert levels[0] == 1
    assert all(later <= earlier + 1 for earlier, later in itertools.pairwise(levels))


def test_tables_have_captions_and_scopes(page, case):
    """Each table has a caption, each heading cell a scope, and each row as many cells as its head."""
    for table in page(case).all("table"):
        elements = list(table.walk())
        assert next(item for item in elements if item.tag == "caption").text
        assert all("scope" in item.attributes for item in elements if item.tag == "th")
        rows = [item for item in elements if item.tag == "tr"]
        widths = {sum(int(cell.attributes.get("colspan", 1)) for cell in row.children) for row in rows}
        assert len(widths) == 1


def test_plots_have_text_alternatives(page, case):
    """Each plot is an image with a title and a description of its own."""
    for plot in page(case).with_class("plot"):
        assert plot.attributes["role"] == "img"
        named = {child.attributes.get("id"): child.text for child in plot.children}
        assert named[plot.attributes["aria-labelledby"]]
        assert named[plot.attributes["aria-describedby"]]


def test_page_names_language_and_title(page, case):
    """Language, title, viewport and one main region."""
    shown = page(case)
    assert shown.all("html")[0].attributes["lang"] == "en"
    assert shown.all("title")[0].text
    assert len(shown.all("main")) == 1
    assert any(item.attributes.get("name") == "viewport" for item in shown.all("meta"))


def test_scrolling_boxes_can_be_reached(page, case):
    """A box that may scroll takes the focus and has a name."""
    for box in page(case).with_class("scroll"):
        assert box.attributes["tabindex"] == "0"
        assert box.attributes["aria-label"]


def test_page_is_small(rendered, case):
    """Below half a megabyte, hostile or not."""
    assert len(rendered(case).encode()) < 500_000


def test_same_verdict_same_page(rendered, case):
    """Rendering again gives the same text."""
    assert render(case) == rendered(case)


@pytest.mark.parametrize("seed", ["1", "2"])
def test_same_page_in_another_process(rendered, seed):
    """Neither hash seeds nor time zones show."""
    environment = os.environ | {"PYTHONHASHSEED": seed, "TZ": "Asia/Tokyo"}
    command, folder = [sys.executable, "-c", RENDER], Path(__file__).parents[2]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == hashlib.sha256(rendered("official").encode()).hexdigest()


def test_plotting_needs_no_matplotlib():
    """The service's image has none: a page with plots is made without it."""
    code = f"{RENDER}\nimport sys; sys.exit('matplotlib' in sys.modules)"
    folder = Path(__file__).parents[2]
    assert subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, check=False).returncode == 0
