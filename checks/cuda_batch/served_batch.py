"""Judges the batch of learner code that had to be measured by its content: a softer result, and said to be one."""

from checks.api import CheckResult, failed, passed, undecided
from grader_service.model.evidence import FirstBatch, ServedBatch
from grader_service.model.verdict import Outcome, Tier


def judge(served: ServedBatch, first_batch: FirstBatch, min_batch: int, dimensions: int) -> CheckResult:
    """Shape and device are the learner's word for it; what cannot be invented is that new images came.

    Forging the device earns nothing: speed and content are proved apart from it.
    """
    shape = list(served.shape)
    seen = f"The first batch that `build_dali_iterator` delivered on other images is {served.dtype} {shape}"
    tier = Tier(served.tier)
    details = {"served": served.model_dump(mode="json"), "first_batch": first_batch.model_dump(mode="json")}
    if len(shape) != dimensions:
        text = f"{seen}, which has {len(shape)} dimensions; expected {dimensions}: batch, channels, height and width."
        return failed("batch.not_4d", text, tier=tier, details=details)
    if shape[0] < min_batch:
        return failed(
            "batch.too_small",
            f"{seen}: {shape[0]} images per batch; at least {min_batch} are needed. "
            "Use the batch_size that `build_dali_iterator` is given.",
            tier=tier,
            details=details,
        )
    if served.device != "cuda":
        return failed(
            "batch.not_cuda",
            f"{seen}, but it lies on the CPU. Decode with device='mixed', or send the images on with .gpu().",
            tier=tier,
            details=details,
        )
    if served.distinct < min_batch:
        return undecided(
            Outcome.UNVERIFIED,
            "batch.not_proved",
            f"{seen}. Only {served.distinct} different new images per batch were recognised in what it delivered "
            "afterwards, so it is not known to hold decoded images, or that later batches are as large as the first. "
            "Check that it reads the folder that it is given, and that every batch has batch_size images.",
            tier=Tier.CLAIMS,
            details=details,
        )
    return passed(
        "batch.ok",
        f"{seen}, on CUDA as your code says (tier {tier}: your graph could not be carried, so your own code was "
        f"asked), and at least {served.distinct} different new images came out of it.",
        tier=tier,
        details=details,
    )
