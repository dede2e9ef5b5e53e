"""The golden pages: kept runs of ordinary mistakes, judged again, and what their learners are told.

What a page says may change with a check's words: `python -m tests.golden.run --pages` writes the texts anew, to be read
before they are committed. `python -m tests.golden.run NAME` runs a submission again.
"""

import ast
import json
import statistics

import pytest

from grader_service.ingest.limits import IngestLimits
from grader_service.ingest.notebook import read_cells
from grader_service.model.feedback import Advice, Feedback, NextStep
from grader_service.model.verdict import Outcome
from tests.corpus.world import opened_world
from tests.golden import rules
from tests.golden.catalogue import CHECKS, KEPT, SUBMISSIONS, mistakes
from tests.golden.pages import facts, kept_page, lab, page_of, registry, wanted
from tests.golden.run import run
from tests.golden.visible import visible
from tests.report.cases import told
from tests.report.factories import told_check, verdict

LEAST = 40
UNREADABLE = frozenset({"run.syntax_error"})
SAMPLE = ("data_root", "syntax_later_cell", "external_source", "spanish_honest", "stalled", "killed_at_the_end")
"""Run anew by `make test-all`: a near miss, a stop, a graph that cannot be run again, a pass, and two that we end."""
NOISE = frozenset({"ratio.ok", "ratio.inconclusive", "ratio.host_unsteady", "ratio.host_cannot_show_effect"})
"""What a fast enough graph may get on a busy host without a GPU."""
UPDATE = "python -m tests.golden.run --pages"

every = pytest.mark.parametrize("name", mistakes())


def test_there_are_enough_of_them_and_each_has_its_files():
    """No submission without an entry, and nothing kept of one that is gone."""
    assert len(mistakes()) >= LEAST
    assert sorted(path.stem for path in SUBMISSIONS.iterdir()) == sorted(mistakes())
    kept = {path.name.partition(".")[0] for path in KEPT.glob("*")}
    assert kept == set(mistakes())


def test_steps_are_those_of_the_lab():
    """And the first words of their checks' codes."""
    steps = lab().steps
    assert [step.id for step in steps] == list(CHECKS)
    for step in steps:
        (check,) = step.checks
        assert f"{CHECKS[step.id]}.ok" in registry().load(check.id).check.codes
    assert all(list(one.steps) in ([], list(CHECKS)) for one in mistakes().values())


def test_three_languages_have_honest_reflections_and_mistakes():
    """One that passes and at least one that does not."""
    for language in ("german", "spanish", "chinese"):
        named = [one for name, one in mistakes().items() if name.startswith(language)]
        assert {one.results["reflection"][0] == "passed" for one in named} == {True, False}, language


@every
def test_a_submission_is_code_up_to_its_mistake(name):
    """Python reads all that is not meant to be unreadable."""
    mistake = mistakes()[name]
    if mistake.run == "":
        return
    if mistake.filename.endswith(".py"):
        texts = [mistake.submission.decode()]
    else:
        texts = [text for _, text in read_cells(mistake.submission, IngestLimits())]
    unreadable = 0
    for text in texts:
        try:
            ast.parse(text)
        except SyntaxError:
            unreadable += 1
    assert unreadable == (mistake.run in UNREADABLE)


@every
def test_the_kept_run_comes_out_as_it_has_to(name):
    """Status, codes and outcomes of every step, judged again by today's checks."""
    assert facts(kept_page(name).verdict) == wanted(mistakes()[name])


@every
def test_the_terminal_says_what_is_kept(name):
    """See the module's docstring for how to take over a change."""
    kept = mistakes()[name].terminal
    assert kept_page(name).terminal == kept.read_text(), f"changed: {UPDATE} {name}"


@every
def test_the_report_says_what_is_kept(name):
    """As the terminal."""
    kept = mistakes()[name].report
    assert kept_page(name).report_text == kept.read_text(), f"changed: {UPDATE} {name}"


@every
def test_the_page_keeps_the_rules(name):
    """Root cause first, short, nothing twice, an action for each failure, no contradiction, nothing of ours."""
    assert rules.broken(mistakes()[name], kept_page(name)) == []


@every
def test_what_is_kept_is_small_and_of_no_machine(name):
    """Evidence without seed, times and folders."""
    text = mistakes()[name].evidence.read_text()
    assert len(text) < 40_000
    run = json.loads(text).get("evidence", {}).get("run", {})
    assert run.get("seed", "0" * 32) == "0" * 32
    assert not run.get("timings_s")
    assert "site-packages/" not in text or "/usr/lib" in text


def test_half_of_the_pages_are_short():
    """The learner's own source and output is not counted."""
    counts = {name: rules.page_words(kept_page(name)) for name in mistakes()}
    assert statistics.median(counts.values()) <= rules.MOST_OF_A_PAGE, counts


