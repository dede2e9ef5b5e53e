"""Ranks in processes of their own: judged from recordings of real runs, one of which is run again."""

import copy
import json

import pytest

from checks.ddp_ranks.check import ddp_ranks
from grader_service.model.verdict import Outcome, Tier
from tests.checks.brief import assert_brief
from tests.checks.claims.conftest import evidence_with
from tests.checks.claims.rank_functions import BAD, GOOD, RECORDED
from tests.checks.judged import judged
from tests.factories import a_discovery

CHECK = ddp_ranks
RUNS = json.loads(RECORDED.read_text(encoding="utf-8"))


def recorded(name):
    """Evidence of a recorded run."""
    return evidence_with("ddp_ranks", **RUNS[name])


@pytest.mark.parametrize("name", GOOD)
def test_ranks_that_share_the_files_pass_as_claims(name):
    """Padded, partial and dropped last batches are all fine, as long as ranks step together."""
    result = judged(CHECK, recorded(name))
    assert (result.code, result.tier) == ("ranks.ok", Tier.CLAIMS), (result.feedback, result.details)
    assert_brief(result)


@pytest.mark.parametrize("name", BAD)
def test_usual_mistakes_of_ranks_fail_by_name(name):
    """Shards, devices, steps and iterators that go wrong each have their own code."""
    result = judged(CHECK, recorded(name))
    assert (result.outcome, result.code) == (Outcome.FAILED, f"ranks.{BAD[name][1]}"), (result.feedback, result.details)
    assert_brief(result)


@pytest.mark.parametrize(
    ("name", "seen"),
    [
        ("not sharded", "Rank 0 reads shard 0 of 1 and rank 1 reads shard 0 of 1."),
        ("hard-coded shard", "Rank 0 reads shard 0 of 2 and rank 1 reads shard 0 of 2."),
        ("other number of shards", "Rank 0 reads shard 0 of 4 and rank 1 reads shard 1 of 4."),
        ("no padding", "Without pad_last_batch=True a reader fills its last batch with files of the next shard."),
        ("no reader name", "It gave 100 batches of 4 from 25 files, and went on."),
        ("raises", "ZeroDivisionError: division by zero."),
    ],
)
def test_the_cause_is_said_where_it_was_seen(name, seen):
    """What the readers say of their shards, and what came, tell which argument is wrong."""
    assert judged(CHECK, recorded(name)).parts.seen == seen


def test_a_rank_that_never_ended_is_said_to_be_where_it_was():
    """Building an iterator for ever is no epoch that does not end."""
    run = copy.deepcopy(RUNS["module"])
    run["observations"]["ranks"][1] |= {"stage": "build", "ended": False}
    result = judged(CHECK, evidence_with("ddp_ranks", **run))
    assert (result.code, "building its iterator" in result.parts.outcome) == ("ranks.hangs", True)
    assert_brief(result)


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
    assert "did not end in 15 s" in result.parts.outcome
    assert 'It stood in File "' in result.parts.seen
    assert_brief(result)


@pytest.mark.parametrize(("needs_gpu", "score"), [("", 0.0), ("a kernel", None)])
def test_a_function_that_the_code_did_not_come_to_is_not_missing(needs_gpu, score):
    """What stopped the code is told by the run."""
    nothing = RUNS["module"]["observations"] | {"status": "missing", "ranks": []}
    stopped = a_discovery(ran="raised", needs_gpu=needs_gpu)
    result = judged(CHECK, evidence_with("ddp_ranks", observations=nothing, discovery=stopped))
    assert (result.outcome, result.code, result.score) == (Outcome.SKIPPED, "run.not_reached", score)


def test_a_function_of_another_name_is_asked_for_by_that_name():
    """The lab's own name stands in what to write."""
    nothing = RUNS["module"]["observations"] | {"status": "missing", "ranks": []}
    result = judged(CHECK, evidence_with("ddp_ranks", observations=nothing), factory="make_rank")
    assert result.code == "ranks.missing"
    assert "`make_rank`" in result.parts.outcome
    assert result.parts.next.code.startswith("def make_rank(")


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
    result = judged(CHECK, learner.evidence(source, "ddp_ranks"))
    assert result.code == code
    assert_brief(result)
