"""Reads a page as a browser's parser would, strictly: every element that opens must close in order."""

from html.parser import HTMLParser

from grader_service.report.audience import Audience
from grader_service.report.html import render_report

VOID = {"meta", "link", "br", "img", "input", "hr"}


class Element:
    def __init__(self, tag, attributes, parent):
        self.tag = tag
        self.attributes = attributes
        self.parent = parent
        self.children = []
        self.texts = []

    def walk(self):
        yield self
        for child in self.children:
            yield from child.walk()

    @property
    def text(self):
        return " ".join(" ".join(self._words()).split())

    def _words(self):
        for part in self.texts:
            yield from part._words() if isinstance(part, Element) else [part]


class Page(HTMLParser):
    """A tree of elements; raises AssertionError where tags do not balance."""

    def __init__(self, html):
        super().__init__(convert_charrefs=True)
        self.root = Element("#document", {}, None)
        self._open = [self.root]
        self.feed(html)
        self.close()
        assert self._open == [self.root], f"left open: {[element.tag for element in self._open[1:]]}"

    def handle_starttag(self, tag, attrs):
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names)), f"<{tag}> repeats an attribute: {names}"
        element = Element(tag, dict(attrs), self._open[-1])
        self._open[-1].children.append(element)
        self._open[-1].texts.append(element)
        if tag not in VOID:
            self._open.append(element)

    def handle_endtag(self, tag):
        assert self._open[-1].tag == tag, f"</{tag}> closes <{self._open[-1].tag}>"
        self._open.pop()

    def handle_data(self, data):
        self._open[-1].texts.append(data)

    @property
    def elements(self):
        return list(self.root.walk())[1:]

    def all(self, tag):
        return [element for element in self.elements if element.tag == tag]

    def with_class(self, name):
        return [element for element in self.elements if name in element.attributes.get("class", "").split()]

    @property
    def text(self):
        return self.all("body")[0].text


def staff_page(verdict):
    """The page for staff, parsed."""
    return Page(render_report(verdict, Audience.STAFF))


def learner_page(verdict, attempt=None):
    """The page for the learner, parsed."""
    return Page(render_report(verdict, Audience.LEARNER, attempt))
