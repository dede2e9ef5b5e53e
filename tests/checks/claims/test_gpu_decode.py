"""Decoders of a graph and what NVML saw beside them."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from checks.dali_operators import row_of
from checks.gpu_decode.check import gpu_decode
from grader_service.model.evidence import CleanRoom
from grader_service.model.measurement import Arm, Corroboration, GpuUse
from grader_service.model.verdict import Outcome, Tier
from tests.checks.claims.test_placement_table import graph
from tests.checks.judged import judged
from tests.factories import a_clean_room, a_discovery, a_graph, a_measurement, a_run, an_evidence

CHECK = gpu_decode
BUSY = {"samples": 40, "sm_percent": 35.0, "jpg_percent": 20.0}
IDLE = {"samples": 40, "sm_percent": 0.0, "jpg_percent": 0.0}


def watched(flags=(), **use):
    """A measurement with NVML's look at the DALI side."""
    return a_measurement(corroboration=Corroboration(uses=(GpuUse(arm=Arm.DALI, **use),), flags=flags))


def evidence_of(facts, measurement=None, device="cuda"):
    """Evidence with this graph in the clean room."""
    return an_evidence(
        run=a_run(device=device), clean_room=a_clean_room(graph=facts), measurement=measurement or a_measurement()
    )


FLAG = "the graph decodes on the GPU, but neither its SMs nor its JPEG engine moved in the windows of the DALI arm"
MIXED = graph("readers__File@cpu", "decoders__Image@mixed", "Resize@gpu")
FUSED = graph("readers__File@cpu", "decoders__ImageRandomCrop@mixed", "Resize@gpu")
GOOD = [
    (evidence_of(MIXED, watched(**BUSY)), {}),
    (evidence_of(MIXED), {}),
    (evidence_of(MIXED, device="cpu"), {}),
    (evidence_of(FUSED, watched(**BUSY)), {"fused": True}),
    (evidence_of(graph("readers__File@cpu", "decoders__ImageCrop@mixed"), device="cpu"), {"fused": True}),
    (evidence_of(graph("readers__File@cpu", "decoders__ImageSlice@mixed"), device="cpu"), {"fused": True}),
    (evidence_of(graph("readers__File@cpu", "experimental__decoders__Image@mixed")), {}),
    (evidence_of(graph("readers__TFRecord@cpu", "decoders__Image@mixed", "decoders__ImageRandomCrop@mixed")), {}),
    (evidence_of(MIXED, watched(samples=40, sm_percent=None)), {}),
    (evidence_of(graph("FileReader@cpu", "ImageDecoder@mixed")), {}),
]
BAD = [
    (evidence_of(graph("readers__File@cpu", "decoders__Image@cpu", "Resize@cpu")), {}, "on_cpu"),
    (evidence_of(graph("readers__File@cpu", "decoders__Image@cpu", "Resize@gpu"), watched(**BUSY)), {}, "on_cpu"),
    (evidence_of(graph("readers__File@cpu", "decoders__Image@cpu"), device="cpu"), {}, "on_cpu"),
    (evidence_of(graph("readers__File@cpu", "decoders__Image@", "Resize@gpu")), {}, "on_cpu"),
    (evidence_of(graph("decoders__Image@cpu", "decoders__Image@mixed")), {}, "some_on_cpu"),
    (evidence_of(graph("decoders__ImageRandomCrop@mixed", "decoders__Image@cpu"), watched(**BUSY)), {}, "some_on_cpu"),
    (evidence_of(graph("readers__File@cpu", "Resize@gpu")), {}, "no_decoder"),
    (evidence_of(graph("readers__Numpy@cpu")), {}, "no_decoder"),
    (evidence_of(MIXED, watched(**BUSY)), {"fused": True}, "not_fused"),
    (evidence_of(MIXED, device="cpu"), {"fused": True}, "not_fused"),
    (evidence_of(MIXED, watched(**IDLE)), {}, "gpu_idle"),
    (evidence_of(MIXED, watched(**BUSY, flags=(FLAG,))), {}, "gpu_idle"),
]


