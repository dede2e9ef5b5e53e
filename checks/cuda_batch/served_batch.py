"""Judges the batch of learner code that had to be measured by its content: a softer result, and said to be one."""

from collections.abc import Sequence

from checks.api import Result, failed, passed, undecided
from checks.cuda_batch import wording
from grader_service.model.discovery import FirstBatch
from grader_service.model.evidence import ServedBatch
from grader_service.model.feedback import Advice
from grader_service.model.verdict import Outcome, Tier


def judge(
    served: ServedBatch, first_batch: FirstBatch, min_batch: int, dimensions: int, advice: Sequence[Advice]
) -> Result:
    """Shape and device are the learner's word for it; what cannot be invented is that new images came.

    Forging the device earns nothing: speed and content are proved apart from it.
    """
    shown = wording.delivered(served, min_batch, dimensions, advice)
    details = {
        "served": served.model_dump(mode="json"),
        "first_batch": first_batch.model_dump(mode="json"),
        "advice": [one.code for one in advice],
    }
    tier = Tier(served.tier)
    problem = _problem(served, min_batch, dimensions)
    if problem is not None:
        code, what = problem
        return failed(code, wording.bad(shown, what), tier=tier, details=details)
    if served.distinct < min_batch:
        feedback = wording.not_proved(shown, served.distinct)
        return undecided(Outcome.UNVERIFIED, "batch.not_proved", feedback, tier=Tier.CLAIMS, details=details)
    also = f"; at least {served.distinct} different new images came out of it"
    return passed(wording.good(shown, also), tier=tier, details=details)


def _problem(served: ServedBatch, min_batch: int, dimensions: int) -> tuple[str, wording.Problem] | None:
    if len(served.shape) != dimensions:
        return "batch.not_4d", wording.dimensions(len(served.shape), dimensions)
    if served.shape[0] < min_batch:
        return "batch.too_small", wording.served_too_small(served.shape[0])
    if served.device != "cuda":
        return "batch.not_cuda", wording.SERVED_ON_CPU
    return None
