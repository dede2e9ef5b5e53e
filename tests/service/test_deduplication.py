"""The same bytes under another id: judged from what a measured run of them found, where a run would find that too."""

import pytest

from grader_service import __version__
from grader_service.host.facts import Gpu, host_facts, usable_cpus
from grader_service.labs.catalogue import load_lab
from grader_service.model.lab import MeasurementPlan
from grader_service.run.execution import execute
from grader_service.service import runner
from grader_service.service.pipeline import StageEnd
from grader_service.service.runner import run_next
from grader_service.store import leases, results
from sandbox.process.runner import ProcessRunner
from tests.factories import a_measurement, a_run, an_evidence
from tests.service.harness import QUICK

pytestmark = pytest.mark.integration

H200 = {"model": "NVIDIA H200", "uuid": "GPU-7", "driver": "580.1"}
ON_H200 = {"device": "cuda", "gpu": Gpu(0, "NVIDIA H200", "GPU-1", "580.1", 143_771)}
"""Dependencies of a runner on another GPU of that model."""


@pytest.fixture
def executed(monkeypatch):
    """Ids of the runs that were really executed."""
    seen = []

    def watched(*arguments, **options):
        seen.append(options["run_id"])
        return execute(*arguments, **options)

    monkeypatch.setattr(runner, "execute", watched)
    return seen


def measured(local, *, plan=None, gpu=None, host=None, **run):
    """A submission whose run was measured, with its verdict; returns the run's id."""
    local.submit()
    claim = leases.claim(local.store, "run", "before", 60)
    facts = ProcessRunner(local.state_dir).facts
    lab = load_lab("dali-pipelines", local.registry)
    here = {**host_facts(), "cpus_per_arm": len(usable_cpus(lab.limits.max_cpus)), **(host or {})}
    values = {"device": "cpu", "sandbox": facts.name, "isolated": facts.isolated, "gpu": gpu, "host": here}
    values |= {"grader_version": __version__} | run
    evidence = an_evidence(
        run=a_run(run_id=claim.run_id, **values),
        measurement=a_measurement(plan=plan or lab.measurement),
    )
    assert results.store_evidence(local.store, claim, "measured", evidence.model_dump_json().encode(), {})
    assert local.judge() is not None
    return claim.run_id


def test_the_same_bytes_of_somebody_else_are_not_run(local, executed):
    """Each verdict is made from the findings of the run that really found them, and names it; no GPU time is charged
    twice."""
    first = measured(local, gpu_held_s=20.0)
    for _ in range(2):
        again = local.submit()
        assert local.run_all(local.deps(reuse_days=1.0)) == [StageEnd.STORED]
        verdict = local.judge()
        assert verdict.submission_id == again
        assert verdict.run_id == local.run(again).run_id != first
        assert verdict.provenance.reused_from == first
        assert verdict.provenance.gpu_held_s is None
        assert verdict.status.value == "passed"
    assert executed == []


def test_it_is_no_attempt(local):
    """Nothing was measured, so the learner's next submission is still their first attempt."""
    measured(local)
    local.submit(learner="anna")
    local.run_all(local.deps(reuse_days=1.0))
    local.judge()
    third = local.submit(source=QUICK + "\n", learner="anna")
    local.run_all(local.deps(reuse_days=1.0))
    assert results.load_evidence(local.store, local.run(third).run_id).kind == "evidence"
    assert runner.attempt_number(local.store, third) == 1


@pytest.mark.parametrize(
    ("here", "different"),
    [
        pytest.param({}, {"plan": MeasurementPlan(block_s=0.5)}, id="another measurement plan"),
        pytest.param({}, {"image_digest": "sha256:old"}, id="another image"),
        pytest.param({}, {"device": "cuda"}, id="a GPU instead of a rehearsal"),
        pytest.param({}, {"gpu": {"model": "NVIDIA A10"}}, id="a GPU where this host has none"),
        pytest.param({}, {"isolated": True}, id="another sandbox"),
        pytest.param({}, {"grader_version": "0.0.9"}, id="another grader"),
        pytest.param({}, {"grader_version": None}, id="a grader that did not say which"),
        pytest.param(ON_H200, {"gpu": {**H200, "model": "NVIDIA H100"}}, id="another model of GPU"),
        pytest.param(ON_H200, {"gpu": {**H200, "driver": "590.1"}}, id="another driver"),
        pytest.param(ON_H200, {"gpu": H200, "host": {"cpu": "another"}}, id="another processor"),
        pytest.param(ON_H200, {"gpu": H200, "host": {"cpus_per_arm": 64}}, id="other cores for each arm"),
        pytest.param({"reuse_days": 1e-9}, {}, id="findings too old"),
    ],
)
def test_what_a_run_here_and_now_would_not_find_is_not_taken(local, executed, here, different):
    """Rates of another kind of host, image or plan are not this run's: it is executed."""
    measured(local, **{"device": here.get("device", "cpu")} | different)
    second = local.submit()
    assert local.run_all(local.deps(**{"reuse_days": 1.0} | here)) == [StageEnd.STORED]
    assert executed == [local.run(second).run_id]


def test_other_bytes_and_other_settings_are_run(local, executed):
    """One character more is another submission; and without the setting nothing is taken over."""
    measured(local)
    other, same = local.submit(source=QUICK + "\n"), local.submit()
    deps = local.deps(reuse_days=1.0)
    assert run_next(deps) is StageEnd.STORED
    assert run_next(local.deps()) is StageEnd.STORED
    assert executed == [local.run(other).run_id, local.run(same).run_id]


def test_the_gpus_model_is_compared(local, executed):
    """The same model on another host is the same class; what is taken over holds no GPU."""
    first = measured(local, device="cuda", gpu=H200)
    local.submit()
    assert local.run_all(local.deps(reuse_days=1.0, **ON_H200)) == [StageEnd.STORED]
    provenance = local.judge().provenance
    assert (provenance.reused_from, provenance.gpu_held_s) == (first, 0.0)
    assert executed == []
