"""Mean colours tell which image came, through any crop and scale; where they cannot, that is said."""

import io

import numpy as np
import pytest
from PIL import Image

from grader_service.held_out.identity import Identifier, Normalisation
from grader_service.held_out.plan import MAX_IMAGES, ShardPlan, codes, marks, new_seed, plan_shard, steps
from tests.held_out.factories import a_shard, deliver
from tests.held_out.forgeries import honest

SCALES = {
    "uint8": ((0, 0, 0), (1, 1, 1)),
    "unit": ((0, 0, 0), (255, 255, 255)),
    "imagenet": ((123.675, 116.28, 103.53), (58.395, 57.12, 57.375)),
    "centred": ((127.5, 127.5, 127.5), (127.5, 127.5, 127.5)),
}


def received(plan, picks, scale=((0, 0, 0), (1, 1, 1)), order=(0, 1, 2), seed=0):
    """Means as delivered: luma wanders with the crop by a level, chroma by a tenth."""
    rng = np.random.default_rng(seed)
    wander = rng.normal(0, 1.0, (len(picks), 1)) + rng.normal(0, 0.1, (len(picks), 3))
    return ((codes(plan)[picks] + wander)[:, order] - np.array(scale[0])) / np.array(scale[1])


@pytest.mark.parametrize("images", [64, 512, MAX_IMAGES])
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0)])
def test_ordinary_scales_are_recognised(images, scale, order):
    """Sixty-four images of any shard are named without an error, whatever the normalisation and channel order."""
    plan = plan_shard("0f" * 16, (), images)
    picks = np.random.default_rng(1).permutation(images)[:64]
    found = Identifier(plan).identify_means(received(plan, picks, SCALES[scale], order))
    assert found.problem is None
    assert (found.ids == picks).all()


