"""Whatever a probe says, and whatever is missing, every check on graphs answers with a result and never raises."""

import copy
import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from checks.api import CheckResult, probes_of
from checks.auto_augment.check import CHECK as AUTO_AUGMENT
from checks.epoch_coverage.check import CHECK as EPOCH_COVERAGE
from checks.label_match.check import CHECK as LABEL_MATCH
from checks.normalisation.check import CHECK as NORMALISATION
from checks.output_contract.check import CHECK as OUTPUT_CONTRACT
from checks.random_augmentation.check import CHECK as RANDOM_AUGMENTATION
from checks.shard_coverage.check import CHECK as SHARD_COVERAGE
from checks.shuffle_determinism.check import CHECK as SHUFFLE_DETERMINISM
from checks.torchvision_agreement.check import CHECK as TORCHVISION_AGREEMENT
from grader_service.model.evidence import LearnerException
from grader_service.model.verdict import Outcome
from tests.builtin_graph.controls import CROP, FLIP, NORMALISE
from tests.builtin_graph.graphs import PIPELINE_FACTS, bare, evidence_of, iterator
from tests.checks.judged import JSON, judged
from tests.factories import a_discovery, an_evidence

CHECKS = (
    OUTPUT_CONTRACT, NORMALISATION, TORCHVISION_AGREEMENT, EPOCH_COVERAGE, SHUFFLE_DETERMINISM, SHARD_COVERAGE,
    RANDOM_AUGMENTATION, LABEL_MATCH, AUTO_AUGMENT,
)  # fmt: skip
CHECK_IDS = [check.id for check in CHECKS]
SHARDED = ", random_shuffle=True, shard_id=rank, num_shards=2, pad_last_batch=True"
SOURCE = (
    iterator(CROP, FLIP, reader=SHARDED, arguments="rank=0")
    + 'other_iter = DALIGenericIterator(train_pipeline(1), ["data", "label"], reader_name="Reader")\n'
    + iterator("images = fn.resize(images, size=[32, 32])", NORMALISE, name="val", reader="")
)
LEAVES = st.one_of(
    st.none(), st.booleans(), st.integers(-2, 70), st.sampled_from([0, 1, 2**63, -1]),
    st.floats(allow_nan=False, allow_infinity=False), st.sampled_from([0.0, 1e12, -1e12, 1e-300]),
    st.text(max_size=8), st.just([]), st.just({}),
)  # fmt: skip
RELAXED = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.fixture(scope="module")
def real(workshop):
    """Per probe, what it really observes of one submission."""
    records = [record for check in CHECKS for record in workshop.evidence(SOURCE, check).probes]
    assert {record.status for record in records} == {"ok"}, records
    return {record.id: record.observations for record in records}


def answered(check, observations):
    """The result of a check on these observations of its probes."""
    answers = {probe: {"status": "ok", "text": "", "observations": observations[probe]} for probe in probes_of(check)}
    return judged(check, evidence_of(answers, [PIPELINE_FACTS]))


def assert_is_answer(result):
    """A result that can be shown; `judged` looks whether it can be stored."""
    assert isinstance(result, CheckResult)
    assert result.feedback


@pytest.mark.parametrize("check", CHECKS, ids=CHECK_IDS)
@given(found=st.dictionaries(st.text(max_size=10), JSON, max_size=5))
@RELAXED
def test_any_json(check, found):
    """Any JSON object as observations gives a result; at this site a wrong form is our fault."""
    observations = dict.fromkeys(probes_of(check), found)
    result = answered(check, observations)
    assert_is_answer(result)
    assert result.outcome is Outcome.ERROR


@pytest.mark.parametrize("check", CHECKS, ids=CHECK_IDS)
@given(data=st.data())
@RELAXED
def test_changed_observations(real, check, data):
    """Real observations with a few values replaced give a result, whatever stands there now."""
    observations = {probe: copy.deepcopy(real[probe]) for probe in probes_of(check)}
    for _ in range(data.draw(st.integers(1, 4))):
        probe = data.draw(st.sampled_from(sorted(observations)))
        change(observations[probe], data)
    assert_is_answer(answered(check, observations))


