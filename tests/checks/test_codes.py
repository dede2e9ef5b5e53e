"""What checks say of their codes is what they answer: read from their source, and watched in all other tests."""

from pathlib import Path

import pytest

from bench.checks_page import page
from checks import codes
from checks.api import Check
from checks.codes import COMMON, outcomes_of
from checks.not_carried import no_dali, not_carried
from checks.own_codes import answers_of
from checks.probing import read_probe
from grader_service.judging.process import JudgeProcess
from grader_service.model.evidence import Ending, ProbeSite
from grader_service.model.verdict import NOT_REACHED, Outcome
from tests.checks import declared_codes
from tests.checks.test_probing import Seen, a_record
from tests.factories import a_discovery, an_evidence, ended

ROOT = Path(codes.__file__).parents[1]
CHECKS = {loaded.check.id: loaded.check for loaded in declared_codes.built_in()}
PROBES = {ProbeSite.GRAPH: codes.GRAPH_PROBE, ProbeSite.LEARNER: codes.LEARNER_PROBE}


@pytest.mark.parametrize("check", CHECKS.values(), ids=CHECKS)
def test_codes_have_one_first_word_and_meanings_are_short(check):
    """At most twenty words after the outcome, in one line, without a full stop."""
    word = check.word or check.id
    assert {code.partition(".")[0] for code in check.codes} - {"observation", "run"} == {word}
    for code, meaning in check.codes.items():
        text = meaning.partition(": ")[2] or meaning
        assert 2 <= len(text.split()) <= 21, code
        assert "\n" not in meaning, code
        assert not meaning.endswith("."), code
        assert outcomes_of(code, meaning) <= {outcome.value for outcome in Outcome}, code


@pytest.mark.parametrize(
    ("function", "group"), [(no_dali, codes.NO_DALI), (not_carried, codes.NOT_CARRIED)], ids=["no_dali", "not_carried"]
)
def test_groups_are_what_their_makers_answer(function, group):
    """With the outcomes that their meanings name."""
    answers, computed = answers_of(function)
    found = {last: outcomes for last, (outcomes, _) in answers.items()}
    assert found == {last: outcomes_of(last, COMMON[last]) for last in group}
    assert computed == []


def answers_at(site):
    """Last words of what `read_probe` answers for a probe of this site, whatever became of it."""
    statuses = ("ok", "raised", "graph_failed", "no_graph", "timed_out", "pod_ended", "unreadable")
    records = [a_record(site=site, status=status) for status in statuses]
    records.append(a_record(site=site, observations={"count": "many"}))
    evidence = [an_evidence(probes=(record,)) for record in records]
    evidence.append(an_evidence(probes=()))
    for needs_gpu in ("", "a kernel"):
        nothing = a_discovery(pipelines=(), needs_gpu=needs_gpu)
        evidence.append(an_evidence(probes=(records[1],), discovery=nothing))
    evidence += map(ended, Ending)
    return {read_probe(one, "looks", Seen, site).code for one in evidence}


@pytest.mark.parametrize("site", ProbeSite)
def test_a_probe_that_gave_nothing_has_the_codes_of_its_site(site):
    """No more than `checks.codes` names for it, and no fewer."""
    assert answers_at(site) == {*PROBES[site], NOT_REACHED}


def test_every_code_is_on_the_page():
    """The published page names each code of each check."""
    text = page()
    for check in CHECKS.values():
        assert [code for code in check.codes if f"`{code}`" not in text] == []


def test_codes_are_named_together_in_the_page_of_verdicts():
    """The table of codes names every shared one."""
    table = (ROOT / "docs" / "verdict.md").read_text().partition("## Codes")[2]
    assert [last for last in COMMON if f".{last}`" not in table] == []


def test_all_other_tests_are_watched():
    """Every built-in check, and the judging process, are looked at from the start of the tests."""
    assert len(CHECKS) >= 22
    assert hasattr(Check.whole, "__wrapped__")
    assert hasattr(JudgeProcess.judge, "__wrapped__")


def test_what_is_not_declared_is_noticed(monkeypatch):
    """A code that is left out, and one whose meaning names another outcome."""
    silent = an_evidence(discovery=a_discovery(pipelines=()))
    check = CHECKS["cuda_batch"]
    params = check.params_model()
    code = check.answer(silent, params).result.code
    assert declared_codes.strangers() == []
    for meaning in (None, "error: said otherwise"):
        other = {key: text for key, text in check.codes.items() if key != code}
        monkeypatch.setattr(check, "codes", other if meaning is None else other | {code: meaning})
        check.answer(silent, params)
        (found,) = declared_codes.strangers()
        assert code in found
