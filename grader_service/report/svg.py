"""Makes a plot of matplotlib's part of a page: own ids, the page's colours and fonts, a text alternative; pure.

Colours: a plot is drawn in stand-in colours, one per role, and each becomes a CSS variable of the page here, so that
one plot suits light, dark and paper. Every name and reference gets the plot's prefix, so that two plots on one page
do not take each other's clip paths and markers.
"""

import re
from enum import Enum
from xml.etree import ElementTree as ET

from markupsafe import Markup

_SPACE = re.compile(r"\s+")
_LOCAL_URL = re.compile(r"url\(#([^)]+)\)")
_IDLE_ROTATION = re.compile(r"^rotate\(-?0 ")


class Paint(Enum):
    """A role of colour in a plot: the stand-in that is drawn, and the CSS variable that replaces it."""

    INK = ("#010101", "--ink")
    MUTED = ("#010102", "--muted")
    GRID = ("#010103", "--grid")
    SURFACE = ("#010104", "--surface")
    BAND = ("#010105", "--band")
    THRESHOLD = ("#010106", "--threshold")
    DALI = ("#010107", "--arm-dali")
    LEARNER = ("#010108", "--arm-pytorch")
    DECLARED = ("#010109", "--arm-reference_declared")
    FAIR = ("#01010a", "--arm-reference_fair")

    @property
    def colour(self) -> str:
        """The stand-in, for matplotlib."""
        return self.value[0]

    @property
    def variable(self) -> str:
        """The name of the CSS variable."""
        return self.value[1]


def inline(drawn: str, prefix: str, title: str, description: str) -> Markup:
    """The SVG element to put into a page.

    Args:
        drawn: a whole SVG document as matplotlib writes it, with `svg.fonttype` none.
        prefix: starts every id; unique on the page.
        title: short name of the plot.
        description: what the plot shows, in words.
    """
    root = ET.fromstring(drawn)  # noqa: S314 - written by our own plot a moment ago
    _strip_names(root)
    _drop(root, {"metadata", "style"})
    _rename_ids(root, prefix)
    for element in root.iter():
        _tidy(element)
    for name, text in (("desc", description), ("title", title)):
        extra = ET.Element(name, {"id": f"{prefix}-{name}"})
        extra.text = text
        root.insert(0, extra)
    _, _, width, height = root.attrib["viewBox"].split()
    view = {"viewBox": root.attrib["viewBox"], "width": width, "height": height}
    root.attrib.clear()
    root.attrib.update(view)
    root.attrib.update(
        {"role": "img", "aria-labelledby": f"{prefix}-title", "aria-describedby": f"{prefix}-desc", "class": "plot"}
    )
    # Escaped by the serialiser; what was drawn is numbers and our own words.
    return Markup(ET.tostring(root, encoding="unicode", short_empty_elements=False))  # noqa: S704


def _strip_names(root: ET.Element) -> None:
    """Inside HTML neither elements nor attributes have namespaces."""
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]
        for name in [name for name in element.attrib if "}" in name]:
            element.attrib[name.rpartition("}")[2]] = element.attrib.pop(name)


def _drop(root: ET.Element, tags: set[str]) -> None:
    for parent in list(root.iter()):
        for child in [child for child in parent if child.tag in tags]:
            parent.remove(child)


def _rename_ids(root: ET.Element, prefix: str) -> None:
    """Numbers the ids that something refers to and drops the others."""
    wanted: dict[str, str] = {}

    def renamed(name: str) -> str:
        return wanted.setdefault(name, f"{prefix}-{len(wanted) + 1}")

    for element in root.iter():
        for name, value in element.attrib.items():
            if name == "href":
                element.attrib[name] = f"#{renamed(value.removeprefix('#'))}"
            else:
                element.attrib[name] = _LOCAL_URL.sub(lambda match: f"url(#{renamed(match[1])})", value)
    for element in root.iter():
        own = element.attrib.pop("id", None)
        if own in wanted:
            element.attrib["id"] = wanted[own]


def _tidy(element: ET.Element) -> None:
    """The page's colours and font; no white space that nobody needs."""
    if not (element.text or "").strip():
        element.text = None
    if not (element.tail or "").strip():
        element.tail = None
    if "d" in element.attrib:
        element.attrib["d"] = _SPACE.sub(" ", element.attrib["d"]).strip()
    if _IDLE_ROTATION.match(element.attrib.get("transform", "")):
        del element.attrib["transform"]
    if style := element.attrib.get("style"):
        rules = [rule.strip() for rule in style.split(";") if rule.strip() and "font-family" not in rule]
        style = "; ".join(rules)
        for paint in Paint:
            style = style.replace(paint.colour, f"var({paint.variable})")
        element.attrib["style"] = style
