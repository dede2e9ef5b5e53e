"""The rules and the dashboard ask for figures that there are, by labels that they have, and the page names them all."""

import json
import re

import pytest
import yaml

from tests.levels.parts import ROOT
from tests.monitoring.scrapes import everything, scraped

FOLDER = ROOT / "deploy" / "monitoring"
RULES = [rule for group in yaml.safe_load((FOLDER / "alerts.yaml").read_text())["groups"] for rule in group["rules"]]
DASHBOARD = json.loads((FOLDER / "dashboard.json").read_text())
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
EXPRESSIONS = [rule["expr"] for rule in RULES] + [target["expr"] for panel in PANELS for target in panel["targets"]]
TARGET = {"job", "instance"}
"""Labels that Prometheus adds."""
PAGE = (ROOT / "docs" / "operations.md").read_text()


def labels_shown(expression, samples):
    """The labels that the result of this expression can have."""
    groups = [set(re.split(r",\s*", group)) for group in re.findall(r"\bby \(([^)]*)\)", expression)]
    if groups:
        return set.union(*groups) - {"le"}
    return TARGET.union(*(sample.labels for sample in samples if sample.name in names_in(expression)))


def names_in(expression):
    """The metrics that it asks for, as Prometheus stores them."""
    return set(re.findall(r"\bgrader_\w+", expression))


def matches(sample, matchers):
    """Whether a sample is among those that a selector asks for."""
    return all((sample.labels[name] == value) is (sign == "=") for name, sign, value in matchers)


@pytest.fixture
def samples(store, tmp_path):
    """Of a service in which all has happened."""
    everything(store, tmp_path)
    return scraped(store)


def test_what_is_asked_for_exists(samples):
    """Names, labels and their values; a selector that nothing can match would be silent for ever."""
    for expression in EXPRESSIONS:
        selectors = re.findall(r"\b(grader_\w+)(?:\{([^}]*)\})?", expression)
        assert selectors
        known = set()
        for name, inside in selectors:
            found = [sample for sample in samples if sample.name == name]
            assert found, f"{expression}: there is no {name}"
            known |= {label for sample in found for label in sample.labels}
            matchers = re.findall(r'(\w+)(=|!=)"([^"]*)"', inside)
            assert inside.count('"') == 2 * len(matchers), f"{inside}: a matcher that this test cannot read"
            assert {label for label, _, _ in matchers} <= found[0].labels.keys(), f"{expression}: labels of {name}"
            assert any(matches(sample, matchers) for sample in found), f"{expression}: nothing matches {inside}"
        for group in re.findall(r"\b(?:by|on|ignoring|without) \(([^)]*)\)", expression):
            assert set(re.split(r",\s*", group)) <= known | TARGET, f"{expression}: {group}"


def test_labels_in_texts_are_those_of_the_result(samples):
    """An alert or a legend that names another one would have a gap there."""
    texts = [(rule["expr"], text) for rule in RULES for text in rule["annotations"].values()]
    texts += [(target["expr"], target["legendFormat"]) for panel in PANELS for target in panel["targets"]]
    for expression, text in texts:
        for label in re.findall(r"\{\{\s*(?:\$labels\.)?(\w+)", text):
            assert label in labels_shown(expression, samples), f"{text}: {expression}"


def test_every_alert_says_what_it_is_and_what_to_do():
    """With a place of the page that there is, for how long it must hold, and how urgent it is."""
    headings = re.findall(r"^#+ (.*)$", PAGE, re.MULTILINE)
    anchors = {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}
    for rule in RULES:
        assert rule["for"]
        assert rule["labels"]["severity"] in {"critical", "warning"}
        assert rule["annotations"].keys() == {"summary", "description", "runbook"}
        page, _, anchor = rule["annotations"]["runbook"].partition("#")
        assert (page, anchor in anchors) == ("docs/operations.md", True), rule["alert"]


def test_the_page_lists_every_alert_and_every_figure(samples):
    """And no other."""
    assert re.findall(r"^\| `(Grader\w+)` \|", PAGE, re.MULTILINE) == [rule["alert"] for rule in RULES]
    figures = PAGE.partition("## Figures")[2].partition("### Alerts")[0]
    told = {
        (name, frozenset(filter(None, labels.split(","))))
        for row in re.findall(r"^\| (`grader_.*?) \|", figures, re.MULTILINE)
        for name, labels in re.findall(r"`(\w+)(?:\{([\w,]*)\})?`", row)
    }
    there = {
        (re.sub(r"_(bucket|sum|count)$", "", sample.name), frozenset(sample.labels.keys() - {"le"}))
        for sample in samples
    }
    assert told == there


def test_panels_can_be_read():
    """Each has a title of its own, a unit, series with names, and a place that no other has."""
    titles = [panel["title"] for panel in PANELS]
    assert len(set(titles)) == len(titles)
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])
    taken = set()
    for panel in DASHBOARD["panels"]:
        at = panel["gridPos"]
        cells = {(at["x"] + x, at["y"] + y) for x in range(at["w"]) for y in range(at["h"])}
        assert not taken & cells, panel["title"]
        assert max(x for x, _ in cells) < 24
        taken |= cells
    for panel in PANELS:
        assert panel["fieldConfig"]["defaults"]["unit"], panel["title"]
        assert panel["type"] == "stat" or all(target["legendFormat"] for target in panel["targets"]), panel["title"]
        assert {panel["datasource"]["uid"], *(target["datasource"]["uid"] for target in panel["targets"])} == {
            "${datasource}"
        }
    assert [variable["name"] for variable in DASHBOARD["templating"]["list"]] == ["datasource"]