@pytest.mark.parametrize("images", [64, 128, 512, 2048])
def test_unknown_scales_are_estimated(images):
    """A normalisation that nobody uses is found from the set, and never taken for a neighbouring one."""
    for seed in range(4):
        plan = plan_shard(f"{seed:032x}", (), images)
        picks = np.random.default_rng(seed).permutation(images)[: max(64, images // 4)]
        odd = ((90 + seed, 140, 101), (47, 52 - seed, 49.5))
        found = Identifier(plan).identify_means(received(plan, picks, odd, (2, 1, 0), seed))
        assert found.problem is None
        assert (found.ids == picks).all()
        assert found.normalisation.order == (2, 1, 0)


def test_a_few_images_of_a_large_shard_are_never_named_wrongly():
    """Where 64 of 8192 codes leave the scale open, all are unknown; a wrong scale is never taken for the right one."""
    for seed in range(6):
        plan = plan_shard(f"{seed:032x}", (), MAX_IMAGES)
        picks = np.random.default_rng(seed).permutation(MAX_IMAGES)[:64]
        found = Identifier(plan).identify_means(received(plan, picks, ((90, 140, 101), (47, 52, 49.5)), seed=seed))
        assert (found.ids == picks).mean() > 0.95 or (found.problem == "colours_changed" and (found.ids == -1).all())


def test_a_given_normalisation_is_taken():
    """With the scale known one image is enough."""
    plan = plan_shard("0a" * 16, (), 512)
    scale = SCALES["imagenet"]
    normalisation = Normalisation(mean=scale[0], std=scale[1])
    found = Identifier(plan, normalisation=normalisation).identify_means(received(plan, [77], scale))
    assert found.ids.tolist() == [77]


@pytest.mark.parametrize(
    ("size", "crops", "stride"), [((500, 375), True, 1), ((160, 120), False, 1), ((500, 375), True, 8)]
)
def test_real_pixels_are_named(size, crops, stride):
    """Decoded, cropped from 8 % of the area upwards, mirrored and resized images are all named.

    One pixel in sixty-four is enough.
    """
    plan, files = a_shard(size, 97)
    images = deliver(honest(), files, size, crops=crops)
    means = np.array([image[::stride, ::stride].mean(axis=(0, 1)) for image in images])
    found = Identifier(plan).identify_means(means)
    assert (found.ids == np.arange(96)).all()


OTHER_COLOURS = {
    "grey": (
        "no_colour",
        lambda plan: np.repeat(received(plan, np.arange(512)).mean(axis=1, keepdims=True), 3, axis=1),
    ),
    "changed image by image": (
        "colours_changed",
        lambda plan: received(plan, np.arange(512)) * np.random.default_rng(2).uniform(0.6, 1.4, (512, 3)),
    ),
    "from elsewhere": ("colours_changed", lambda _: np.random.default_rng(0).uniform(0, 255, (256, 3))),
    "an expanded tensor": ("colours_changed", lambda _: np.full((128, 3), [3.0, 0.2, -7.0])),
}


@pytest.mark.parametrize(("problem", "means"), OTHER_COLOURS.values(), ids=OTHER_COLOURS)
def test_colours_that_are_not_the_shards_name_nothing(problem, means):
    """They are not guessed at, and the reason is given, without a complaint of the numerics."""
    plan = plan_shard("0b" * 16, (), 512)
    found = Identifier(plan).identify_means(means(plan))
    assert found.problem == problem
    assert (found.ids == -1).all()


def test_noise_is_not_one_image_over_and_over():
    """Noise has nearly one mean colour, which an ordinary scale may put on a code by chance; it names no image."""
    rng = np.random.default_rng(5)
    for number in range(12):
        plan = plan_shard(f"{number:02x}" * 16, (), 2048)
        on_a_code = codes(plan)[number] + rng.normal(0, 0.05, (256, 3))
        found = Identifier(plan).identify_means(on_a_code)
        assert found.problem == "colours_changed"
        assert (found.ids == -1).all()


def test_what_is_not_finite_is_unknown():
    """A mean that is no number is one unknown image; nothing but such means is no images."""
    plan = plan_shard("0d" * 16, (), 64)
    means = received(plan, np.arange(64))
    means[3] = np.nan
    found = Identifier(plan).identify_means(means)
    assert found.ids[3] == -1
    assert (np.delete(found.ids, 3) == np.delete(np.arange(64), 3)).all()
    assert Identifier(plan).identify_means(np.full((4, 3), np.inf)).problem == "no_images"


@pytest.mark.parametrize("images", [16, 512, 4096, MAX_IMAGES])
def test_codes_differ_by_more_than_decoders_do(images):
    """No two codes of a shard are the same, and one level of chroma more or less is still nearest to its own."""
    plan = ShardPlan("0e" * 16, ((96, 96),) * images)
    colours = marks(plan).astype(int)
    assert len(np.unique(colours, axis=0)) == images
    luma, chroma = steps(plan)
    assert chroma >= 3
    assert luma >= 9
    identifier = Identifier(plan, normalisation=Normalisation())
    for off in ([1.402, -0.714, 0.0], [0.0, -0.344, 1.772], [-1.402, 0.714, 0.0], [0.0, 0.344, -1.772], [2, 2, 2]):
        assert (identifier.identify_means(codes(plan) + np.array(off)).ids == np.arange(images)).all()


def test_codes_are_what_a_decoder_gives():
    """The colour of a decoded image lies within half a level of its code, without clipped pixels."""
    plan, files = a_shard((500, 375), 12)
    for code, jpeg in zip(codes(plan), files, strict=True):
        pixels = np.asarray(Image.open(io.BytesIO(jpeg)))
        assert pixels.mean(axis=(0, 1)) == pytest.approx(code, abs=0.6)
        assert ((pixels == 0) | (pixels == 255)).mean() < 0.001


def test_too_many_images_are_refused():
    """There are 8192 colours."""
    with pytest.raises(ValueError, match="at most 8192"):
        plan_shard(new_seed(), (), MAX_IMAGES + 1)
