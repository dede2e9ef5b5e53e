"""Observations of a learner's process may be anything: a judge answers all the same."""

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from checks.api import Result
from checks.fair_baseline.check import fair_baseline
from checks.gpu_decode.check import gpu_decode
from grader_service.model.evidence import Ending
from grader_service.model.verdict import NOT_REACHED, Outcome
from tests.checks.claims.conftest import evidence_with
from tests.checks.claims.rank_functions import RECORDED
from tests.checks.judged import changed, judged, probed
from tests.factories import a_discovery, an_evidence, ended

PROBED = probed("learner")
CHECKS = [*PROBED, fair_baseline, gpu_decode]
SIDE = {"name": "a", "operator": "readers__File", "how": "file_root", "count": 4, "common": 3, "distinct": 4}
TENSOR = {"name": "labels", "shape": [4], "dtype": "int64", "device": "cpu"}
VALID: dict[str, Any] = {
    "acceptance_metric": {"status": "present", "shown": "x", "parts": [["", "images/s at least 1.3x, batch size 4"]]},
    "dali_proxy": {
        "imported": True,
        "servers": [{"name": "server", "running": False, "deterministic": True, "placed": "gpu"}],
        "loader": {"name": "loader", "kind": "proxy", "workers": 2, "batch_size": 4},
        "batch": {"problem": "", "images": 4, "device": "cpu", "shape": [4, 3], "labels": [1], "expected": [1]},
    },
    "ddp_ranks": json.loads(RECORDED.read_text(encoding="utf-8"))["module"]["observations"],
    "legacy_pipeline": {
        "dali": True,
        "classes": [{"name": "P", "file": "a.py", "cell": None, "line": 3, "operators": ["ops.FileReader"]}],
        "definitions": [],
        "plain": 1,
        "operators": [{"name": "ops.Resize", "file": "", "cell": 2, "line": 1}],
    },
    "placement_table": {"status": "present", "shown": "x", "rows": [["decode", ["mixed"]], ["read", ["cpu"]]]},
    "data_sides": {
        "loader": {"name": "loader", "dataset": "ImageFolder", "how": "samples", "count": 4},
        "readers": [{**SIDE, "loader_distinct": 4, "labelled": 3, "labels_differ": 1, "only_reader": ["x"]}],
    },
    "training_loop": {
        "losses": {"name": "losses", "count": 12, "values": [3.0, 2.9, None, 1.0, 0.5]},
        "labels": [TENSOR],
        "outputs": [TENSOR],
        "images": [],
        "model": {
            "name": "model",
            "type": "Net",
            "training": True,
            "device": "cpu",
            "parameters": 9,
            "updates": 30,
            "with_gradient": 4,
            "optimizer_steps": 10,
        },
        "step": {"done": True, "outputs": [4, 2], "loss": 0.7, "gradients": True, "batch": 4},
    },
}
PROBE_OF = {check.id: check.probes[0] for check in PROBED}


@pytest.mark.parametrize("check", PROBED, ids=lambda check: check.id)
@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_any_change_of_an_observation_gets_an_answer(check, data):
    """One value of a real observation replaced by any JSON, or all of it: a result, never an exception."""
    valid = VALID[PROBE_OF[check.id]]
    whole = judged(check, evidence_with(PROBE_OF[check.id], observations=valid))
    assert not whole.code.endswith(".unreadable")
    found = changed({"all": valid}, data)["all"]
    observations = found if isinstance(found, dict) else {"x": found}
    result = judged(check, evidence_with(PROBE_OF[check.id], observations=observations))
    assert isinstance(result, Result)
    assert len(result.feedback) <= 8192


@pytest.mark.parametrize("check", PROBED, ids=lambda check: check.id)
def test_an_observation_of_another_form_is_unreadable(check):
    """A probe's module that the learner changed earns no pass and no failure."""
    result = judged(check, evidence_with(PROBE_OF[check.id], observations={"passed": True}))
    assert result.outcome is Outcome.UNVERIFIED
    assert result.code.endswith(".unreadable")


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.id)
def test_missing_evidence_has_an_answer(check):
    """No discovery, no clean room, no measurement and no probe each give a result."""
    out_of_memory = judged(check, ended(Ending.OUT_OF_MEMORY, None))
    assert (out_of_memory.outcome, out_of_memory.code, out_of_memory.score) == (Outcome.SKIPPED, NOT_REACHED, 0.0)
    assert judged(check, an_evidence(clean_room=None, measurement=None, scan=None))
    without = judged(check, an_evidence())
    if check in PROBED:
        assert (without.outcome, without.code.partition(".")[2]) == (Outcome.ERROR, "not_observed")
    needy = a_discovery(ran="raised", needs_gpu="CUDA is not available", loaders=(), pipelines=())
    assert judged(check, an_evidence(discovery=needy)).score is None
