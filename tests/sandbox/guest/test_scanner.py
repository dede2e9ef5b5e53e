"""The scanner's look at one file and one folder: what is complete counts, whatever follows it."""

import io
import itertools
import os
import signal
import time

import numpy as np
import pytest
from PIL import Image, ImageDraw

from sandbox.guest.trusted import scanner
from sandbox.guest.trusted.jpeg_structure import structure
from sandbox.guest.trusted.scanner import Caps, inspect_file, saved_again, scan


def jpeg(image, **options):
    """The bytes of the image's file."""
    out = io.BytesIO()
    image.save(out, "JPEG", **options)
    return out.getvalue()


def picture(size=(48, 64), **options):
    return jpeg(Image.fromarray(noise(0, size)), **options)


@pytest.mark.parametrize("options", [{}, {"progressive": True}, {"subsampling": 0}, {"restart_marker_rows": 1}])
@pytest.mark.parametrize("tail", [b"", bytes(100_000), b"\xff\xd8ftypmp4" + b"\xff" * 70_000])
def test_a_complete_picture_counts_whatever_follows_it(tmp_path, options, tail):
    """Motion photos carry a film after the picture's end, cameras padding."""
    path = tmp_path / "a.jpg"
    path.write_bytes(picture(**options) + tail)
    assert "reason" not in inspect_file(os.fsencode(path), Caps())


@pytest.mark.parametrize("size", [(32, 32), (40, 40), (640, 480), (4000, 3000)])
def test_a_picture_of_one_colour_is_not_starved(size):
    """The shortest data that a real encoder writes are longer than the bound."""
    assert structure(jpeg(Image.new("RGB", size, (128, 128, 128)), quality=30, optimize=True)) == (True, False)


@pytest.mark.parametrize("mode", ["L", "RGB", "CMYK"])
@pytest.mark.parametrize(
    "options", [{}, {"optimize": True}, {"progressive": True}, {"restart_marker_blocks": 3}], ids=str
)
@pytest.mark.parametrize("subsampling", [0, 1, 2])
def test_encoders_of_all_kinds_write_enough(mode, options, subsampling):
    """One colour with the tables of its own, the shortest that there is, and its opposite."""
    for number, quality in itertools.product((0, 1), (1, 50, 100)):
        pixels = np.random.default_rng(3).integers(0, 1 + 254 * number, (33, 47, len(mode)), dtype=np.uint8)
        image = Image.fromarray(pixels.squeeze(), mode)
        assert structure(jpeg(image, quality=quality, subsampling=subsampling, **options)) == (True, False)


@pytest.mark.parametrize("share", [0.05, 0.5, 0.99])
def test_a_picture_that_is_cut_off_is_truncated(tmp_path, share):
    """With or without zeros in the place of what is missing."""
    data = picture()
    start = data.rindex(b"\xff\xda")
    cut = data[: start + int((len(data) - start) * share)]
    for tail in (b"", bytes(100_000)):
        path = tmp_path / "a.jpg"
        path.write_bytes(cut + tail)
        assert inspect_file(os.fsencode(path), Caps())["reason"] == "truncated"


@pytest.mark.parametrize("size", [(144, 192), (64, 48)])
def test_an_end_alone_makes_no_picture(tmp_path, size):
    """Thirty bytes of data and then the end: libjpeg would invent all the rest."""
    data = picture(size=size)
    start = data.rindex(b"\xff\xda")
    path = tmp_path / "a.jpg"
    path.write_bytes(data[: start + 44] + b"\xff\xd9")
    assert structure(path.read_bytes()) == (True, True)
    assert inspect_file(os.fsencode(path), Caps())["reason"] == "truncated"


def test_an_end_inside_a_thumbnail_is_not_the_pictures():
    """Segments are skipped by their length."""
    thumbnail = picture(size=(16, 16))
    whole = picture()
    segment = b"\xff\xe1" + (len(thumbnail) + 2).to_bytes(2, "big") + thumbnail
    start = whole.rindex(b"\xff\xda")
    assert not structure(whole[:2] + segment + whole[2 : start + 200]).ended
    assert structure(whole[:2] + segment + whole[2:]).ended


TORN = (
    *(b"", b"\xff", b"\xff\xd8", b"\xff\xd8\xff", b"\xff\xd8\xff\xda", b"\xff\xd8\xff\xda\x00"),
    b"\xff\xd8\xff\xc0\x00\x03",
    b"\xff\xd8" + b"\xff" * 100_000,
    b"\xff\xd8\xff\xda\x00\x02" + b"\xff\x00" * 100_000,
    b"\xff\xd8\xff\xe0\x00\x00" * 9,
)


@pytest.mark.parametrize("data", TORN, ids=range(len(TORN)))
def test_torn_structures_have_no_end(data):
    """However they are torn, and in linear time."""
    assert structure(data) == (False, False)


