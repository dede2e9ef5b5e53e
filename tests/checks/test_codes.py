"""What checks say of their codes is what they answer: read from their source, and watched in all other tests."""

import inspect
from pathlib import Path
from typing import get_args

import pytest

from checks import codes
from checks.api import Check
from checks.codes import COMMON, outcomes_of
from checks.cuda_batch.check import CHECK as BATCH
from checks.fair_baseline.check import Params as BaselineParams
from checks.probe_files import ProbeFiles
from checks.probing import read_probe
from checks.reference import page
from checks.reflections import feedback
from grader_service.judge_process import JudgeProcess
from grader_service.model.evidence import Ending, ProbeSite
from grader_service.model.measurement import Decision
from grader_service.model.verdict import NOT_REACHED, Outcome
from tests.checks import declared_codes
from tests.checks.code_values import WORD, Source
from tests.checks.test_probing import Seen, a_record
from tests.factories import a_discovery, an_evidence, ended

FOLDER = Path(codes.__file__).parent
CHECKS = {loaded.check.id: loaded.check for loaded in declared_codes.built_in()}
GIVEN = {
    "throughput_ratio": {
        "base.code": set(),  # of `not_carried`, which is looked at by itself
        "decision.reason": set(get_args(get_args(Decision.model_fields["reason"].annotation)[0])),
    },
    "fair_baseline": {
        "next((rule for rule in looked if rule in broken))": set(BaselineParams.model_fields) - {"min_workers"},
    },
    "reflections": {
        "min(codes, key=lambda code: (-codes[code], order.index(code)))": {
            *feedback._CODES.values(),
        },
    },
}
"""Check → expressions that the source alone does not tell."""
BY_NAME = {"code or f'{found.name}_missing'": set()}


def with_outcomes(*groups):
    """Last words of shared codes, with the outcomes that their meanings name."""
    return {last: outcomes_of(last, COMMON[last]) for group in groups for last in group}


HELPERS = {
    "no_dali": (0, with_outcomes(codes.NO_DALI)),
    "not_carried": (0, with_outcomes(codes.NOT_CARRIED)),
    "no_such_graph": (0, with_outcomes(codes.NO_SUCH_GRAPH)),
    "not_run": (0, with_outcomes(codes.NOT_RUN)),
}
"""Function → place of the first word among its arguments, and what it answers."""
MAKERS = {
    "no_dali": ("not_carried.py", ("no_dali",), codes.NO_DALI),
    "not_carried": ("not_carried.py", ("not_carried",), codes.NOT_CARRIED),
    "no_such_graph": ("probing.py", ("no_such_graph",), codes.NO_SUCH_GRAPH),
    "not_run": ("random_augmentation/check.py", ("not_run",), codes.NOT_RUN),
    "read_probe": (
        "probing.py",
        ("read_probe", "_without"),
        {*codes.GRAPH_PROBE, *codes.LEARNER_PROBE} - {*codes.NO_DALI},
    ),
}
"""Who makes the shared codes: file, functions, and what they make themselves."""
PROBES = {ProbeSite.GRAPH: codes.GRAPH_PROBE, ProbeSite.LEARNER: codes.LEARNER_PROBE}


def answered_by(check):
    """Code → outcomes, of all that a check's package can answer with."""
    own = Source(sorted(Path(inspect.getfile(type(check))).parent.glob("*.py")), GIVEN.get(check.id))
    files = ProbeFiles()
    probes = with_outcomes(*(PROBES[files.load(probe_id).site] for probe_id in check.probes))
    made = {
        code.replace(f"{WORD}.ok", f"{check.word or check.id}.ok"): outcomes for code, outcomes in own.made().items()
    }
    found = {code: set(outcomes) for code, outcomes in made.items() if not code.startswith(WORD)}
    for code, outcomes in own.asked(HELPERS | {"read_probe": (1, probes)}).items():
        found.setdefault(code.replace(WORD, check.word or check.id), set()).update(outcomes)
    assert own.used == set(own.given), "an expression is given that is not there"
    assert own.made_otherwise() == []
    return found, own


@pytest.mark.parametrize("check", CHECKS.values(), ids=CHECKS)
def test_a_check_declares_the_codes_of_its_source(check):
    """All of them, no other, and each with the outcomes that it comes with."""
    found, own = answered_by(check)
    declared = {code: outcomes_of(code, meaning) for code, meaning in check.codes.items()}
    assert sorted(declared) == sorted(found)
    assert declared == found
    (word,) = {code.partition(".")[0] for code in declared} - {"observation"}
    assert own.literals(word) <= set(declared)


