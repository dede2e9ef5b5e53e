"""Work parity: how much of each image a job decodes and shows."""

import numpy as np
import pytest

from grader_service.grading.work_parity import (
    STANDARD,
    decoded_area,
    expected_area,
    lesser_job,
    standard_area,
)

PHOTOS = [(500, 375), (375, 500), (640, 480)]


def crop(height, width, **more):
    return {"op": "crop", "size": [height, width], **more}


def resize(height, width, mode="stretch"):
    return {"op": "resize", "mode": mode, "size": [height, width]}


def window(low, high, **more):
    return {"op": "random_crop", "area": [low, high], "ratio": [3 / 4, 4 / 3], **more}


def view(*steps):
    return {"view": list(steps)}


@pytest.mark.parametrize(
    ("steps", "area"),
    [
        ((), 1.0),
        ((resize(224, 224),), 1.0),
        ((crop(375, 250),), 0.5),
        ((crop(0, 250),), 0.5),
        ((crop(1000, 1000),), 1.0),
        ((resize(256, 256), crop(224, 224)), 0.765625),
        ((resize(256, 256, "not_smaller"), crop(256, 256)), 0.75),
        ((resize(500, 0), crop(250, 250)), 0.1875),
        ((resize(250, 250, "not_larger"), crop(125, 125)), 125 / 187.5 / 2),
        (({"op": "slice", "share": [0.5, 0.4]},), 0.2),
        (({"op": "slice", "share": [0.5, 0.5]}, crop(94, 125)), 0.0625),
    ],
)
def test_the_area_follows_the_steps(steps, area):
    """On a 500 × 375 image, windows count by the size that the image has when they are cut."""
    assert expected_area(view(*steps), [(500, 375)]) == pytest.approx(area, rel=0.01)


@pytest.mark.parametrize(("width", "height"), [(500, 375), (375, 500), (400, 400), (800, 300)])
@pytest.mark.parametrize("scale", [(0.08, 1.0), (0.3, 0.6)])
def test_random_windows_have_the_area_that_they_have_by_drawing(width, height, scale):
    """The mean over a grid is that of 100,000 windows drawn as torchvision draws them, less those that do not fit."""
    generator = np.random.default_rng(1)
    area = width * height * generator.uniform(*scale, 100_000)
    ratio = np.exp(generator.uniform(np.log(3 / 4), np.log(4 / 3), 100_000))
    fits = (np.sqrt(area * ratio) <= width) & (np.sqrt(area / ratio) <= height)
    drawn = area[fits].mean() / (width * height)
    assert expected_area(view(window(*scale)), [(width, height)]) == pytest.approx(drawn, rel=0.02)


def test_where_no_window_fits_the_largest_one_counts():
    """A strip that is ten times as wide as high shows its middle."""
    assert expected_area(view(window(0.9, 1.0)), [(1000, 100)]) == pytest.approx(4 / 3 / 10)


def test_a_window_that_the_graph_computes_is_not_guessed():
    """Unknown windows give no area; outside the decoder they do not touch what was decoded."""
    assert expected_area(view({"op": "unknown"}), PHOTOS) is None
    assert decoded_area(view({"op": "unknown"}), PHOTOS) == 1.0
    assert decoded_area(view({"op": "unknown", "decoder": True}), PHOTOS) is None
    assert lesser_job(view({"op": "unknown", "decoder": True}), PHOTOS) is None
    assert decoded_area(view({"op": "several", "decoder": True}, window(0.5, 1.0, decoder=True)), PHOTOS) is None


def test_only_windows_of_the_decoder_save_decoding():
    """A crop after decoding shows less, and decodes all."""
    assert decoded_area(view(resize(2000, 2000), crop(224, 224)), PHOTOS) == 1.0
    assert decoded_area(view(crop(375, 250, decoder=True)), [(500, 375)]) == pytest.approx(0.5)


@pytest.mark.parametrize(
    "steps",
    [
        (STANDARD,),
        (window(0.08, 1.0, decoder=True), resize(224, 224)),
        (window(0.1, 1.0, decoder=True), resize(224, 224)),
        (window(0.25, 1.0, decoder=True),),
        (resize(256, 256, "not_smaller"), crop(224, 224)),
        (crop(224, 224),),
        (window(0.08, 0.08),),
        (crop(300, 300, decoder=True),),
    ],
)
def test_honest_jobs_are_no_lesser_ones(steps):
    """Standard augmentation fused with the decoder, evaluation crops, and any crop after decoding are the same work."""
    assert lesser_job(view(*steps), PHOTOS) is None


@pytest.mark.parametrize(
    "step",
    [
        window(0.08, 0.08, decoder=True),
        window(0.05, 0.3, decoder=True),
        {"op": "slice", "share": [0.3, 0.3], "decoder": True},
        crop(64, 64, decoder=True),
    ],
)
def test_decoding_tiny_windows_is_a_lesser_job(step):
    """A decoder that is asked for a corner does a part of the work, whatever it is enlarged to afterwards."""
    said = lesser_job(view(step, resize(224, 224)), PHOTOS)
    assert said is not None
    assert "random_area=[0.08, 1.0]" in said


def test_the_limit_lies_at_four_fifths_of_the_standard_job():
    """Just below it is less work, just above it is not."""
    floor = 0.8 * standard_area([(500, 375)])
    for factor, lesser in ((0.99, True), (1.01, False)):
        step = {"op": "slice", "share": [1.0, floor * factor], "decoder": True}
        assert (lesser_job(view(step), [(500, 375)]) is not None) is lesser
