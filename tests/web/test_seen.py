"""How a case is arranged for the person who decides."""

import json

import pytest

from checks.registry import Registry
from grader_service.model.verdict import CheckVerdict
from grader_service.store.reviews import Case, CaseView
from grader_service.web.seen import arranged, shown

CODES = Registry().load("reflections").check.codes


def a_view(seen, details=None, check="reflections"):
    """A case with what its check saw and said."""
    case = Case("s:1", check, "a-lab", None, "v", "r", "subject", 0.0, 1.0)
    if details is None:
        return CaseView(case, seen, None, ("the verdict cannot be read",))
    said = {"id": check, "version": "1.0.0", "step": "one", "outcome": "inconclusive", "code": f"{check}.needs_review"}
    verdict = said | {"score": None, "max_score": 10, "feedback": "A person decides.", "details": details}
    return CaseView(case, seen, CheckVerdict.model_validate_json(json.dumps(verdict)))


def test_each_text_stands_beside_what_the_check_says_of_it():
    """In the order of the check's fields, with the reason in words: of its code where it has one of that name."""
    rows = [{"index": 1, "counted": True, "reason": "counted"}, {"index": 2, "counted": False, "reason": "off_topic"}]
    seen = {"where_dali_loses": ["tabular data"], "where_dali_wins": ["many JPEGs", "the weather"]}
    details = {"where_dali_wins": rows, "where_dali_loses": [{"index": 1, "counted": False, "reason": "too_short"}]}
    found = arranged(a_view(seen, details), CODES, ["where_dali_wins", "where_dali_loses"])
    assert [one.name for one in found.texts] == ["where_dali_wins", "where_dali_loses"]
    first, second = found.texts[0].items
    assert (first.number, first.text, first.counted, first.why) == (1, "many JPEGs", True, "")
    assert (second.counted, second.why) == (False, CODES["reflections.off_topic"])
    assert found.texts[1].items[0].why == "Too short"
    assert found.others.named == ()
    assert [name for name, _ in found.figures.named] == ["where_dali_wins", "where_dali_loses"]
    assert found.figures.named[0][1].columns == ["index", "counted", "reason"]


def test_a_second_opinion_stands_by_itself():
    """And not among the figures."""
    said = {"model": "some-model", "opinion": "good", "why": "It is concrete.", "items": [{"n": 1}], "from": "x.y"}
    found = arranged(a_view({"words": ["a"]}, {"counted": 1, "second_opinion": said}), {})
    assert (found.opinion.model, found.opinion.opinion, found.opinion.why) == ("some-model", "good", "It is concrete.")
    assert found.opinion.items.rows == [["1"]]
    assert [name for name, _ in found.figures.named] == ["counted"]


@pytest.mark.parametrize(
    "details",
    [
        None,
        {},
        {"words": None},
        {"words": "no list"},
        {"words": [1, "x", None, {"index": "1"}, {"index": 9, "counted": True}]},
        {"words": [{"index": 1, "counted": "yes", "reason": None}]},
        {"second_opinion": "good"},
        {"second_opinion": {}},
    ],
)
def test_texts_are_shown_whatever_the_check_says(details):
    """Also where its part of the verdict cannot be read."""
    found = arranged(a_view({"words": ["a", "b"]}, details), {})
    assert [(item.text, item.counted, item.why) for item in found.texts[0].items] == [("a", None, ""), ("b", None, "")]


@pytest.mark.parametrize("seen", [None, {}, [], "text"])
def test_nothing_seen_breaks_nothing(seen):
    """What was not kept, or is no object."""
    found = arranged(a_view(seen, {}), {})
    assert (found.texts, found.others.named) == ([], ())


def test_other_values_are_a_readable_structure():
    """Named values, lists, tables and plain texts, to some depth."""
    found = arranged(a_view({"b": {"n": 0.1, "ok": True, "none": None}, "a": [{"x": 1}, {"y": "z"}]}, {}), {}).others
    table, named = found.named[0][1], found.named[1][1]
    assert (table.columns, table.rows) == (["x", "y"], [["1", ""], ["", "z"]])
    assert [(name, one.text) for name, one in named.named] == [("n", "0.1"), ("ok", "yes"), ("none", "–")]
    assert shown([1, 2.5, None]).text == "1, 2.5, –"
    assert [one.text for one in shown(["a", 1]).entries] == ["a", "1"]
    long = shown(list(range(1000)))
    assert (long.text.count(","), long.left_out) == (199, 800)
    deep = value = {}
    for _ in range(50):
        value["in"] = value = {}
    inner = shown(deep)
    for _ in range(5):
        inner = inner.named[0][1]
    assert inner.text.startswith('{"in": {"in"')