@pytest.mark.parametrize("check", CHECKS.values(), ids=CHECKS)
def test_meanings_are_short(check):
    """At most twelve words after the outcome, in one line, without a full stop."""
    for code, meaning in check.codes.items():
        text = meaning.partition(": ")[2] or meaning
        assert 2 <= len(text.split()) <= 12, code
        assert "\n" not in meaning, code
        assert not meaning.endswith("."), code
        assert outcomes_of(code, meaning) <= {outcome.value for outcome in Outcome}, code


@pytest.mark.parametrize(("file", "functions", "expected"), MAKERS.values(), ids=MAKERS)
def test_shared_codes_are_those_of_their_makers(file, functions, expected):
    """Each is made where `checks.codes` says that it is."""
    made = Source([FOLDER / file], BY_NAME).made(*functions)
    assert {code.removeprefix(f"{WORD}.") for code in made} == set(expected)


def test_every_shared_code_is_made_with_every_outcome_that_it_names():
    """None is left over, and no meaning promises an outcome that never comes."""
    seen = {}
    for file, functions, _ in MAKERS.values():
        for code, outcomes in Source([FOLDER / file], BY_NAME).made(*functions).items():
            seen.setdefault(code.removeprefix(f"{WORD}."), set()).update(outcomes)
    assert seen == with_outcomes(COMMON)


def answers_of(site):
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
    return {read_probe(one, "look", "looks", Seen, site).code.removeprefix("look.") for one in evidence}


@pytest.mark.parametrize("site", ProbeSite)
def test_a_probe_that_gave_nothing_has_the_codes_of_its_site(site):
    """No more than `checks.codes` names for it, and no fewer."""
    assert answers_of(site) == {*PROBES[site], NOT_REACHED}


def test_every_code_is_on_the_page():
    """The published page names each code of each check."""
    text = page()
    for check in CHECKS.values():
        assert [code for code in check.codes if f"`{code}`" not in text] == []


def test_codes_are_named_together_in_the_page_of_verdicts():
    """The table of codes names every shared one."""
    table = (FOLDER.parent / "docs" / "verdict.md").read_text().partition("## Codes")[2]
    assert [last for last in COMMON if f".{last}`" not in table] == []


def test_all_other_tests_are_watched():
    """Every built-in check, and the judging process, are looked at from the start of the tests."""
    assert len(CHECKS) >= 22
    assert hasattr(Check.whole, "__wrapped__")
    assert hasattr(JudgeProcess.judge, "__wrapped__")


def test_what_is_not_declared_is_noticed(monkeypatch):
    """A code that is left out, and one whose meaning names another outcome."""
    silent = an_evidence(discovery=a_discovery(pipelines=()))
    params = BATCH.params_model()
    code = BATCH.answer(silent, params).result.code
    assert declared_codes.strangers() == []
    for meaning in (None, "error: said otherwise"):
        other = {key: text for key, text in BATCH.codes.items() if key != code}
        monkeypatch.setattr(type(BATCH), "codes", other if meaning is None else other | {code: meaning})
        BATCH.answer(silent, params)
        (found,) = declared_codes.strangers()
        assert code in found


def test_an_undeclared_code_is_read_from_the_source(tmp_path):
    """A tail in a variable, a table, a tuple of a function and a condition: all are followed."""
    path = tmp_path / "check.py"
    path.write_text(
        """
_WORD, _TEXTS = "look", None
_TABLE = {"a": ("one", ""), "b": ("two", "")}

def judge(seen):
    code, text = _problem(seen)
    if code == "off":
        return undecided(Outcome.UNVERIFIED, f"look.{code}", text)
    if seen:
        last, text = _TABLE[seen]
        return failed(f"look.{last}", text)
    return failed(f"look.{'bad' if seen else code}", text) or passed("")

def _problem(seen):
    if seen:
        return "off", ""
    return None if seen else ("on", "")
"""
    )
    assert Source([path]).made() == {
        "look.off": {"unverified"},
        "look.on": {"failed"},
        "look.one": {"failed"},
        "look.two": {"failed"},
        "look.bad": {"failed"},
        "<word>.ok": {"passed"},
    }