@pytest.mark.slow
@pytest.mark.integration
@pytest.mark.parametrize("name", SAMPLE)
def test_a_run_of_today_comes_out_as_the_kept_one(name, golden):
    """For real, in pods; only how fast this host is may differ."""
    mistake = mistakes()[name]
    graded = run(mistake, golden)
    assert graded.failure is None
    status, code, ended, results = facts(graded.verdict)
    right = wanted(mistake)
    noisy = {"benchmark"} if right[3]["benchmark"][1] in NOISE and results["benchmark"][1] in NOISE else set()
    assert ended == right[2]
    assert {step: results[step] for step in results if step not in noisy} == {
        step: right[3][step] for step in right[3] if step not in noisy
    }
    if results == right[3]:
        assert (status, code) == right[:2]


@pytest.fixture(scope="module")
def golden():
    """A world of forked pods."""
    with opened_world("forked") as world:
        yield world


# The rules themselves: each finds what it is for.


def broken_by(given):
    """What `given`'s only failed check is told to be broken by, without the rule on the root cause."""
    found = rules.broken(mistakes()["data_root"], page_of(given))
    return [text for text in found if "does not say" not in text]


def failing(**parts):
    """A verdict with one failed check that says this."""
    said = Feedback(**{"outcome": "It is not so.", "next": NextStep(text="Write it anew.")} | parts)
    return verdict(checks=(told_check(parts=said, feedback=said.text),), steps=(), measurement=None)


def test_a_good_page_breaks_no_rule():
    """The control."""
    assert broken_by(failing()) == []


@pytest.mark.parametrize(
    ("parts", "found"),
    [
        ({"seen": "word " * 61}, "words, at most 60"),
        ({"advice": (Advice(code="advice.long", text="word " * 61),)}, "advice.long has 61 words"),
        (
            {"seen": "This sentence stands here once more. This sentence stands here once more."},
            "2 times: This sentence stands here once more.",
        ),
        ({"next": None}, "says nothing to do"),
        ({"next": NextStep(text="The decoder is slow.")}, "no verb at the beginning"),
        ({"seen": "It lies in /var/tmp/grader-1/runs."}, "names /var/tmp/grader"),
        ({"seen": "Of 128 held-out images."}, "names held-out"),
        ({"seen": "The code is jpeg.failed."}, "names jpeg.failed"),
    ],
)
def test_a_rule_finds_what_it_is_for(parts, found):
    """One at a time."""
    assert any(found in text for text in broken_by(failing(**parts)))


NUMBERS = {"ratio": 1.38, "low": 1.17, "high": 1.61, "needed": 1.1}


@pytest.mark.parametrize(
    ("outcome", "numbers", "seen", "found"),
    [
        (Outcome.PASSED, NUMBERS, "above the 1.1 that is needed", []),
        (Outcome.FAILED, NUMBERS, "", ["failed"]),
        (Outcome.PASSED, NUMBERS | {"low": 1.05}, "above the 1.1 that is needed", ["is said to be above", "passed"]),
        (Outcome.INCONCLUSIVE, NUMBERS, "on both sides of the 1.1", ["is said to lie on both sides"]),
        (Outcome.INCONCLUSIVE, NUMBERS | {"low": 1.0}, "on both sides of the 1.1", []),
        (Outcome.PASSED, NUMBERS | {"ratio": 2.0}, "", ["the interval does not hold the ratio"]),
    ],
)
def test_verb_and_interval_are_compared(outcome, numbers, seen, found):
    """A ratio that is said to be above lies above with its whole interval."""
    said = Feedback(outcome="DALI delivered so many images.", seen=seen, numbers=numbers)
    check = told_check(outcome=outcome, parts=said, feedback=said.text)
    assert [text.rpartition(": ")[2] for text in rules.contradictions(check)] == found


def test_the_text_of_a_page_is_what_is_seen():
    """Without what is hidden or drawn; source is verbatim, line for line."""
    html = (
        "<html><head><title>t</title></head><body><a class='skip' href='#m'>Skip</a><main><h1>One <b>two</b></h1>"
        "<p>three\n four<span class='hidden'>warning</span></p><svg><text>9</text></svg>"
        "<pre><span><i>7</i>x = 1\n</span><span><i>8</i>y</span></pre></main></body></html>"
    )
    assert [(" ".join(line.text.split()), line.verbatim) for line in visible(html)] == [
        ("One two", False),
        ("three four", False),
        ("7 x = 1", True),
        ("8 y", True),
    ]


def test_sentences_of_a_whole_page_are_found():
    """Two checks that say the same, on the terminal and in the report."""
    said = "This sentence stands at two of the checks."
    given = told()
    first, second = given.checks
    first = first.model_copy(update={"parts": Feedback(outcome="It passed.", advice=(Advice(code="a.b", text=said),))})
    second = second.model_copy(update={"parts": second.told.model_copy(update={"seen": f"{said} And another one."})})
    found = broken_by(given.model_copy(update={"checks": (first, second)}))
    assert {text.partition(":")[0] for text in found if " 2 times: " in text} == {"terminal", "report"}
