"""Observations of a learner's process may be anything: a judge answers all the same."""

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from checks.acceptance_metric.check import CHECK as METRIC
from checks.api import CheckResult
from checks.dali_proxy.check import CHECK as PROXY
from checks.ddp_ranks.check import CHECK as RANKS
from checks.fair_baseline.check import CHECK as BASELINE
from checks.gpu_decode.check import CHECK as DECODE
from checks.legacy_pipeline.check import CHECK as STYLE
from checks.placement_table.check import CHECK as PLACEMENT
from checks.same_data.check import CHECK as DATA
from checks.training_loop.check import CHECK as TRAINING
from grader_service.model.evidence import Ending
from grader_service.model.verdict import Outcome
from tests.builtin_claims.conftest import evidence_with
from tests.builtin_claims.rank_functions import RECORDED
from tests.checks.judged import JSON, judged
from tests.factories import a_discovery, an_evidence, ended

PROBED = [METRIC, PROXY, RANKS, STYLE, PLACEMENT, DATA, TRAINING]
CHECKS = [*PROBED, BASELINE, DECODE]
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


def places_in(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths of all values inside a JSON value."""
    found = [path]
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in pairs:
        found += places_in(item, (*path, key))
    return found


def with_change(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    """The value with another one at a path."""
    if not path:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = with_change(copy[path[0]], path[1:], new)
    return copy


@pytest.mark.parametrize("check", PROBED, ids=lambda check: check.id)
def test_any_change_of_an_observation_gets_an_answer(check):
    """One value of a real observation replaced by any JSON, or all of it: a result, never an exception."""
    probe = PROBE_OF[check.id]
    valid = VALID[probe]
    assert check.observation_model.model_validate(valid) if check is not PLACEMENT else True
    places = places_in(valid)

    @settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(st.sampled_from(places), JSON)
    def answers(path: tuple[Any, ...], new: Any) -> None:
        changed = with_change(valid, path, new)
        evidence = evidence_with(probe, observations=changed if isinstance(changed, dict) else {"x": changed})
        result = judged(check, evidence)
        assert isinstance(result, CheckResult)
        assert len(result.feedback) <= 8192

    answers()


@pytest.mark.parametrize("check", PROBED, ids=lambda check: check.id)
def test_an_observation_of_another_form_is_unreadable(check):
    """A probe's module that the learner changed earns no pass and no failure."""
    result = judged(check, evidence_with(PROBE_OF[check.id], observations={"passed": True}))
    assert result.outcome is Outcome.UNVERIFIED
    assert result.code.endswith(".unreadable")


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.id)
def test_missing_evidence_has_an_answer(check):
    """No discovery, no clean room, no measurement and no probe each give a result."""
    assert judged(check, ended(Ending.OUT_OF_MEMORY, None)).outcome is Outcome.FAILED
    assert judged(check, an_evidence(clean_room=None, measurement=None, scan=None))
    without = judged(check, an_evidence())
    if check in PROBED:
        assert (without.outcome, without.code.partition(".")[2]) == (Outcome.ERROR, "not_observed")
    needy = a_discovery(needs_gpu="CUDA is not available", loaders=(), pipelines=())
    assert judged(check, an_evidence(discovery=needy)).outcome in (Outcome.UNVERIFIED, Outcome.ERROR)
