"""Figures come out of the database alone, and are the same whoever reads them, and when."""

import time

from prometheus_client import CollectorRegistry, generate_latest

from grader_service import verdicts
from grader_service.model.evidence import Need, RunPlan
from grader_service.model.submission import Submission
from grader_service.service.event_figures import EventFigures
from grader_service.service.metrics import StoreCollector
from grader_service.store import acceptance, devices, leases, operations, results
from grader_service.store.acceptance import IntakeLimits, Waiter
from grader_service.store.engine import Store


def text_of(store):
    """One scrape by a new exporter."""
    registry = CollectorRegistry()
    registry.register(StoreCollector(store))
    return generate_latest(registry).decode()


def grade_one(store, number, gpu_held_s=None, timings_s=None):
    """Accept, run and judge."""
    submission = Submission(
        submission_id=f"s:{number}", lab="dali-pipelines", filename="s.py", sha256="0" * 64, size_bytes=1
    )
    plan = RunPlan(needs=(Need.DISCOVERY,))
    acceptance.accept(store, submission, plan, "live", Waiter(task_id="t"), IntakeLimits(), "test")
    claim = leases.claim(store, "run", "host/GPU-1/abc", 60)
    results.store_evidence(store, claim, "evidence", b"{}", {})
    judge = leases.claim(store, "judge", "host/judge/abc", 60)
    verdict = verdicts.refused(f"s:{number}", "dali-pipelines", "archive.link", "no")
    if gpu_held_s is not None:
        verdict = verdict.model_copy(
            update={"provenance": verdict.provenance.model_copy(update={"gpu_held_s": gpu_held_s})}
        )
    provenance = verdict.provenance.model_copy(update={"timings_s": timings_s or {}})
    results.store_verdict(store, judge, verdict.model_copy(update={"provenance": provenance}))


def test_figures(store, monkeypatch):
    """Counts, stages, devices, what waits and what was not delivered."""
    monkeypatch.setattr(operations, "_SETTLED_S", 0.0)
    devices.see(store, "GPU-1", "host", "H100")
    for number in range(3):
        grade_one(store, number)
    time.sleep(0.05)
    text = text_of(store)
    assert 'grader_verdicts_total{status="rejected"} 3.0' in text
    assert 'grader_runs{purpose="live",state="done"} 3.0' in text
    assert 'grader_stage_seconds_count{stage="run"} 3.0' in text
    assert 'grader_stage_seconds_bucket{le="3600.0",stage="whole"} 3.0' in text
    assert 'grader_device_seconds_total{device="GPU-1"}' in text
    assert 'grader_events_total{kind="accepted"} 3.0' in text
    assert "grader_answers_undelivered 3.0" in text
    assert 'grader_devices{state="ready"} 1.0' in text


def test_what_a_verdict_costs(store, monkeypatch):
    """Seconds of a GPU are counted for the verdicts that had one."""
    monkeypatch.setattr(operations, "_SETTLED_S", 0.0)
    for number, held_s in enumerate((12.0, 20.5, None)):
        grade_one(store, number, held_s)
    time.sleep(0.05)
    text = text_of(store)
    assert "grader_verdict_gpu_seconds_sum 32.5" in text
    assert "grader_verdict_gpu_seconds_count 2.0" in text


def test_where_the_time_of_runs_goes(store, monkeypatch):
    """Stage by stage, as the report of each verdict draws it."""
    monkeypatch.setattr(operations, "_SETTLED_S", 0.0)
    for number, measuring_s in enumerate((8.0, 12.0)):
        grade_one(store, number, timings_s={"learner": 5.0, "measure": measuring_s})
    time.sleep(0.05)
    text = text_of(store)
    assert 'grader_run_stage_seconds_sum{stage="measure"} 20.0' in text
    assert 'grader_run_stage_seconds_count{stage="learner"} 2.0' in text


def test_time_on_a_device_counts_however_the_run_ended(store, monkeypatch):
    """A run that failed by us held its device, too; and nothing is kept of runs that are over."""
    monkeypatch.setattr(operations, "_SETTLED_S", 0.0)
    figures = EventFigures(store)
    submission = Submission(submission_id="s:1", lab="dali-pipelines", filename="s.py", sha256="0" * 64, size_bytes=1)
    plan, waiter = RunPlan(needs=(Need.DISCOVERY,)), Waiter(task_id="t")
    acceptance.accept(store, submission, plan, "live", waiter, IntakeLimits(), "test")
    claim = leases.claim(store, "run", "host/GPU-7/abc", 60)
    time.sleep(0.2)
    leases.fail(store, claim, "the engine fell over", max_attempts=1, delay_s=0.0)
    grade_one(store, 2)
    acceptance.accept(
        store, submission.model_copy(update={"submission_id": "s:2"}), plan, "live", waiter, IntakeLimits(), "t"
    )
    time.sleep(0.05)
    found = {
        sample.labels["device"]: sample.value
        for family in figures.families()
        for sample in family.samples
        if sample.name == "grader_device_seconds_total"
    }
    assert 0.19 <= found["GPU-7"] < 30
    assert (figures._open, figures._on_device) == ({}, {})


def test_each_event_is_counted_once(store, monkeypatch):
    """However often it is scraped."""
    monkeypatch.setattr(operations, "_SETTLED_S", 0.0)
    collector = StoreCollector(store)
    registry = CollectorRegistry()
    registry.register(collector)
    for number in range(2):
        grade_one(store, number)
        time.sleep(0.02)
        generate_latest(registry)
    assert generate_latest(registry).decode() == text_of(store)


def test_a_database_that_is_away(tmp_path):
    """Is the one thing that is said."""
    store = Store(f"sqlite:///{tmp_path}/never-migrated.db")
    text = text_of(store)
    assert "grader_store_up 0.0" in text
    assert "grader_runs" not in text
    store.close()