@pytest.mark.parametrize(("evidence", "params"), GOOD)
def test_decoding_on_the_gpu_passes_on_facts(evidence, params):
    """Plain, fused and experimental decoders with device mixed are told from the graph."""
    result = judged(CHECK, evidence, **params)
    assert (result.code, result.tier) == ("decode.ok", Tier.GRAPH)


@pytest.mark.parametrize(("evidence", "params", "reason"), BAD)
def test_decoding_elsewhere_does_not_pass(evidence, params, reason):
    """A decoder on the CPU, none at all, or a GPU that did not move."""
    result = judged(CHECK, evidence, **params)
    assert result.code == f"decode.{reason}"
    assert result.outcome is (Outcome.INCONCLUSIVE if reason == "gpu_idle" else Outcome.FAILED)


def test_the_feedback_says_what_the_decision_rests_on():
    """NVML's figures where there are some, the graph alone where there are none, and the line of a wrong decoder."""
    assert "SMs 35 % busy, its JPEG engine 20 %" in judged(CHECK, GOOD[0][0]).feedback
    assert "alone" in judged(CHECK, GOOD[1][0]).feedback
    assert "a rehearsal has no GPU" in judged(CHECK, GOOD[2][0]).feedback
    assert "`fn.decoders.image` in submission.py, line 11 runs on the CPU" in judged(CHECK, BAD[0][0]).feedback
    assert ".gpu()" in judged(CHECK, BAD[1][0]).feedback


def test_several_decoders_on_the_cpu_are_counted_and_some_are_named():
    """At most three places are listed; a cell of a notebook is named as one."""
    many = graph(*["decoders__Image@cpu"] * 5)
    told = judged(CHECK, evidence_of(many)).parts
    assert told.outcome == "5 decoders run on the CPU."
    assert told.seen.count("fn.decoders.image") == 3
    assert told.seen.endswith(" and 2 more.")
    cell = many.operators[0].model_copy(update={"file": "cell_003.py"})
    alone = judged(CHECK, evidence_of(many.model_copy(update={"operators": (cell,)}))).parts
    assert alone.outcome == "`fn.decoders.image` in cell 3, line 10 runs on the CPU."


def test_an_idle_gpu_is_told_without_a_figure_that_contradicts_it():
    """A note of the run outweighs a mean, and is told without it; nothing is counted."""
    figures, noted = (judged(CHECK, evidence).parts for evidence, _ in (BAD[-2][:2], BAD[-1][:2]))
    assert "0.0 %" in figures.seen
    assert "%" not in noted.seen
    assert "nothing is counted" in noted.outcome


def test_what_could_not_be_carried_is_not_judged():
    """No graph, no evidence and no pipeline each have their own answer."""
    lost = CleanRoom(pipeline="dali_iter", problem="operator_not_allowed", problem_text="fn.external_source")
    assert judged(CHECK, an_evidence(clean_room=lost)).outcome is Outcome.UNVERIFIED
    assert judged(CHECK, an_evidence(discovery=a_discovery(pipelines=()))).code == "decode.no_pipeline"
    for nothing in (an_evidence(discovery=None), an_evidence(clean_room=None)):
        result = judged(CHECK, nothing)
        assert (result.outcome, result.code, result.score) == (Outcome.SKIPPED, "run.not_reached", 0.0)


@settings(deadline=None)
@given(st.text(max_size=60), st.sampled_from(["cpu", "gpu", "mixed", "", "other"]), st.booleans())
def test_any_operator_gets_an_answer(name, device, official):
    """A name that is no decoder never passes."""
    facts = a_graph(operators=({"name": name, "device": device},))
    half_busy = watched(samples=3, sm_percent=50.0)
    result = judged(CHECK, evidence_of(facts, half_busy, device="cuda" if official else "cpu"))
    decodes = row_of(facts.operators[0].name).role == "decoder"
    assert (result.outcome is Outcome.PASSED) == (decodes and device in ("mixed", "gpu"))
