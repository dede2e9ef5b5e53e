"""`normalisation` on graphs of learners, run by DALI: every usual mistake gets its own name."""

import pytest

from checks.normalisation.check import normalisation
from checks.normalisation.fit import error, nearest, right
from grader_service.model.verdict import Outcome
from tests.checks.graphs.control_tests import test_control, test_figures_in_the_docstring  # noqa: F401 - of CONTROLS
from tests.checks.graphs.controls import JITTER, NORMALISE, RESIZE, USUAL, Control, Controls
from tests.checks.graphs.graphs import bare

M01, S01 = "[0.485, 0.456, 0.406]", "[0.229, 0.224, 0.225]"


def cmn(arguments):
    """The usual last operator, with these arguments."""
    return f"images = fn.crop_mirror_normalize(images{arguments})"


CONTROLS = Controls(
    normalisation,
    "normalisation",
    [
        *USUAL,
        Control("channels last", bare(RESIZE, NORMALISE.replace("STD)", 'STD, output_layout="HWC")')), "ok"),
        Control("by arithmetic", bare(RESIZE, f"images = (images / 255.0 - types.Constant({M01})) / "
                                              f"types.Constant({S01})"), "ok"),
        Control("scaled first", bare(RESIZE, "images = images / 255.0", cmn(f", mean={M01}, std={S01}")), "ok"),
        Control("scaled by the operator", bare(RESIZE, cmn(f", mean=MEAN, std={S01}, scale=1 / 255")), "ok"),
        Control("fn.normalize", bare(RESIZE, "import numpy as np",
                "images = fn.normalize(images, mean=np.float32(MEAN).reshape(1, 1, 3), "
                "stddev=np.float32(STD).reshape(1, 1, 3))"), "ok"),
        Control("half precision", bare(RESIZE, NORMALISE.replace("STD)", "STD, dtype=types.FLOAT16)")), "ok"),
        Control("blue first, statistics too", bare(RESIZE, cmn(", mean=MEAN[::-1], std=STD[::-1]"),
                                                   decoder=", output_type=types.BGR"), "ok"),
        Control("other statistics wanted", bare(RESIZE, cmn(", mean=[127.5], std=[127.5]")), "ok",
                {"mean": [0.5, 0.5, 0.5], "std": [0.5, 0.5, 0.5]}),
        Control("nothing", bare(RESIZE), "raw"),
        Control("only another layout", bare(RESIZE, cmn("")), "raw"),
        Control("scaled to 0..1", bare(RESIZE, cmn(", std=[255]")), "unit_range"),
        Control("scaled to -1..1", bare(RESIZE, cmn(", mean=[127.5], std=[127.5]")), "minus_one_to_one"),
        Control("both in the scale 0..1", bare(RESIZE, cmn(f", mean={M01}, std={S01}")), "scale_01"),
        Control("mean in the scale 0..1", bare(RESIZE, cmn(f", mean={M01}, std=STD")), "mean_scale_01"),
        Control("std in the scale 0..1", bare(RESIZE, cmn(f", mean=MEAN, std={S01}")), "std_scale_01"),
        Control("no std", bare(RESIZE, cmn(", mean=MEAN")), "std_missing"),
        Control("no std after scaling", bare(RESIZE, "images = images / 255.0", cmn(f", mean={M01}")), "std_missing"),
        Control("no mean", bare(RESIZE, cmn(", std=STD")), "mean_missing"),
        Control("statistics of BGR on RGB", bare(RESIZE, cmn(", mean=MEAN[::-1], std=STD[::-1]")), "bgr_stats"),
        Control("statistics of RGB on BGR", bare(RESIZE, NORMALISE, decoder=", output_type=types.BGR"), "bgr_stats"),
        Control("twice", bare(RESIZE, "images = images / 255.0", cmn(f", mean={M01}, std={S01}"),
                              cmn(f", mean={M01}, std={S01}")), "twice"),
        Control("cut off", bare(RESIZE, cmn(", mean=MEAN, std=STD, dtype=types.UINT8")), "not_linear"),
        Control("by each image's own statistics", bare(RESIZE, "images = fn.normalize(images)"), "per_image"),
        Control("statistics of another data set", bare(RESIZE, cmn(", mean=[125, 123, 114], std=[63, 62, 67]")),
                "other"),
    ],
    further=[
        # Colours that vary hide neither wrong statistics nor two places that apply them.
        Control("in the scale 0..1, behind random colours", bare(RESIZE, JITTER, cmn(f", mean={M01}, std={S01}")),
                "scale_01"),
        Control("twice, behind random colours", bare(RESIZE, JITTER, NORMALISE, NORMALISE), "colours_vary",
                outcome=Outcome.UNVERIFIED),
    ],
)  # fmt: skip


def test_feedback_names_the_line_and_both_statistics(workshop):
    """The learner hears what was measured, what was wanted, and where the operator stands."""
    result = workshop.judge(bare(RESIZE, cmn(f", mean={M01}, std={S01}")), normalisation)
    assert "crop_mirror_normalize in submission" in result.feedback
    assert "[0.485, 0.456, 0.406]" in result.feedback
    assert "255" in result.feedback


def test_tolerance_is_in_grey_levels():
    """A mean that is one grey level off is one grey level away, whatever the standard deviation."""
    mean, std = (0.5, 0.5, 0.5), (0.2, 0.25, 0.3)
    moved = right(tuple(value + 1 / 255 for value in mean), std)
    assert error(moved, right(mean, std)) == pytest.approx(1.0)
    assert nearest(right((0, 0, 0), (1, 1, 1)), mean, std)[0] == "unit_range"
