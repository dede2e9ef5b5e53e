"""Nothing that a learner writes becomes markup, and nothing that he writes reorders ours."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grader_service.model.feedback import NextStep
from grader_service.report.audience import Audience
from grader_service.report.html import render_report
from grader_service.report.shown import shown
from tests.report.conftest import FOR_LEARNER
from tests.report.factories import check, parts, place, provenance, stopped_run, verdict
from tests.report.hostile import ATTRIBUTE, BIDI, CLOSERS, HOSTILE, SCRIPT, TEMPLATE, hostile
from tests.report.page import Page

PIECES = st.sampled_from([*HOSTILE, "<", ">", '"', "'", "&", "--", "]]", "\\", "/"])
REORDERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


READERS = pytest.mark.parametrize("audience", list(Audience))


@pytest.mark.parametrize("reader", ["", FOR_LEARNER])
def test_hostile_text_is_shown_as_it_was_written(page, reader):
    """Escaping changes nothing that a reader sees, and no braces are evaluated."""
    text = page("hostile" + reader).text
    for attack in (SCRIPT, ATTRIBUTE, CLOSERS, TEMPLATE):
        assert attack in text


@pytest.mark.parametrize("reader", ["", FOR_LEARNER])
def test_control_and_bidi_characters_are_replaced(rendered, reader):
    """Also those in fields whose models do not replace them, such as staff details and host facts."""
    html = rendered("hostile" + reader)
    assert not REORDERING.search(html)
    assert BIDI not in html
    html.encode("utf-8")


def test_no_learner_text_is_drawn(page):
    """The plots hold numbers and our own words only."""
    drawn = " ".join(plot.text for plot in page("hostile").with_class("plot"))
    assert drawn
    for attack in HOSTILE:
        assert attack[:12] not in drawn


@READERS
def test_structure_of_the_page_is_ours(audience):
    """The hostile page has the tags of the same verdict with plain text in every place."""
    plain = [f"plain {number}" for number in range(len(HOSTILE))]
    assert _tags(render_report(hostile(), audience)) == _tags(render_report(hostile(plain), audience))


@READERS
@settings(max_examples=90)
@given(text=st.text(min_size=1, max_size=120) | st.lists(PIECES, min_size=1, max_size=6).map("".join))
def test_any_text_leaves_the_structure_alone(audience, text):
    """Whatever characters a learner chooses, and however pieces of attacks meet, the page has the same elements."""
    assert _tags(render_report(_with(text[:190]), audience)) == _tags(render_report(_with("plain"), audience))


def test_details_that_look_like_a_decision_are_ignored():
    """A check's details are free: those that do not validate as a decision decide nothing."""
    odd = check("throughput_ratio", "benchmark", details={"decision": {"ratio": SCRIPT}})
    seen = shown(verdict(checks=(odd,)))
    assert seen.decision == verdict().measurement.decision


def _with(text):
    text = text.replace("`", "'")
    line = place(file=f"+{text}", source=f"+{text}", context=(f"+{text}",))
    said = parts(outcome=f"+{text}", seen=f"+{text}", next=NextStep(text=text, code=f"+{text}", place=line))
    return verdict(
        run=stopped_run(outcome=f"1{text}", cause=f"2{text}", place=line, remedy=f"+{text}", traceback=f"+{text}"),
        learner=text,
        cohort=text,
        feedback=f"+{text}",
        checks=(
            check(feedback=text, version=text, details={text: [text, {text: text}]}),
            check("cuda_batch", parts=said),
        ),
        measurement=None,
        provenance=provenance(
            filename=text,
            entry_point=text,
            host={text: text},
            gpu={text: text},
            versions={text: text},
            timings_s={text: 1},
        ),
    )


def _tags(html):
    return [element.tag for element in Page(html).elements]
