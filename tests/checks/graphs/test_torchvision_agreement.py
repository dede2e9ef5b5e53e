"""`torchvision_agreement`: validation graphs beside torchvision's transforms, and the usual ways to differ."""

from checks.torchvision_agreement.check import torchvision_agreement
from grader_service.model.verdict import Outcome
from tests.checks.graphs.control_tests import test_control, test_figures_in_the_docstring  # noqa: F401 - of CONTROLS
from tests.checks.graphs.controls import CONDITIONS, CROP, FLIP, NORMALISE, TRIVIAL, Control, Controls
from tests.checks.graphs.graphs import bare, judged_alone

SHORTER = "images = fn.resize(images, resize_shorter=256{})"
MIDDLE = "images = fn.crop_mirror_normalize(images, crop=(224, 224), mean=MEAN, std=STD{})"


def validation(*steps, **options):
    """A pipeline for validation."""
    return bare(*steps, name="val", reader="", **options)


def shorter(arguments=""):
    """Resizes the shorter side, with these arguments, then crops the middle."""
    return validation(SHORTER.format(arguments), MIDDLE.format(""))


GOOD = shorter()
CONTROLS = Controls(
    torchvision_agreement,
    "agreement",
    [
        Control("resize_shorter and a crop while normalising", GOOD, "ok"),
        Control("not_smaller and fn.crop", validation("images = fn.resize(images, size=256, mode='not_smaller')",
                "images = fn.crop(images, crop=(224, 224))", NORMALISE), "ok"),
        Control("triangular filter", shorter(", interp_type=types.INTERP_TRIANGULAR"), "ok"),
        Control("floating point between", shorter(", dtype=types.FLOAT"), "ok"),
        Control("channels last", validation(SHORTER.format(""), MIDDLE.format(', output_layout="HWC"')), "ok"),
        Control("beside a training pipeline", bare(CROP, FLIP) + GOOD, "ok"),
        Control("another size", validation("images = fn.resize(images, resize_shorter=232)",
                MIDDLE.format("").replace("224", "192")), "ok", {"resize": 232, "crop": 192}),
        Control("without antialiasing, as wanted", shorter(", antialias=False"), "ok", {"antialias": False}),
        Control("bicubic, as wanted", shorter(", interp_type=types.INTERP_CUBIC"), "ok", {"interpolation": "bicubic"}),
        Control("no antialiasing", shorter(", antialias=False"), "no_antialias"),
        Control("antialiasing that is not wanted", GOOD, "antialias", {"antialias": False}),
        Control("bicubic", shorter(", interp_type=types.INTERP_CUBIC"), "interpolation"),
        Control("nearest", shorter(", interp_type=types.INTERP_NN"), "interpolation"),
        Control("squashed", validation("images = fn.resize(images, size=[224, 224])", NORMALISE), "squashed"),
        Control("squashed, then cropped", validation("images = fn.resize(images, resize_x=256, resize_y=256)",
                MIDDLE.format("")), "squashed_then_cropped"),
        Control("resized to the crop", validation("images = fn.resize(images, resize_shorter=224)", MIDDLE.format("")),
                "resized_to_crop"),
        Control("not resized", validation(MIDDLE.format("")), "not_resized"),
        Control("upper left corner", validation(SHORTER.format(""), MIDDLE.format(", crop_pos_x=0.0, crop_pos_y=0.0")),
                "corner"),
        Control("half a pixel", validation(SHORTER.format(""), MIDDLE.format(""),
                "images = fn.warp_affine(fn.transpose(images, perm=[1, 2, 0]), matrix=[1, 0, 0.5, 0, 1, 0.5])"),
                "half_pixel"),
        Control("not normalised", validation(SHORTER.format(""), MIDDLE.format("").replace("mean=MEAN, std=STD", "")),
                "normalisation"),
        Control("no crop to the size", validation("images = fn.resize(images, size=[256, 256])", NORMALISE), "size"),
        Control("only a random pipeline", bare(CROP, FLIP), "no_validation_graph"),
    ],
    further=[
        # Conditions count as random, although no operator of that name stands at the end.
        Control("only an automatic augmentation", bare(CROP, TRIVIAL, NORMALISE, options=CONDITIONS),
                "no_validation_graph"),
        Control("the graph that is named", bare(CROP, FLIP) + GOOD, "ok", {"graph": "val_pipe"}),
        Control("a graph of that name is not there", GOOD, "no_such_graph", {"graph": "test_pipe"}, Outcome.UNVERIFIED),
    ],
)  # fmt: skip


def test_passing_graphs_are_far_nearer_than_any_mistake(workshop):
    """The tolerance lies between both, with room on either side for a GPU's decoder."""
    worst = max(CONTROLS.judged(workshop, control).details["errors"]["wanted"] for control in CONTROLS.passing)
    nearest = min(
        errors["wanted"]
        for control in CONTROLS.failing
        if (errors := CONTROLS.judged(workshop, control).details.get("errors"))
    )
    assert worst <= 0.3
    assert nearest >= 1.2


def compared(errors, fitted=()):
    """What is told of a graph with these errors."""
    places = [{"name": "Resize", "file": "submission.py", "line": line, "arguments": {}} for line in (12, 14)]
    observation = {
        "graph": "val_pipe", "carried": 1, "candidates": [], "shape": [3, 224, 224], "errors": errors,
        "fitted": dict(fitted), "operators": places,
    }  # fmt: skip
    return judged_alone(torchvision_agreement, observation)


def test_values_that_differ_as_well_are_advice():
    """The place where images differ is named, and their other mean and std beside it."""
    both = compared({"wanted": 60.0}, {"wanted": 12.0, "corner": 0.3})
    assert both.code == "agreement.corner"
    assert [one.code for one in both.parts.advice] == ["advice.normalised_otherwise"]
    alone = compared({"wanted": 12.0, "corner": 0.3})
    assert (alone.code, alone.parts.advice) == ("agreement.corner", ())
    assert "submission.py, lines 12 and 14" in alone.parts.seen


def test_a_difference_is_never_shown_as_what_is_allowed():
    """Figures are rounded away from the limit."""
    result = compared({"wanted": 1.0001})
    assert result.code == "agreement.differs"
    assert result.parts.numbers == {"grey_levels_off": 1.01, "allowed": 1.0}
