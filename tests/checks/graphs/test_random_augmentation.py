"""`random_augmentation`: draws for every sample, of the wanted kinds, and none for validation."""

import math

import pytest

from checks.observations.augmentation import binomial_p
from checks.random_augmentation.check import random_augmentation
from tests.checks.graphs.control_tests import test_control, test_figures_in_the_docstring  # noqa: F401 - of CONTROLS
from tests.checks.graphs.controls import (
    CONDITIONS,
    CROP,
    FLIP,
    JITTER,
    NORMALISE,
    OLD_STYLE,
    RESIZE,
    TRIVIAL,
    Control,
    Controls,
)
from tests.checks.graphs.graphs import bare as unseeded


def bare(*steps, options="", **more):
    """Seeded, so that no draw makes a test fail once in a while."""
    return unseeded(*steps, options=options + ", seed=11", **more)


NEVER, ALWAYS = FLIP.replace("0.5", "0.0"), FLIP.replace("0.5", "1.0")
BY_POSITION = ("images = fn.crop(images, crop=(300, 300), crop_pos_x=fn.random.uniform(range=(0, 1)), "
               "crop_pos_y=fn.random.uniform(range=(0, 1)))")  # fmt: skip
PYTHON_FLIP = "images = fn.flip(images, horizontal=random.randint(0, 1))"
PYTHON_CROP = "images = fn.crop(images, crop=(300, 300), crop_pos_x=random.random())"
BATCHWISE = ("one = fn.permute_batch(fn.random.uniform(range=(0, 1)), indices=[0] * 16)\n"
             "images = fn.crop(images, crop=(200, 200), crop_pos_x=one)")  # fmt: skip
VALIDATION = bare(RESIZE, NORMALISE, name="val", reader="")
CONTROLS = Controls(
    random_augmentation,
    "augmentation",
    [
        Control("the lab's own pipeline", bare(RESIZE, CROP, FLIP), "ok"),
        Control("old style", OLD_STYLE, "ok"),
        Control("fused decoder and fn.flip", bare("images = fn.resize(images, size=[64, 64])",
                "images = fn.flip(images, horizontal=fn.random.coin_flip())", NORMALISE,
                decode="image_random_crop"), "ok"),
        Control("new in every run, without a seed", unseeded(CROP, NORMALISE), "ok",
                {"kinds": ["crop"], "new_every_run": True}),
        Control("crops by position", bare(BY_POSITION, RESIZE, FLIP), "ok"),
        Control("flips up and down", bare(CROP, NORMALISE,
                "images = fn.flip(images, vertical=fn.random.coin_flip(), horizontal=0)"), "ok"),
        Control("flips three times in ten, as wanted", bare(CROP, FLIP.replace("0.5", "0.3")), "ok",
                {"flip_probability": 0.3}),
        Control("only colours", bare(RESIZE, JITTER, NORMALISE), "ok", {"kinds": ["colour"]}),
        Control("all kinds", bare(CROP, JITTER, FLIP), "ok", {"kinds": ["crop", "flip", "colour"]}),
        Control("automatic augmentation", bare(CROP, TRIVIAL, FLIP, options=CONDITIONS), "ok", {"kinds": ["colour"]}),
        Control("beside validation", bare(CROP, FLIP) + VALIDATION, "ok",
                {"validation": "required"}),
        Control("nothing random", bare(RESIZE, NORMALISE), "constant"),
        Control("random numbers of Python", bare(PYTHON_CROP, RESIZE, PYTHON_FLIP, NORMALISE), "constant"),
        Control("a coin that never shows heads", bare(RESIZE, NEVER), "constant"),
        Control("a choice of one", bare("images = fn.crop(images, crop=(300, 300), "
                "crop_pos_x=fn.random.uniform(values=[0.3]))", RESIZE, NORMALISE), "constant"),
        Control("one draw for a batch", bare(BATCHWISE, RESIZE, NORMALISE), "same_in_batch"),
        Control("crops without flips", bare(CROP, NORMALISE), "no_flip"),
        Control("crops, and always flips", bare(CROP, ALWAYS), "always_flips"),
        Control("flips without crops", bare(RESIZE, FLIP), "no_crop"),
        Control("no colours", bare(CROP, FLIP), "no_colour", {"kinds": ["colour"]}),
        Control("flips one time in twenty", bare(CROP, FLIP.replace("0.5", "0.05")), "flip_probability"),
        Control("random validation", bare(CROP, FLIP) + bare(CROP, NORMALISE, name="val"), "validation_random"),
        Control("the same in every run", bare(CROP, FLIP), "same_every_run",
                {"new_every_run": True}),
    ],
)  # fmt: skip


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (bare(PYTHON_CROP, RESIZE, NORMALISE), "Python's random module"),
        (bare(RESIZE, NEVER), "fn.random.coin_flip in submission.py, line "),
    ],
    ids=["python", "coin"],
)
def test_the_reason_for_constant_images_is_said(workshop, source, words):
    """A number that was drawn once and a coin without a choice are told apart."""
    assert words in workshop.judge(source, random_augmentation).feedback


def test_binomial_p():
    """Two-sided values of a fair and an unfair coin, and the power that the docstring states."""
    assert binomial_p(32, 64, 0.5) == pytest.approx(1.0)
    assert binomial_p(0, 10, 0.5) == pytest.approx(2 / 1024)
    assert binomial_p(3, 10, 0.3) == pytest.approx(1.0)
    assert binomial_p(0, 0, 0.5) == 1.0
    refused = [count for count in range(65) if binomial_p(count, 64, 0.5) < 1e-4]
    for probability, low, high in ((0.5, 0.0, 1e-4), (0.1, 0.999, 1.0), (0.3, 0.2, 0.3)):
        chance = sum(_chance(count, 64, probability) for count in refused)
        assert low <= chance <= high, (probability, chance)


def _chance(count, trials, probability):
    return math.comb(trials, count) * probability**count * (1 - probability) ** (trials - count)
