"""Every forgery is told from a decode by its pixels, and no honest loader is taken for one."""

import numpy as np
import pytest

from grader_service.held_out import reference
from grader_service.held_out.audit import audit_image
from grader_service.model.measurement import ContentKind
from tests.held_out.factories import a_shard, audited, deliver
from tests.held_out.forgeries import FORGED, HONEST, Source, honest

FULL, REDUCED, RENDERED, COARSE, UNKNOWN = ContentKind
CAUGHT = {
    "half scale": {REDUCED},
    "half scale, nearest": {REDUCED},
    "half scale, sharpened": {REDUCED},
    # Noise hides what coarser bands there are.
    "half scale, noise": {REDUCED, RENDERED},
    "quarter scale": {REDUCED},
    # Little more than a mean colour is left in a small crop.
    "eighth scale": {REDUCED, RENDERED, UNKNOWN},
    "drawn": {RENDERED},
    "recoloured": {RENDERED},
    "warped": {RENDERED},
    "top half mirrored": {RENDERED},
    "three quarters": {RENDERED},
    "flat": {RENDERED},
    "noise": {UNKNOWN},
}
# Source size, output shape, random crops.
SETTINGS = [
    ((500, 375), (224, 224), False),
    ((500, 375), (224, 224), True),
    ((320, 240), (224, 224), True),
    ((250, 200), (200, 250), False),
]


@pytest.fixture(scope="module")
def shards():
    """Eight images of each size, and one to copy from."""
    return {size: a_shard(size, 9)[1] for size in {setting[0] for setting in SETTINGS} | {(1600, 1200)}}


@pytest.mark.parametrize("name", HONEST)
@pytest.mark.parametrize(("size", "shape", "crops"), SETTINGS)
def test_honest_decodes_are_full(shards, name, size, shape, crops):
    """Whatever the resize, a full decode is known as one, in every block of every image."""
    audits = audited(deliver(HONEST[name], shards[size], size, shape, crops=crops), shards[size])
    assert len(audits) == 8
    assert {audit.kind for audit in audits} == {FULL}
    assert min(audit.texture for audit in audits) > 0.7
    assert min(audit.worst_block for audit in audits) > 0.6


@pytest.mark.parametrize("name", FORGED)
@pytest.mark.parametrize(("size", "shape", "crops"), SETTINGS[:3])
def test_forgeries_are_caught(shards, name, size, shape, crops):
    """What was not decoded in full never passes, and is called by its name."""
    audits = audited(deliver(FORGED[name], shards[size], size, shape, crops=crops), shards[size])
    kinds = {audit.kind for audit in audits}
    if name in {"top half mirrored", "three quarters"} and crops:
        # A crop that lies in the decoded part is a crop of a decode.
        assert sum(audit.kind is RENDERED for audit in audits) >= 4
        assert kinds <= {RENDERED, FULL, REDUCED}
        return
    assert kinds <= CAUGHT[name]
    if name not in {"top half mirrored", "three quarters"}:
        assert max(audit.texture for audit in audits) < 0.35
    assert max(audit.worst_block for audit in audits) < 0.25


@pytest.mark.parametrize("name", HONEST)
def test_small_outputs_of_large_images_pass(shards, name):
    """An output too small for the finest band is compared in a coarser one, and says so."""
    size = (1600, 1200)
    files = shards[size][:5]
    audits = audited(deliver(HONEST[name], files, size, (224, 224)), files)
    assert {audit.kind for audit in audits} <= {FULL, COARSE}
    assert min(audit.texture for audit in audits) > 0.6
    if name == "bilinear":
        assert {audit.kind for audit in audits} == {COARSE}
        assert all(audit.band > 0 for audit in audits)


@pytest.mark.parametrize("name", ["eighth scale", "drawn", "recoloured", "top half mirrored"])
def test_small_outputs_prove_something_still(shards, name):
    """Drawn, copied and half decoded images do not pass as small outputs either."""
    size = (1600, 1200)
    files = shards[size][:5]
    audits = audited(deliver(FORGED[name], files, size, (224, 224)), files)
    assert not {audit.kind for audit in audits} & {FULL, COARSE}


