"""Whatever a probe says, and whatever is missing, every check on graphs answers with a result and never raises."""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from checks.api import Result
from checks.output_contract.check import output_contract
from checks.shard_coverage.check import shard_coverage
from grader_service.model.discovery import LearnerException
from grader_service.model.verdict import Outcome
from tests.checks.graphs.controls import CROP, FLIP, NORMALISE
from tests.checks.graphs.graphs import PIPELINE_FACTS, bare, evidence_of, iterator
from tests.checks.judged import JSON, changed, judged, probed
from tests.factories import a_discovery, an_evidence

CHECKS = probed("graph")
EVERY_CHECK = pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.id)
SHARDED = ", random_shuffle=True, shard_id=rank, num_shards=2, pad_last_batch=True"
SOURCE = (
    iterator(CROP, FLIP, reader=SHARDED, arguments="rank=0")
    + 'other_iter = DALIGenericIterator(train_pipeline(1), ["data", "label"], reader_name="Reader")\n'
    + iterator("images = fn.resize(images, size=[32, 32])", NORMALISE, name="val", reader="")
)
RELAXED = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.fixture(scope="module")
def real(workshop):
    """Per probe, what it really observes of one submission."""
    records = [record for check in CHECKS for record in workshop.evidence(SOURCE, check).probes]
    assert {record.status for record in records} == {"ok"}, records
    return {record.id: record.observations for record in records}


def answered(check, observations):
    """The result of a check on these observations of its probes."""
    answers = {probe: {"observations": observations[probe]} for probe in check.probes}
    return judged(check, evidence_of(answers, [PIPELINE_FACTS]))


def assert_is_answer(result):
    """A result that can be shown; `judged` looks whether it can be stored."""
    assert isinstance(result, Result)
    assert result.feedback


@EVERY_CHECK
@given(found=st.dictionaries(st.text(max_size=10), JSON, max_size=5))
@RELAXED
def test_any_json(check, found):
    """Any JSON object as observations gives a result; at this site a wrong form is our fault."""
    observations = dict.fromkeys(check.probes, found)
    result = answered(check, observations)
    assert_is_answer(result)
    assert result.outcome is Outcome.ERROR


@EVERY_CHECK
@given(data=st.data())
@RELAXED
def test_changed_observations(real, check, data):
    """Real observations with a few values replaced give a result, whatever stands there now."""
    observations = {probe: real[probe] for probe in check.probes}
    for _ in range(data.draw(st.integers(1, 4))):
        probe = data.draw(st.sampled_from(sorted(observations)))
        observations[probe] = changed(observations[probe], data)
    assert_is_answer(answered(check, observations))


@EVERY_CHECK
def test_missing_evidence(check):
    """No discovery, no probe, no pipeline, no graph: each has an answer of its own, and none of them passes."""
    nothing = an_evidence(discovery=None, probes=())
    not_observed = an_evidence(probes=())
    no_graph = {probe: {"status": "no_graph", "text": "It reads LMDB."} for probe in check.probes}
    results = {
        "nothing": judged(check, nothing),
        "not_observed": judged(check, not_observed),
        "no_pipeline": judged(check, evidence_of(no_graph, [])),
        "no_graph": judged(check, evidence_of(no_graph, [PIPELINE_FACTS])),
    }
    for name, result in results.items():
        assert_is_answer(result)
        assert result.outcome is not Outcome.PASSED, name
    assert results["not_observed"].outcome is Outcome.ERROR
    assert results["no_pipeline"].code.endswith(".no_pipeline")
    assert results["no_graph"].outcome is Outcome.UNVERIFIED


@EVERY_CHECK
@pytest.mark.parametrize("status", ["raised", "graph_failed", "timed_out", "pod_ended", "unreadable"])
def test_a_probe_that_did_not_end_well(check, status):
    """Nothing is decided on what was not observed."""
    answers = {probe: {"status": status, "text": "why"} for probe in check.probes}
    result = judged(check, evidence_of(answers, [PIPELINE_FACTS]))
    assert_is_answer(result)
    assert result.score is None


@EVERY_CHECK
def test_judging_is_repeatable_and_leaves_the_observation_alone(real, check):
    """The same observations give the same result twice, and are not changed."""
    before = json.dumps(real, sort_keys=True)
    assert answered(check, real) == answered(check, real)
    assert json.dumps(real, sort_keys=True) == before


@EVERY_CHECK
def test_a_graph_that_stops_on_our_images_is_told_its_message(workshop, check):
    """DALI's message, which names the learner's line, reaches the learner."""
    source = bare("images = fn.crop(images, crop=(5000, 5000))", NORMALISE)
    result = workshop.judge(source, check)
    assert (result.outcome, result.code.rpartition(".")[2]) == (Outcome.UNVERIFIED, "graph_failed")
    assert "fn.crop" in result.feedback


@EVERY_CHECK
def test_a_graph_that_cannot_be_carried_is_not_decided(workshop, check):
    """An external source has no data outside the learner's process."""
    source = """
import numpy as np

@pipeline_def(batch_size=4, num_threads=2, device_id=0)
def fed():
    images = fn.external_source(source=lambda: [np.zeros((8, 8, 3), np.uint8)] * 4)
    return fn.resize(images, size=[8, 8])

train_pipe = fed()
"""
    result = workshop.judge(source, check)
    assert (result.outcome, result.code.rpartition(".")[2]) == (Outcome.UNVERIFIED, "not_carried")


def test_a_submission_that_stopped_early_is_told_once():
    """Without a pipeline because the code stopped, the check was not reached: the run says why."""
    stopped = a_discovery(pipelines=(), ran="raised", exception=LearnerException(type="ValueError", message="no data"))
    evidence = evidence_of({"constant_colours": {"status": "no_graph", "text": "none"}}, [])
    result = judged(output_contract, evidence.model_copy(update={"discovery": stopped}))
    assert (result.outcome, result.code, result.score) == (Outcome.SKIPPED, "run.not_reached", 0.0)
    assert "ValueError" not in result.feedback


def test_the_images_of_the_source_above_are_judged(real):
    """The observations that the tests of this file change are those of a whole submission."""
    assert answered(output_contract, real).code == "output.ok"
    assert answered(shard_coverage, real).code == "shards.ok"
