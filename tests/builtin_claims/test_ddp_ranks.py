"""Ranks in processes of their own: judged from recordings of real runs, one of which is run again."""

import copy
import json

import pytest

from checks.ddp_ranks.check import CHECK
from grader_service.model.verdict import Outcome, Tier
from tests.builtin_claims.conftest import evidence_with
from tests.builtin_claims.rank_functions import BAD, GOOD, RECORDED
from tests.checks.judged import judged

RUNS = json.loads(RECORDED.read_text(encoding="utf-8"))


def recorded(name):
    """Evidence of a recorded run."""
    return evidence_with("ddp_ranks", **RUNS[name])


@pytest.mark.parametrize("name", GOOD)
def test_ranks_that_share_the_files_pass_as_claims(name):
    """Padded, partial and dropped last batches are all fine, as long as ranks step together."""
    result = judged(CHECK, recorded(name))
    assert (result.code, result.tier) == ("ranks.ok", Tier.CLAIMS), (result.feedback, result.details)


@pytest.mark.parametrize("name", BAD)
def test_usual_mistakes_of_ranks_fail_by_name(name):
    """Shards, devices, steps and iterators that go wrong each have their own code."""
    result = judged(CHECK, recorded(name))
    assert (result.outcome, result.code) == (Outcome.FAILED, f"ranks.{BAD[name][1]}"), (result.feedback, result.details)


def test_devices_are_not_looked_at_where_the_lab_does_not_ask():
    """`devices` turns the rule off."""
    assert judged(CHECK, recorded("one device"), devices=False).outcome is Outcome.PASSED


@pytest.mark.parametrize("name", ["a thread that stays", "a process that stays", "a handler that waits"])
def test_who_hangs_is_told_what_on(name):
    """What the rank waits for is named, and where it stood is in the details, without folders of ours."""
    result = judged(CHECK, recorded(name))
    kind = name.split()[1]
    assert f"waits for the {kind} " in result.feedback
    stood = result.details["ranks"][0]["stood"]
    assert "most recent call first" in stood
    assert "/" not in stood


def test_a_rank_that_waits_for_nothing_of_the_learners_is_not_their_failure():
    """A machine or a library that is slow to let a process go leaves the check undecided, not failed."""
    run = copy.deepcopy(RUNS["a thread that stays"])
    for rank in run["observations"]["ranks"]:
        rank["waits_for"] = []
    result = judged(CHECK, evidence_with("ddp_ranks", **run))
    assert (result.outcome, result.code) == (Outcome.UNVERIFIED, "ranks.not_run")
    assert 'in 15 s here: File "' in result.feedback


def test_a_number_of_files_that_nobody_can_have_is_unreadable():
    """The files of such a set are not counted up, which took all memory."""
    observations = RUNS["module"]["observations"] | {"files": 10**9}
    assert judged(CHECK, evidence_with("ddp_ranks", observations=observations)).code == "ranks.unreadable"


def test_a_notebook_runs_for_real_in_two_processes_without_its_other_cells(learner):
    """The function is cut out of its cells, two ranks meet over 127.0.0.1, and the lab itself does not run again.

    The last cell opens a file that must not exist yet, so a second run of it would raise.
    """
    evidence = learner.evidence(GOOD["cells"], "ddp_ranks")
    assert judged(CHECK, evidence).code == "ranks.ok", evidence.probe("ddp_ranks")
    live = evidence.probe("ddp_ranks").observations["ranks"]
    kept = RUNS["cells"]["observations"]["ranks"]
    for key in ("steps", "ended", "asked", "readers", "error", "stage"):
        assert [rank[key] for rank in live] == [rank[key] for rank in kept]
    assert sorted({n for rank in live for batch in rank["batches"] for n in batch}) == list(range(25))


@pytest.mark.parametrize(
    ("source", "code"),
    [
        ("x = 1", "ranks.missing"),
        ("build_rank_iterator = 5", "ranks.missing"),
        ("exec('def build_rank_iterator(d, b, r, w): return None')", "ranks.not_separable"),
    ],
)
def test_what_cannot_be_run_apart_is_not_a_failure_unless_it_is_missing(learner, source, code):
    """A missing function fails; one without a source of its own is left undecided."""
    assert judged(CHECK, learner.evidence(source, "ddp_ranks")).code == code