def test_linked_folders_are_named(tmp_path):
    """They are not followed, and whoever made them hears of it."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "a.jpg").write_bytes(picture())
    top = tmp_path / "dataset"
    top.mkdir()
    (top / "linked").symlink_to(elsewhere)
    (top / "round").symlink_to("round")
    found = scan(str(top), [str(tmp_path)], Caps())
    assert (found["distinct"], found["rejected"]) == (0, {"symlink": 1})


def noise(number, size=(224, 224)):
    return np.random.default_rng(number).integers(0, 256, (*size, 3), dtype=np.uint8)


def enlarged(number, size):
    return Image.fromarray(noise(number, (9, 9))).resize(size)


def gradient(number):
    ramp = np.linspace(number, 255 - number, 96).astype(np.uint8)
    return Image.fromarray(
        np.dstack([np.tile(ramp, (96, 1)), np.tile(ramp[:, None], (1, 96)), np.full((96, 96), 90, np.uint8)])
    )


def grain(number):
    ramp = np.linspace(60, 200, 96)[None, :, None]
    return Image.fromarray((ramp + np.random.default_rng(number).normal(0, 9, (96, 96, 3))).astype(np.uint8))


def shape(number):
    red, green, blue = (number * step % 256 for step in (37, 91, 13))
    card = Image.new("RGB", (96, 96), (red, green, blue))
    ImageDraw.Draw(card).ellipse((20, 20, 40 + number // 2, 70), fill=(green, blue, 255 - red))
    return card


def card(number):
    return Image.new("RGB", (96, 96), tuple(number * step % 256 for step in (37, 91, 13)))


SETS = {
    "photos": (lambda number: (enlarged(number, (96, 64)), 75), (0, 0)),
    "noise": (lambda number: (Image.fromarray(noise(number, (96, 96))), 75), (0, 0)),
    "gradients": (lambda number: (gradient(number), 75), (0, 0)),
    "one gradient, other grain": (lambda number: (grain(number), 75), (0, 0)),
    "shapes": (lambda number: (shape(number), 75), (0, 0)),
    "cards": (lambda number: (card(number), 75), (100, 0)),
    "qualities": (lambda number: (enlarged(0, (96, 64)), number + 1), (0, 60)),
    "sizes": (lambda number: (enlarged(0, (224, 168)).resize((64 + 2 * number, 50 + 2 * number)), 75), (0, 60)),
}


@pytest.mark.parametrize("name", SETS)
def test_one_picture_saved_again_and_flat_cards_are_told_from_honest_sets(tmp_path, name):
    """Noise, gradients and shapes are neither, however alike they are; most forms of one picture are seen."""
    make, (flat, again) = SETS[name]
    for number in range(100):
        image, quality = make(number)
        image.save(tmp_path / f"{number}.jpg", quality=quality)
    found = scan(str(tmp_path), [str(tmp_path)], Caps())
    assert found["distinct"] > 90
    assert found["flat"] == min(flat, found["distinct"])
    assert again <= found["one_picture"] <= (found["distinct"] if again else 25)


@pytest.mark.parametrize("mode", ["L", "RGB", "CMYK"])
def test_pictures_of_every_mode_have_a_look(tmp_path, mode):
    """Grey, colour and print alike."""
    Image.fromarray(noise(0)).convert(mode).save(tmp_path / "a.jpg")
    seen = inspect_file(os.fsencode(tmp_path / "a.jpg"), Caps())
    assert (len(bytes.fromhex(seen["look"])), seen["flat"]) == (64, False)


def test_an_empty_set_looks_like_nothing():
    """No images, no middle."""
    assert saved_again([]) == 0


def test_a_file_that_ends_the_decoder_costs_no_other_one(tmp_path, monkeypatch):
    """Two processes decode; each begins anew behind such a file, and what the others are stays with their paths."""
    sizes = {f"{number:02}.jpg": (40 + number, 33) for number in range(20)}
    for number, (name, size) in enumerate(sizes.items()):
        Image.fromarray(noise(number, size[::-1])).save(tmp_path / name)
    broken = {"00.jpg", "07.jpg", "08.jpg", "10.jpg", "19.jpg"}
    plain = scanner.inspect_file

    def inspect(path, caps):
        if os.path.basename(path).decode() in broken:
            os.kill(os.getpid(), signal.SIGSEGV)
        return plain(path, caps)

    monkeypatch.setattr(scanner, "inspect_file", inspect)
    found = scan(str(tmp_path), [str(tmp_path)], Caps())
    assert found["rejected"] == {"decoder_crashed": len(broken)}
    assert {os.path.basename(example["path"]) for example in found["examples"]} == broken
    seen = sorted((entry["width"], entry["height"]) for entry in found["sizes"])
    assert seen == sorted(size for name, size in sizes.items() if name not in broken)
    assert found["distinct"] == len(sizes) - len(broken)


def test_a_slow_file_of_one_process_costs_none_of_the_other(tmp_path, monkeypatch):
    """What is decoded may lie unread for longer than any file may take to decode."""
    for number in range(180):
        (tmp_path / f"{number:03}.jpg").write_bytes(b"not looked at")
    slow = tmp_path / "slow"  # whichever process comes first, for its first files
    left = itertools.count(12, -1)

    def inspect(path, caps):
        if not slow.exists():
            slow.write_text(str(os.getpid()))
        if slow.read_text() == str(os.getpid()) and next(left) > 0:
            time.sleep(0.3)
        return {"reason": "long" * 250}

    monkeypatch.setattr(scanner, "inspect_file", inspect)
    monkeypatch.setattr(scanner, "FILE_S", 1)
    assert scan(str(tmp_path), [str(tmp_path)], Caps())["rejected"] == {"long" * 250: 180}
