"""Held-out images are JPEGs of the learner's sizes, reproducible from the seed and different for every other one."""

import hashlib

import pytest
from PIL import Image

from grader_service.grading import shards
from grader_service.model.evidence import ImageSize

SIZES = (ImageSize(width=320, height=240, size_bytes=1), ImageSize(width=5000, height=20, size_bytes=1))


def make(tmp_path, seed, images=24, sizes=SIZES):
    folder = tmp_path / seed[:8]
    folder.mkdir()
    plan = shards.plan_shard(seed, sizes, images)
    return plan, folder, shards.make_shard(plan, folder)


def digest(folder, names):
    return [hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in names]


def test_images_decode_and_have_the_planned_sizes(tmp_path):
    """Each file is a baseline JPEG without metadata, of a size of the learner's set clamped to what is sensible."""
    plan, folder, names = make(tmp_path, "ab" * 16)
    assert len(names) == 24
    for name, size in zip(names, plan.sizes, strict=True):
        with Image.open(folder / name) as image:
            image.load()
            assert (image.format, image.size, image.mode) == ("JPEG", size, "RGB")
            assert "progressive" not in image.info
            assert "exif" not in image.info
    assert set(plan.sizes) <= {(320, 240), (1600, 96)}


def test_the_seed_makes_the_same_images_again(tmp_path):
    """A verdict's seed is enough to repeat its shard; another seed shares nothing."""
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    _, first, names = make(tmp_path / "a", "01" * 16)
    _, again, _ = make(tmp_path / "b", "01" * 16)
    _, other, _ = make(tmp_path, "02" * 16)
    assert digest(first, names) == digest(again, names)
    assert not set(digest(first, names)) & set(digest(other, names))


def test_every_image_is_different(tmp_path):
    """No two files of a shard are equal."""
    _, folder, names = make(tmp_path, "03" * 16, images=64)
    assert len(set(digest(folder, names))) == 64


def test_an_empty_data_set_gets_photo_sizes(tmp_path):
    """Without sizes of the learner's the images are 500 x 375."""
    plan, _, _ = make(tmp_path, "04" * 16, images=2, sizes=())
    assert set(plan.sizes) == {(500, 375)}


def test_bits_per_pixel_are_like_photographs(tmp_path):
    """Between 1.5 and 4 bits per pixel: decoding them is real work."""
    _, folder, names = make(tmp_path, "05" * 16, images=8, sizes=())
    bits = sum((folder / name).stat().st_size for name in names) * 8 / (8 * 500 * 375)
    assert 1.5 < bits < 4.0


def test_seeds_do_not_repeat():
    """Each is 128 bits from the operating system."""
    seeds = {shards.new_seed() for _ in range(100)}
    assert len(seeds) == 100
    assert all(len(seed) == 32 for seed in seeds)


def test_unwritable_folder_is_an_error(tmp_path):
    """A folder that is not there is our failure, and loud."""
    with pytest.raises(OSError, match="No such file"):
        shards.make_shard(shards.plan_shard("06" * 16, (), 2), tmp_path / "absent")
