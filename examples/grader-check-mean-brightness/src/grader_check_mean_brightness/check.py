"""The check `mean_brightness`, and the probe that it reads."""

from typing import Annotated

from checks.api import GraphProbe, Observation, Result, check, failed, inconclusive, passed, probe, unverified
from pydantic import Field

Positive = Annotated[float, Field(gt=0, le=1000)]
Mean, Std = tuple[float, float, float], tuple[Positive, Positive, Positive]
IMAGENET: tuple[Mean, Std] = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


class Greys(Observation):
    rows: Annotated[tuple[Mean, ...], Field(max_length=2048)]  # the channels of each image, from dark to bright


@probe(version="1.0.0", budget_s=60)
def greys(context: GraphProbe) -> Greys:
    import numpy as np

    run = context.graph.run(context.write_jpegs([np.full((512, 512, 3), 128, np.uint8)] * 16), batches=1)
    rows = [np.median(x, (1, 2) if len(x) == 3 else (0, 1)) for output in run.batches[0] for x in output if x.ndim == 3]
    return Greys(rows=[np.sort(np.float64(row)).round(3) for row in rows if row.size == 3 and np.isfinite(row).all()])


@check(version="1.0.0")
def mean_brightness(greys: Greys, *, mean: Mean = IMAGENET[0], std: Std = IMAGENET[1], within: float = 0.05) -> Result:
    """Grey images leave the DALI graph as the lab's `mean` and `std` make them, within a tolerance.

    Points: all or nothing. Cannot detect: channels in another order; which of several outputs the learner uses."""
    wanted = sorted(round((128 / 255 - m) / s, 3) for m, s in zip(mean, std, strict=True))
    right = [all(abs(a - b) <= within for a, b in zip(row, wanted, strict=True)) for row in greys.rows]
    if not right:
        return unverified("no_rgb", "No output has three channels, so nothing is counted.", next="Return RGB images.")
    if 2 * sum(right) >= len(right):
        return passed("Grey images leave your graph as the lab normalises them.")
    if max(greys.rows)[0] - min(greys.rows)[0] > within:
        return inconclusive("varies", "Greys differ in brightness: nothing counts.", next="Keep their brightness.")
    came = f"A grey of 128 leaves your graph as {greys.rows[0]}; {wanted} is wanted."
    return failed("other_mean", came, next=f"Normalise with 255 times mean={mean} and std={std}.")