def like(value):
    """Other values of the same kind, which a model may well take."""
    if isinstance(value, bool):
        return st.booleans()
    if isinstance(value, int):
        return st.integers(0, 64)
    if isinstance(value, float):
        return st.floats(-300, 300)
    if isinstance(value, list):
        return st.sampled_from([value[:1], value[:-1], value[::-1], value * 2])
    if isinstance(value, str):
        return st.sampled_from(["", "RGB", "uint8", "val_pipe", "{name} % s", "\u202e\x1b[31m"])
    return LEAVES


def change(value, data):
    """Replaces one value somewhere inside."""
    while True:
        keys = sorted(value) if isinstance(value, dict) else list(range(len(value)))
        if not keys:
            return
        key = data.draw(st.sampled_from(keys))
        inner = value[key]
        if not isinstance(inner, (dict, list)) or not inner or data.draw(st.integers(0, 5)) == 0:
            value[key] = data.draw(like(inner) if data.draw(st.booleans()) else LEAVES)
            return
        value = inner


@pytest.mark.parametrize("check", CHECKS, ids=CHECK_IDS)
def test_missing_evidence(check):
    """No discovery, no probe, no pipeline, no graph: each has an answer of its own, and none of them passes."""
    nothing = an_evidence(discovery=None, probes=())
    not_observed = an_evidence(probes=())
    no_graph = {probe: {"status": "no_graph", "text": "It reads LMDB.", "observations": None} for probe in
                probes_of(check)}  # fmt: skip
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


@pytest.mark.parametrize("check", CHECKS, ids=CHECK_IDS)
@pytest.mark.parametrize("status", ["raised", "graph_failed", "timed_out", "pod_ended", "unreadable"])
def test_a_probe_that_did_not_end_well(check, status):
    """Nothing is decided on what was not observed."""
    answers = {probe: {"status": status, "text": "why", "observations": None} for probe in probes_of(check)}
    result = judged(check, evidence_of(answers, [PIPELINE_FACTS]))
    assert_is_answer(result)
    assert result.score is None


@pytest.mark.parametrize("check", CHECKS, ids=CHECK_IDS)
def test_judging_is_repeatable_and_leaves_the_observation_alone(real, check):
    """The same observations give the same result twice, and are not changed."""
    before = json.dumps(real, sort_keys=True)
    assert answered(check, real) == answered(check, real)
    assert json.dumps(real, sort_keys=True) == before


@pytest.mark.parametrize("check", CHECKS, ids=CHECK_IDS)
def test_a_graph_that_stops_on_our_images_is_told_its_message(workshop, check):
    """DALI's message, which names the learner's line, reaches the learner."""
    source = bare("images = fn.crop(images, crop=(5000, 5000))", NORMALISE)
    result = workshop.judge(source, check)
    assert (result.outcome, result.code.rpartition(".")[2]) == (Outcome.UNVERIFIED, "graph_failed")
    assert "fn.crop" in result.feedback


@pytest.mark.parametrize("check", CHECKS, ids=CHECK_IDS)
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


def test_a_submission_that_stopped_early_hears_why():
    """Without a pipeline, the exception that stopped the code is in the feedback."""
    stopped = a_discovery(pipelines=(), ran="raised", exception=LearnerException(type="ValueError", message="no data"))
    no_graph = {"status": "no_graph", "text": "none", "observations": None}
    evidence = evidence_of({"constant_colours": no_graph}, []).model_copy(update={"discovery": stopped})
    result = judged(OUTPUT_CONTRACT, evidence)
    assert result.code == "output.no_pipeline"
    assert "ValueError: no data" in result.feedback


def test_the_images_of_the_source_above_are_judged(real):
    """The observations that the tests of this file change are those of a whole submission."""
    assert answered(OUTPUT_CONTRACT, real).code == "output.ok"
    assert answered(SHARD_COVERAGE, real).code == "shards.ok"
