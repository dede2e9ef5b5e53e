"""The second half of a grading: takes stored evidence, judges it, and puts a signed verdict in force."""

from collections.abc import Callable
from dataclasses import dataclass

import structlog

from checks.registry import Registry
from grader_service.errors import InfrastructureError, StoreUnavailable
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
from grader_service.service.pipeline import NotNow, advance
from grader_service.service.second_opinions import SecondOpinions
from grader_service.service.verdict_making import cancelled, preflight_on, verdict_on
from grader_service.signer.signatures import Signer, SignerAway
from grader_service.store import results, review_cases
from grader_service.store.engine import Store
from grader_service.store.lease import Lease
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

    With the signer away it claims none, and gives a claimed run back uncounted.

    Raises:
        StoreUnavailable: see `pipeline.advance`.
    """
    try:
        deps.signer.keys()
    except SignerAway as error:
        log.warning("signer_away", error=str(error))
        return None
    made: list[Verdict] = []
    advance("judge", deps, lambda lease: _Judging(deps, lease, made.append))
    return made[0] if made else None


@dataclass(frozen=True)
class _Judging:
    """The judging of one run, as `pipeline.Work`."""

    deps: JudgeDeps
    lease: Lease
    tell: Callable[[Verdict], object]
    """Gets the verdict once it is stored."""

    def abort(self) -> None:
        """Nothing to do: judging is short, and the fence refuses a late write."""

    def do(self) -> Callable[[], bool]:
        """See `pipeline.Work.do`."""
        deps = self.deps
        try:
            reviews = review_cases.decided(deps.store, self.lease.submission_id)
            verdict = deps.signer.sign(_verdict(deps, self.lease, reviews))
        except (SignerAway, StoreUnavailable) as error:
            raise NotNow(f"it could not be judged yet: {error}") from error
        return lambda: self._store(verdict, reviews)

    def _store(self, verdict: Verdict, reviews: Reviews) -> bool:
        if not results.store_verdict(self.deps.store, self.lease, verdict, reviews):
            return False
        log.info("verdict", status=verdict.status.value, code=verdict.code, score=verdict.score)
        self.tell(verdict)
        return True


def _verdict(deps: JudgeDeps, lease: Lease, reviews: Reviews) -> Verdict:
    submission = load_submission(deps.store, lease.submission_id)
    preflight = lease.purpose == PREFLIGHT
    kept = RunPlan.model_validate(lease.plan).lab
    if lease.cancelled is not None:
        mode = Mode.PREFLIGHT if preflight else Mode.OFFICIAL
        return cancelled(submission, lease.run_id, lease.cancelled, mode, _text_of(deps, kept))
    lab, stored = kept_lab(deps.store, kept, deps.registry), evidence_of(deps, lease.run_id)
    if preflight:
        run, document = lease.run_id, stored.document
        return preflight_on(submission, lab, run, stored.kind, document, deps.registry, deps.judging)
    return verdict_of(deps, submission, lab, lease.run_id, stored, reviews)


def verdict_of(
    deps: JudgeDeps,
    submission: Submission,
    lab: LabSpec,
    run_id: str,
    stored: results.StoredEvidence,
    reviews: Reviews,
) -> Verdict:
    """`verdict_on`, with the dependencies of this judge."""
    document, registry, judging = stored.document, deps.registry, deps.judging
    opinions = deps.opinions
    return verdict_on(submission, lab, run_id, stored.kind, document, registry, judging, reviews, opinions=opinions)


def _text_of(deps: JudgeDeps, kept: LabRef) -> LabText | None:
    """The lab's text, or None: cancelling works without it."""
    try:
        return kept_text(deps.store, kept)
    except StoreUnavailable:
        raise
    except InfrastructureError:
        return None


def evidence_of(deps: JudgeDeps, run_id: str) -> results.StoredEvidence:
    """Evidence of a run that is to be judged.

    Raises:
        InfrastructureError: it is gone or damaged.
        StoreUnavailable: the database failed.
    """
    stored = results.load_evidence(deps.store, run_id)
    if stored is None:
        raise InfrastructureError(f"the evidence of run {run_id}, which is to be judged, is not stored")
    return stored