def audits_of_a_crop(box):
    """Of an image of 500 by 375 pixels: as it is, and mirrored."""
    _, (file, other) = a_shard((500, 375), 2)
    pixels = honest()(Source(file, other, (500, 375)), box, (224, 224), np.random.default_rng(0))
    return audited([pixels, pixels[:, ::-1]], [file, file])


def test_the_crop_is_found():
    """Box, area and mirroring are those of the crop, to a tenth of a pixel."""
    box = (103, 58, 103 + 240, 58 + 200)
    plain, mirrored = audits_of_a_crop(box)
    assert plain.box == pytest.approx(box, abs=0.1)
    assert mirrored.box == pytest.approx(box, abs=0.1)
    assert (plain.mirrored, mirrored.mirrored) == (False, True)
    assert plain.area == pytest.approx(240 * 200 / (500 * 375), rel=0.005)
    assert plain.bottom == pytest.approx((58 + 200) / 375, abs=0.001)


@pytest.mark.parametrize(
    "crop", [(1, 1, 499, 375), (0, 0, 499, 374), (2, 1, 498, 374), (3, 2, 497, 373), (0, 3, 496, 375)]
)
def test_a_crop_of_nearly_everything_is_no_reduced_decode(crop):
    """A crop that leaves out a pixel or two is found where it is, and not taken for the whole frame."""
    for audit in audits_of_a_crop(crop):
        assert audit.kind is FULL
        assert audit.texture > 0.9
        assert audit.box == pytest.approx(crop, abs=0.3)


@pytest.mark.parametrize(
    "change",
    [
        lambda x: x.astype(np.float32) / 255,
        lambda x: (x / 255).astype(np.float16),
        lambda x: ((x - np.array([123.675, 116.28, 103.53])) / np.array([58.395, 57.12, 57.375])).astype(np.float32),
        lambda x: x[..., ::-1],
        lambda x: np.moveaxis(x, 2, 0),
        lambda x: np.moveaxis(((x / 127.5) - 1).astype(np.float16), 2, 0),
        lambda x: x.mean(axis=2, keepdims=True).astype(np.uint8),
    ],
    ids=["float32", "float16", "imagenet", "bgr", "nchw", "nchw float16", "grey"],
)
def test_layout_and_scale_do_not_matter(change):
    """Type, normalisation, channel order and layout change nothing."""
    size = (500, 375)
    _, files = a_shard(size, 3)
    pixels = [change(image) for image in deliver(honest(), files, size, crops=True)]
    assert {audit.kind for audit in audited(pixels, files)} == {FULL}


@pytest.mark.parametrize("degrees", [-15, 10])
def test_rotated_images_are_unknown(degrees):
    """Rotation is not looked for, and not taken for a forgery."""
    from PIL import Image

    size = (500, 375)
    _, files = a_shard(size, 5)
    pixels = [
        np.asarray(Image.fromarray(image).rotate(degrees, Image.Resampling.BILINEAR))
        for image in deliver(honest(), files, size)
    ]
    assert {audit.kind for audit in audited(pixels, files)} == {UNKNOWN}


@pytest.mark.parametrize(
    "delivered",
    [
        np.zeros((224, 224), np.uint8),
        np.zeros((4, 224, 3), np.uint8),
        np.full((224, 224, 3), np.nan, np.float32),
        np.zeros((224, 224, 7), np.uint8),
    ],
    ids=["two axes", "four rows", "not a number", "seven channels"],
)
def test_what_is_no_image_is_unknown(delivered):
    """Arrays that cannot be images are answered, not raised over."""
    _, files = a_shard((120, 100), 1)
    assert audit_image(delivered, reference.decode(files[0])).kind is UNKNOWN
