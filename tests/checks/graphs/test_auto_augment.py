"""`auto_augment`: DALI's automatic augmentations by what they put into a graph and what they do."""

from checks.auto_augment.check import auto_augment
from tests.checks.graphs.control_tests import test_control, test_figures_in_the_docstring  # noqa: F401 - of CONTROLS
from tests.checks.graphs.controls import CONDITIONS, CROP, FLIP, JITTER, NORMALISE, RESIZE, TRIVIAL, Control, Controls
from tests.checks.graphs.graphs import bare


def augmented(call, *more):
    """A pipeline with this call of `nvidia.dali.auto_aug`."""
    start = "from nvidia.dali.auto_aug import augmentations, auto_augment, rand_augment, trivial_augment"
    return bare(CROP, start, f"images = {call}", *(more or (NORMALISE,)), options=CONDITIONS + ", seed=11")


TRIVIAL_WIDE = "trivial_augment.trivial_augment_wide(images)"
RAND = "rand_augment.rand_augment(images, n=2, m=17)"
AUTO = "auto_augment.auto_augment(images)"
OWN = ("if fn.random.coin_flip(dtype=types.BOOL):\n    images = fn.rotate(images, angle=20.0, keep_size=True)\n"
       "elif fn.random.coin_flip(dtype=types.BOOL):\n    images = fn.brightness(images, brightness=1.5)")  # fmt: skip
SMALL = ("trivial_augment.apply_trivial_augment([augmentations.brightness, augmentations.rotate, "
         "augmentations.contrast], images)")  # fmt: skip
NOTHING = "rand_augment.apply_rand_augment([augmentations.rotate, augmentations.shear_x], images, n=1, m=0)"
CONTROLS = Controls(
    auto_augment,
    "auto_augment",
    [
        Control("trivial", augmented(TRIVIAL_WIDE), "ok", {"policy": "trivial_augment"}),
        Control("random", augmented(RAND), "ok", {"policy": "rand_augment"}),
        Control("for ImageNet", augmented(AUTO), "ok", {"policy": "auto_augment"}),
        Control("for house numbers", augmented("auto_augment.auto_augment(images, 'svhn')"), "ok"),
        Control("with shape", augmented("auto_augment.auto_augment_image_net(images, shape=[64, 64])"), "ok"),
        Control("of three augmentations", augmented(SMALL), "ok", {"policy": "trivial_augment"}),
        Control("and flips", augmented(TRIVIAL_WIDE, FLIP), "ok"),
        Control("beside validation", augmented(TRIVIAL_WIDE) + bare(RESIZE, NORMALISE, name="val", reader=""), "ok"),
        Control("no augmentation", bare(RESIZE, NORMALISE), "not_found"),
        Control("crops and flips", bare(CROP, FLIP), "not_found"),
        Control("colours", bare(CROP, JITTER, NORMALISE), "not_found"),
        Control("conditions of one's own", bare(CROP, OWN, NORMALISE, options=CONDITIONS), "not_found"),
        Control("imported and not returned", bare(CROP, TRIVIAL.replace("images = ", "other = "), NORMALISE,
                                                  options=CONDITIONS), "not_found"),
        Control("another one", augmented(TRIVIAL_WIDE), "wrong_policy", {"policy": "rand_augment"}),
        Control("one more of another", augmented(AUTO), "wrong_policy", {"policy": "trivial_augment"}),
        Control("without magnitude", augmented(NOTHING), "no_effect"),
    ],
)  # fmt: skip


def test_operators_that_dali_builds(workshop):
    """The numbers in the docstring are those of the installed DALI."""
    trivial = workshop.judge(augmented(TRIVIAL_WIDE), auto_augment).details
    random = workshop.judge(augmented(RAND), auto_augment).details
    assert trivial["operators"] == 178
    assert 300 <= random["operators"] <= 350
    assert trivial["trivial_augment.py"] >= 1
    assert trivial["_augmentation.py"] > 50
