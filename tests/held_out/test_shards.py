"""Held-out images are JPEGs of the learner's sizes, reproducible from the seed and different for every other one."""

import hashlib
import threading
from collections import Counter
from concurrent.futures import CancelledError

import numpy as np
import pytest
from PIL import Image

from grader_service.held_out import shards
from grader_service.held_out.plan import new_seed, plan_shard
from grader_service.model.evidence import ImageSize

SIZES = (ImageSize(width=320, height=240, size_bytes=1), ImageSize(width=5000, height=20, size_bytes=1))


def make(tmp_path, seed, images=24, sizes=SIZES):
    folder = tmp_path / seed[:8]
    folder.mkdir()
    plan = plan_shard(seed, sizes, images)
    return plan, folder, shards.PendingShard(plan, folder).names()


def digest(folder, names):
    return [hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in names]


def test_images_decode_and_have_the_planned_sizes(tmp_path):
    """Each is a baseline JPEG without metadata, of a size of the learner's set clamped to what is sensible.

    No two are equal.
    """
    plan, folder, names = make(tmp_path, "ab" * 16)
    assert len(names) == len(set(digest(folder, names))) == 24
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


def test_an_empty_data_set_gets_images_like_photographs(tmp_path):
    """Of 500 x 375 pixels, with between 1.5 and 4 bits per pixel: decoding them is real work."""
    plan, folder, names = make(tmp_path, "05" * 16, images=8, sizes=())
    assert set(plan.sizes) == {(500, 375)}
    bits = sum((folder / name).stat().st_size for name in names) * 8 / (8 * 500 * 375)
    assert 1.5 < bits < 4.0


def test_seeds_do_not_repeat():
    """Each is 128 bits from the operating system."""
    seeds = {new_seed() for _ in range(100)}
    assert len(seeds) == 100
    assert all(len(seed) == 32 for seed in seeds)


def test_unwritable_folder_is_an_error(tmp_path):
    """A folder that is not there is our failure, and loud."""
    with pytest.raises(OSError, match="No such file"):
        shards.PendingShard(plan_shard("06" * 16, (), 2), tmp_path / "absent").names()


def test_making_goes_on_in_the_background(tmp_path, monkeypatch):
    """`PendingShard` returns before the images are there, and `names` waits for the last of them."""
    plan = plan_shard("07" * 16, (), 200)
    go_on, draw = threading.Event(), shards.write_jpeg
    monkeypatch.setattr(shards, "write_jpeg", lambda *given, **named: go_on.wait(60) and draw(*given, **named))
    with shards.PendingShard(plan, tmp_path) as pending:
        assert not list(tmp_path.rglob("*.jpg"))
        go_on.set()
        names = pending.names()
    assert sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.jpg")) == sorted(names)


def test_closing_stops_the_making(tmp_path):
    """A run that ends early leaves no thread behind, and asking for the names afterwards is an error."""
    plan = plan_shard("08" * 16, (), 2000)
    pending = shards.PendingShard(plan, tmp_path)
    pending.close()
    assert len(list(tmp_path.rglob("*.jpg"))) < 2000
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("held-out")]
    with pytest.raises(CancelledError):
        pending.names()


def test_errors_of_the_background_are_raised(tmp_path):
    """A file that cannot be written is an error of `names`."""
    plan = plan_shard("09" * 16, (), 4)
    (tmp_path / "class_1" / "00001.jpg").mkdir(parents=True)
    with pytest.raises(IsADirectoryError):
        shards.PendingShard(plan, tmp_path).names()


def test_files_hold_nothing_but_the_image(tmp_path):
    """One table of each kind, one scan, 4:2:0, no restart markers, no comments: nothing to skip work by."""
    _, folder, names = make(tmp_path, "0b" * 16, images=2, sizes=())
    data = (folder / names[0]).read_bytes()
    found = Counter()
    place = 2
    while data[place + 1] != 0xDA:
        found[data[place + 1]] += 1
        place += 2 + int.from_bytes(data[place + 2 : place + 4], "big")
    # JFIF header, two quantisation tables, baseline frame, four Huffman tables; no restart interval, no comment.
    assert dict(found) == {0xE0: 1, 0xDB: 2, 0xC0: 1, 0xC4: 4}
    with Image.open(folder / names[0]) as image:
        assert [layer[1:3] for layer in image.layer] == [(2, 2), (1, 1), (1, 1)]


def test_no_two_images_share_texture(tmp_path):
    """Nothing of one image's luma is found again in another at any shift: one decode is no use for the next."""
    _, folder, names = make(tmp_path, "0c" * 16, images=4, sizes=())
    spectra = []
    for name in names:
        with Image.open(folder / name) as image:
            image.draft("L", image.size)
            luma = np.asarray(image.convert("F"))
        luma = luma - luma.mean(axis=0)
        spectra.append(np.fft.rfft2(luma - luma.mean(axis=1, keepdims=True)))
    own = np.fft.irfft2(np.abs(spectra[0]) ** 2).max()
    shared = [float(np.abs(np.fft.irfft2(spectra[0] * other.conj())).max() / own) for other in spectra[1:]]
    assert max(shared) < 0.06
