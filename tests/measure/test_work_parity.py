"""The standard job's work: how much of an image its random window shows, and how often it reaches the end of a file."""

import math
import random

import pytest

from grader_service.measure.work_parity import standard_work


def torchvision_window(width, height, draw):
    """(left, top, width, height) as torchvision's `RandomResizedCrop.get_params` draws it, with its defaults."""
    for _ in range(10):
        area = height * width * draw.uniform(0.08, 1.0)
        ratio = math.exp(draw.uniform(math.log(3 / 4), math.log(4 / 3)))
        w, h = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
        if 0 < w <= width and 0 < h <= height:
            return draw.randint(0, width - w), draw.randint(0, height - h), w, h
    w, h = width, height
    if width / height < 3 / 4:
        h = round(w / (3 / 4))
    elif width / height > 4 / 3:
        w = round(h * (4 / 3))
    return (width - w) // 2, (height - h) // 2, w, h


def simulated(sizes, count=60_000):
    """Share of all pixels that windows show, and share of them in images whose window reaches the lowest third."""
    draw, every, shown, low = random.Random(1), 0, 0, 0
    for number in range(count):
        width, height = sizes[number % len(sizes)]
        _, top, w, h = torchvision_window(width, height, draw)
        every += width * height
        shown += w * h
        low += width * height * (top + h > height * 2 / 3)
    return shown / every, low / every


@pytest.mark.parametrize(
    "sizes",
    [
        [(500, 375)],
        [(375, 500)],
        [(400, 400)],
        [(1200, 600)],
        [(2000, 400)],
        [(300, 1500)],
        [(500, 375), (375, 500), (640, 640)],
    ],
    ids=["landscape", "portrait", "square", "wide", "panorama", "strip", "several"],
)
def test_the_standard_work_is_that_of_torchvision(sizes):
    """Simulated: what does not fit is drawn again, up to ten times, and then the middle is taken."""
    area, low = simulated(sizes)
    assert standard_work(sizes) == (pytest.approx(area, abs=0.02), pytest.approx(low, abs=0.03))


def test_where_no_window_fits_the_middle_counts():
    """A strip that is twenty times as wide as high shows a square of it."""
    assert standard_work([(2000, 100)]) == (pytest.approx(4 / 3 / 20), 1.0)


def test_each_image_counts_by_its_pixels():
    """A large image is more work than a small one; of equal ones each counts once."""
    wide, tall = standard_work([(800, 300)]), standard_work([(300, 800)])
    mixed = standard_work([(800, 300)] * 3 + [(300, 800)])
    assert mixed == (pytest.approx((3 * wide[0] + tall[0]) / 4), pytest.approx((3 * wide[1] + tall[1]) / 4))
    larger = standard_work([(1600, 600), (300, 800)])
    assert larger == (pytest.approx((4 * wide[0] + tall[0]) / 5), pytest.approx((4 * wide[1] + tall[1]) / 5))


def test_of_one_size_only_the_shape_counts():
    """However large the images are."""
    assert standard_work([(640, 480)]) == standard_work([(160, 120)])


def test_very_tall_images_are_taken_for_less_tall_ones():
    """Else a graph could read nothing but the first rows of files that its author made so."""
    tall = standard_work([(96, 1600)])
    assert tall == standard_work([(300, 1800)])
    assert tall[0] > 0.12
    assert tall[1] > 0.2
