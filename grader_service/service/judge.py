"""The second half of a grading: takes stored evidence, judges it, and puts a signed verdict in force."""

from dataclasses import dataclass
from functools import partial

import structlog

from checks.registry import Registry
from grader_service.errors import GraderError, InfrastructureError, JudgeFailed, StoreUnavailable
from grader_service.judging.process import JudgeProcess
from grader_service.labs.discovery import LabText
from grader_service.model.evidence import RunPlan
from grader_service.model.lab import LabRef, LabSpec
from grader_service.model.review import Reviews
from grader_service.model.submission import Submission
from grader_service.model.verdict import Mode, Verdict
from grader_service.retry_policy import JUDGING, RetryPolicy
from grader_service.service.kept_labs import kept_lab
from grader_service.service.lab_texts import kept_text
from grader_service.service.lease_heartbeat import LeaseHeartbeat
from grader_service.service.patience import patiently
from grader_service.service.second_opinions import SecondOpinions
from grader_service.service.verdict_making import cancelled, preflight_on, verdict_on
from grader_service.signer.signatures import Signer, SignerAway
from grader_service.store import leases, results, review_cases
from grader_service.store.claims import Claim
from grader_service.store.engine import Store
from grader_service.store.submissions import load_submission
from grader_service.store.tables import PREFLIGHT

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class JudgeDeps:
    """Dependencies of a judge: no sandbox, no GPU."""

    store: Store
    registry: Registry
    signer: Signer
    owner: str
    lease_s: float = 60.0
    retry: RetryPolicy = JUDGING
    judging: JudgeProcess | None = None
    """Where checks judge; in this process if absent."""
    opinions: SecondOpinions | None = None
    """Asks a model for second opinions, where one is set up."""


def judge_next(deps: JudgeDeps) -> Verdict | None:
    """Judges the run that should come next; None when there is none, or when it failed, was lost or was given back.

    While nobody signs it claims none, and a run that it had claimed goes back uncounted.

    Raises:
        StoreUnavailable: the database failed, at the claim or for ten minutes; a lease will run out.
    """
    try:
        deps.signer.keys()
    except SignerAway as error:
        log.warning("signer_away", error=str(error))
        return None
    claim = leases.claim(deps.store, "judge", deps.owner, deps.lease_s)
    if claim is None:
        return None
    with (
        structlog.contextvars.bound_contextvars(submission_id=claim.submission_id, run_id=claim.run_id),
        LeaseHeartbeat(partial(leases.renew, deps.store, claim, deps.lease_s), deps.lease_s, run_id=claim.run_id),
    ):
        try:
            reviews = review_cases.decided(deps.store, claim.submission_id)
            verdict = deps.signer.sign(_verdict(deps, claim, reviews))
        except (SignerAway, StoreUnavailable) as error:
            log.warning("judging_given_back", error=str(error)[:500])
            why = f"it could not be judged yet: {error}"
            patiently(lambda: leases.give_back(deps.store, claim, why))
            return None
        except GraderError as error:
            said = f"{type(error).__name__}: {error}"
            state = leases.fail(deps.store, claim, said, deps.retry, retryable=error.retry)
            trace = error.traceback if isinstance(error, JudgeFailed) else ""
            log.exception("judging_failed", state=state, traceback_of_check=trace)
            return None
        if not patiently(lambda: results.store_verdict(deps.store, claim, verdict, reviews)):
            log.warning("verdict_fenced_off", fence=claim.fence)
            return None
        log.info("verdict", status=verdict.status.value, code=verdict.code, score=verdict.score)
        return verdict


def _verdict(deps: JudgeDeps, claim: Claim, reviews: Reviews) -> Verdict:
    submission = load_submission(deps.store, claim.submission_id)
    preflight = claim.purpose == PREFLIGHT
    kept = RunPlan.model_validate(claim.plan).lab
    if claim.cancelled is not None:
        mode = Mode.PREFLIGHT if preflight else Mode.OFFICIAL
        return cancelled(submission, claim.run_id, claim.cancelled, mode, _text_of(deps, kept))
    lab, stored = kept_lab(deps.store, kept, deps.registry), evidence_of(deps, claim.run_id)
    if preflight:
        run, document = claim.run_id, stored.document
        return preflight_on(submission, lab, run, stored.kind, document, deps.registry, deps.judging)
    return verdict_of(deps, submission, lab, claim.run_id, stored, reviews)


def verdict_of(
    deps: JudgeDeps,
    submission: Submission,
    lab: LabSpec,
    run_id: str,
    stored: results.StoredEvidence,
    reviews: Reviews,
) -> Verdict:
    """`verdict_on`, with what this judge has."""
    document, registry, judging = stored.document, deps.registry, deps.judging
    opinions = deps.opinions
    return verdict_on(submission, lab, run_id, stored.kind, document, registry, judging, reviews, opinions=opinions)


def _text_of(deps: JudgeDeps, kept: LabRef) -> LabText | None:
    """The lab's text, where it is there: a run is cancelled without it, too."""
    try:
        return kept_text(deps.store, kept)
    except StoreUnavailable:
        raise
    except InfrastructureError:
        return None


def evidence_of(deps: JudgeDeps, run_id: str) -> results.StoredEvidence:
    """What a run that is to be judged left.

    Raises:
        InfrastructureError: it is gone or damaged.
        StoreUnavailable: the database failed.
    """
    stored = results.load_evidence(deps.store, run_id)
    if stored is None:
        raise InfrastructureError(f"the evidence of run {run_id}, which is to be judged, is not stored")
    return stored
