"""Submissions, verdicts and finished runs in a store; each test changes only what it is about."""

from contextlib import closing, contextmanager

from sqlalchemy import func, select

from grader_service.judging import verdicts
from grader_service.model.evidence import Need, RunPlan
from grader_service.model.submission import Submission
from grader_service.store import acceptance, leases, results
from grader_service.store.acceptance import Arrival, IntakeLimits
from grader_service.store.engine import Store
from grader_service.store.outbox import Waiter
from tests.factories import A_LAB

PLAN = RunPlan(needs=(Need.DISCOVERY,), lab=A_LAB)
LIMITS = IntakeLimits()


@contextmanager
def migrated(url, **options):
    """A store with the current schema, closed at the end."""
    with closing(Store(url, **options)) as opened:
        opened.migrate()
        yield opened


def a_submission(number=1, *, learner="ann", sha="0", **changes):
    values = {
        "submission_id": f"s:{number}",
        "lab": "dali-pipelines",
        "learner": learner,
        "cohort": "c",
        "filename": "s.py",
        "sha256": sha * 64,
        "size_bytes": 3,
    }
    return Submission(**(values | changes))


def accept(store, submission, purpose="live", waiter=None, limits=LIMITS):
    return acceptance.accept_all(store, [Arrival(submission, PLAN, purpose, waiter or Waiter())], limits, "test")[0]


def a_verdict(submission_id="s:1"):
    return verdicts.refused(submission_id, "dali-pipelines", "archive.link", "no links")


def count(store, what, *where):
    with store.transaction() as connection:
        return connection.execute(select(func.count()).select_from(what).where(*where)).scalar_one()


def finish(store, submission_id="s:1", runner="runner", **provenance):
    """Runs and judges whatever comes next."""
    claim = leases.claim(store, "run", runner, 60)
    assert results.store_evidence(store, claim, "evidence", b"{}", {})
    judge = leases.claim(store, "judge", "judge", 60)
    verdict = a_verdict(submission_id)
    verdict = verdict.model_copy(update={"provenance": verdict.provenance.model_copy(update=provenance)})
    assert results.store_verdict(store, judge, verdict)
    return verdict
