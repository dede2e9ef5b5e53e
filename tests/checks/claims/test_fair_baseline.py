"""Loaders beside DALI graphs: which pairs are fair."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from checks.fair_baseline.check import fair_baseline
from checks.observations.context import Context
from grader_service.model.feedback import Severity
from grader_service.model.measurement import Arm, ArmReport
from grader_service.model.verdict import Outcome, Tier
from tests.checks.claims.test_placement_table import graph
from tests.checks.judged import judged
from tests.factories import (
    a_batch,
    a_clean_room,
    a_discovery,
    a_graph,
    a_loader,
    a_measurement,
    a_run,
    an_evidence,
)

CHECK = fair_baseline
CROP = "Compose(\n    RandomResizedCrop(size=(224, 224))\n    RandomHorizontalFlip(p=0.5)\n    ToTensor()\n)"
CENTER = "Compose(\n    Resize(size=256)\n    CenterCrop(size=(224, 224))\n    ToTensor()\n)"
AUGMENTING = graph("readers__File@cpu", "decoders__ImageRandomCrop@mixed", "Resize@gpu", "random__CoinFlip@cpu")
PLAIN = graph("readers__File@cpu", "decoders__Image@mixed", "Resize@gpu", "CropMirrorNormalize@gpu")


def pair(loader=None, shape=(32, 3, 224, 224), facts=None, batch=None):
    """Evidence of a loader beside a graph, with the shape that the loader delivered when it was timed."""
    note = f"loader: held-out images swapped, batch {list(shape)}" if shape else "no look"
    arms = (ArmReport(arm=Arm.LEARNER, images_per_s=500.0, low=1.0, high=2.0, notes=(note,)),)
    return an_evidence(
        run=a_run(host={"cpus_per_arm": 8}),
        discovery=a_discovery(loaders=(a_loader(**(loader or {})),)),
        clean_room=a_clean_room(graph=facts or a_graph(), batch=a_batch(**(batch or {}))),
        measurement=a_measurement(arms=arms),
    )


GOOD = [
    (pair(), {}),
    (pair({"num_workers": 8, "transform": CROP}, facts=AUGMENTING), {"transforms": "required"}),
    (pair({"num_workers": 12}), {}),
    (pair({"persistent_workers": False}), {}),
    (pair({"pin_memory": False}, facts=a_graph(output_devices=("cpu", "cpu"))), {}),
    (pair(shape=(32, 224, 224, 3)), {}),
    (pair(shape=None), {}),
    (pair({"batch_size": 64}), {"batch_size": "advised"}),
    (pair({"num_workers": 0}), {"workers": "ignored", "min_workers": 1}),
    (pair({"transform": CENTER}, facts=PLAIN), {"transforms": "required"}),
    (pair({"transform": "<function f at 0x7f>"}, facts=AUGMENTING), {"transforms": "required"}),
    (pair(shape=(32, 3, 230, 220)), {}),
]
BAD = [
    (pair({"num_workers": 0}), {}, "workers"),
    (pair({"num_workers": 2}), {"min_workers": 4}, "workers"),
    (pair({"batch_size": 64}), {}, "batch_size"),
    (pair({"batch_size": 1}), {}, "batch_size"),
    (pair(facts=a_graph(declared_batch_size=128)), {}, "batch_size"),
    (pair({"pin_memory": False}), {}, "pin_memory"),
    (pair(shape=(32, 3, 375, 500)), {}, "geometry"),
    (pair(shape=(32, 1, 224, 224)), {}, "geometry"),
    (pair(batch={"shape": (32, 64, 64, 3)}), {}, "geometry"),
    (pair({"num_workers": 32}), {"cores": "required"}, "cores"),
    (pair({"persistent_workers": False}), {"persistent_workers": "required"}, "persistent_workers"),
    (pair({"transform": CROP}, facts=PLAIN), {"transforms": "required"}, "transforms"),
    (pair({"transform": CENTER}, facts=AUGMENTING), {"transforms": "required"}, "transforms"),
    (pair({"num_workers": 0, "batch_size": 64, "pin_memory": False}), {}, "workers"),
]


@pytest.mark.parametrize(("evidence", "params"), GOOD)
def test_fair_pairs_pass_as_claims(evidence, params):
    """What is only advised, or could not be looked at, does not fail a baseline."""
    result = judged(CHECK, evidence, **params)
    assert (result.code, result.tier) == ("baseline.ok", Tier.CLAIMS), result.feedback


@pytest.mark.parametrize(("evidence", "params", "rule"), BAD)
def test_unfair_pairs_fail_by_their_weightiest_rule(evidence, params, rule):
    """The code names the rule, the score keeps what was right."""
    result = judged(CHECK, evidence, **params)
    assert (result.outcome, result.code) == (Outcome.FAILED, f"baseline.{rule}"), result.feedback
    assert result.score is not None
    assert 0 <= result.score < 1


def test_advice_is_told_beside_the_outcome():
    """What is only advised is a note; a second required rule that is broken is a warning."""
    advised = judged(CHECK, pair({"num_workers": 12, "persistent_workers": False})).parts.advice
    assert [(one.code, one.severity) for one in advised] == [
        ("advice.cores", Severity.NOTE),
        ("advice.persistent_workers", Severity.NOTE),
    ]
    assert "12 workers on 8 cores" in advised[0].text
    broken = judged(CHECK, pair({"num_workers": 0, "batch_size": 64, "pin_memory": False})).parts
    assert "num_workers=0" in broken.outcome
    assert broken.seen == "It keeps 1 of 4 required rules."
    assert [(one.code, one.severity) for one in broken.advice] == [
        ("advice.batch_size", Severity.WARNING),
        ("advice.pin_memory", Severity.WARNING),
    ]


def test_a_missing_loader_has_its_own_answer():
    """No loader fails; a factory in its place cannot be looked at."""
    without = a_discovery(loaders=())
    assert judged(CHECK, an_evidence(discovery=without)).code == "baseline.no_loader"
    factory = a_discovery(loaders=(), factories=("build_pytorch_loader",))
    assert judged(CHECK, an_evidence(discovery=factory)).outcome is Outcome.UNVERIFIED
    stopped = judged(CHECK, an_evidence(discovery=a_discovery(loaders=(), ran="raised")))
    for result in (stopped, judged(CHECK, an_evidence(discovery=None))):
        assert (result.outcome, result.code, result.score) == (Outcome.SKIPPED, "run.not_reached", 0.0)


def test_nothing_required_that_could_be_seen_is_unverified():
    """A rule that could not be looked at is never counted as kept."""
    rules = dict.fromkeys(("workers", "batch_size", "pin_memory"), "ignored")
    assert judged(CHECK, pair(shape=None), **rules).outcome is Outcome.UNVERIFIED


@settings(deadline=None)
@given(
    st.text(max_size=300),
    st.integers(0, 4096),
    st.none() | st.lists(st.integers(0, 2**40), max_size=6).map(tuple),
    st.lists(st.text(max_size=20), max_size=5),
    st.sampled_from(["required", "advised", "ignored"]),
)
def test_any_loader_gets_an_answer(transform, workers, shape, names, rule):
    """No claim makes the judge fail."""
    loader = a_loader(transform=transform, num_workers=workers)
    facts = a_graph(operators=tuple({"name": name, "device": "gpu"} for name in names))
    sides = Context(loader_shape=shape, graph=facts, batch=a_batch())
    seen = CHECK.observation_model(loader=loader, sides=sides, allotted=4)
    result = CHECK.decide(seen, CHECK.params_model(transforms=rule, geometry=rule))
    assert result.code.startswith("baseline.")
