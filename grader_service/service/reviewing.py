"""Makes the verdicts of what people decided: a chore of every judge."""

from dataclasses import replace

import structlog

from grader_service.errors import GraderError, StoreUnavailable
from grader_service.judging.process import JudgeProcess
from grader_service.model.verdict import Verdict
from grader_service.service.judge import JudgeDeps, evidence_of, verdict_of
from grader_service.service.kept_labs import kept_lab
from grader_service.signer.signatures import SignerAway
from grader_service.store import review_cases
from grader_service.store.one_by_one import tell
from grader_service.store.review_work import Decided, decided_cases, store_reviewed
from grader_service.store.submissions import load_submission

log = structlog.get_logger(__name__)

_AT_ONCE = 50
_MOST_LEFT = 1000
"""That could not be judged in one round: there is more wrong than single submissions."""


def judge_reviewed(deps: JudgeDeps) -> int:
    """Judges again, from stored evidence, what people decided about; returns how many verdicts came in force.

    Without a judging process one is started while there is something to do.

    Raises:
        RowsLeft: some could not be judged, and wait; all others were.
        SignerAway: nobody signs now; nothing was judged.
        StoreUnavailable: the database failed.
    """
    if not decided_cases(deps.store, 1):
        return 0
    deps.signer.keys()
    if deps.judging is not None:
        return _judge_all(deps)
    with JudgeProcess() as judging:
        return _judge_all(replace(deps, judging=judging))


def _judge_all(deps: JudgeDeps) -> int:
    left: dict[str, str] = {}
    seen: set[str] = set()
    done = 0
    while len(left) < _MOST_LEFT and (due := decided_cases(deps.store, _AT_ONCE, seen)):
        seen.update(case.verdict_id for case in due)  # once in a round: what cannot be judged keeps no other waiting
        for case in due:
            try:
                done += judge_decided(deps, case) is not None
            except (StoreUnavailable, SignerAway):
                raise
            except GraderError as error:
                left[case.submission_id] = f"{type(error).__name__}: {error}"
            except Exception as error:
                log.exception("review_bug", submission_id=case.submission_id)
                left[case.submission_id] = f"{type(error).__name__}: {error}"
    tell(left, "submissions about which somebody decided", done)
    return done


def judge_decided(deps: JudgeDeps, case: Decided) -> Verdict | None:
    """The verdict with the decision, in force; None where another one came in force meanwhile: that is looked at next.

    Raises:
        InfrastructureError: the evidence is gone or damaged, or a check failed.
        ConfigurationError: the lab is not here as it was.
        SignerAway: nobody signs now.
        StoreUnavailable: the database failed.
    """
    submission = load_submission(deps.store, case.submission_id)
    reviews = review_cases.decided(deps.store, case.submission_id)
    kept = replace(deps, opinions=deps.opinions and deps.opinions.kept_ones())
    lab, stored = kept_lab(deps.store, case.lab, deps.registry), evidence_of(deps, case.run_id)
    verdict = deps.signer.sign(verdict_of(kept, submission, lab, case.run_id, stored, reviews))
    if not store_reviewed(deps.store, case, verdict, reviews, deps.owner):
        return None
    log.info("reviewed", submission_id=case.submission_id, status=verdict.status.value, code=verdict.code)
    return verdict
