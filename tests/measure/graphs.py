"""DALI graphs: honest ones, ones that only seem to do the work, and ones whose augmentation is more or less in earnest.

    python -m tests.measure.graphs FOLDER

writes all of them into a folder, serialized.
"""

import sys
from collections.abc import Callable
from inspect import isfunction
from pathlib import Path
from typing import Any

import numpy as np
from nvidia.dali import fn, pipeline_def, types

from tests.measure import graphs_of_tricks as tricks
from tests.measure.graph_parts import BATCH, SIZE, decoded, random_crop, read, whole
from tests.sandbox.guest.pipelines import normalised

_OF_ONE_LINE: dict[str, Callable[[], Any]] = {
    # The lab's own: random crop, flip, normalisation.
    "lab": lambda: normalised(random_crop(), mirror=fn.random.coin_flip()),
    # NHWC bytes of whole images.
    "whole_uint8": whole,
    # FLOAT16.
    "half_precision": lambda: fn.cast(normalised(random_crop()), dtype=types.FLOAT16),
    # BGR.
    "blue_first": lambda: fn.resize(decoded(output_type=types.BGR), size=SIZE),
    # YCbCr.
    "luma_first": lambda: fn.resize(decoded(output_type=types.YCbCr), size=SIZE),
    # One channel.
    "grey": lambda: fn.resize(decoded(output_type=types.GRAY), size=SIZE),
    # A strong blur.
    "blurred": lambda: normalised(fn.gaussian_blur(random_crop(), sigma=3.0)),
    # Rotation by up to 15 degrees.
    "turned": lambda: fn.rotate(whole(), angle=fn.random.uniform(range=[-15.0, 15.0]), keep_size=True),
    # Each image brought to mean 0 and deviation 1 by itself.
    "per_image": lambda: fn.normalize(random_crop(), axes=[0, 1]),
    # All images of a batch brought to mean 0 and deviation 1 together.
    "per_batch": lambda: fn.normalize(whole(), batch=True),
    # A whole decode, and the standard window after it.
    "resized_crop": lambda: normalised(fn.random_resized_crop(decoded(), size=SIZE)),
    # The evaluation crop, and a flip.
    "mirrored": lambda: normalised(fn.resize(decoded(), resize_shorter=144), crop=SIZE, mirror=fn.random.coin_flip()),
    # A grid of squares is left out.
    "grid_mask": lambda: fn.grid_mask(whole(), tile=30, ratio=0.4, angle=fn.random.uniform(range=[0.0, 1.0])),
    # Artefacts of a lossy format.
    "jpeg_distortion": lambda: fn.jpeg_compression_distortion(
        whole(), quality=fn.random.uniform(range=[20, 60], dtype=types.INT32)
    ),
    # Histograms made even.
    "equalized": lambda: fn.equalize(whole()),
    # A small part of the resolution, enlarged, after a whole decode.
    "thumbnail": lambda: fn.resize(fn.resize(decoded(), size=(32, 32)), size=SIZE),
    # Outputs of 32 pixels.
    "postage_stamps": lambda: fn.resize(decoded(), size=(32, 32)),
    # Noise of a camera.
    "noisy": lambda: fn.noise.gaussian(whole(), stddev=20.0),
    # Decodes, and delivers random numbers.
    "noise": lambda: (fn.random.uniform(range=[0.0, 255.0], shape=[*SIZE, 3]), decoded().shape()),
    # Every batch is one image, sixteen times.
    "one_for_all": lambda: fn.permute_batch(whole(), indices=[0] * BATCH),
    # Pairs of images show the first of them.
    "neighbours": lambda: fn.permute_batch(whole(), indices=[place - place % 2 for place in range(BATCH)]),
    # A batch in another order; class numbers are not looked at.
    "shuffled": lambda: fn.permute_batch(whole(), indices=fn.batch_permutation()),
    # Decodes a twelfth of each image.
    "tiny_window": lambda: random_crop(random_area=[0.08, 0.09]),
    # As much as the standard window shows, of which hardly any reaches the end of the file.
    "top_half": lambda: fn.resize(fn.decoders.image_slice(read(), [0.0, 0.0], [1.0, 0.62]), size=SIZE),
    # Operators whose arguments say that they do nothing.
    "idle": lambda: fn.rotate(fn.brightness(whole(), brightness=1.0), angle=0.0, keep_size=True),
}


def colours() -> Any:
    """Hue, saturation and brightness at random."""
    images = fn.color_twist(
        random_crop(),
        hue=fn.random.uniform(range=[-40.0, 40.0]),
        saturation=fn.random.uniform(range=[0.2, 1.8]),
        brightness=fn.random.uniform(range=[0.6, 1.4]),
        contrast=0.8,
    )
    return normalised(images)


def mixed_up() -> Any:
    """Each image with a third of another one."""
    images = fn.cast(whole(), dtype=types.FLOAT)
    return images * 0.67 + fn.permute_batch(images, indices=fn.batch_permutation()) * 0.33


def generated_window() -> Any:
    """The standard window, drawn beside the decoder and cut out by it."""
    jpegs = read()
    corner, extent = fn.random_crop_generator(fn.peek_image_shape(jpegs))
    images = fn.decoders.image_slice(
        jpegs, corner, extent, axes=[0, 1], normalized_anchor=False, normalized_shape=False
    )
    return fn.resize(images, size=SIZE)


def computed_shorter() -> Any:
    """Resized to a length of chance, then cropped."""
    images = fn.resize(decoded(), resize_shorter=fn.random.uniform(range=[140.0, 180.0]))
    return normalised(images, crop=SIZE, mirror=fn.random.coin_flip())


def conditional() -> Any:
    """One of two augmentations, by the flip of a coin."""
    images = whole()
    if fn.random.coin_flip(dtype=types.BOOL):
        images = fn.rotate(images, angle=fn.random.uniform(range=[5.0, 15.0]), keep_size=True)
    else:
        images = fn.brightness(images, brightness=0.7)
    return images


def erased() -> Any:
    """A rectangle of chance is left out."""
    anchor = fn.random.uniform(range=[0.0, 0.6], shape=[2])
    return fn.erase(whole(), anchor=anchor, shape=[0.3, 0.3], normalized=True, fill_value=0, axis_names="HW")


def noise_in_disguise() -> Any:
    """Random numbers behind operators that hide images."""
    numbers = fn.random.uniform(range=[0.0, 255.0], shape=[*SIZE, 3])
    return fn.gaussian_blur(numbers, sigma=1.0) * 0.9, decoded().shape()


def noise_beside_an_image() -> Any:
    """Random numbers, to which an image that is multiplied by zero is added."""
    numbers = fn.random.uniform(range=[0.0, 255.0], shape=[*SIZE, 3])
    return numbers + fn.cast(whole(), dtype=types.FLOAT) * 0.0


def stamp() -> Any:
    """A small picture of the graph's own in a colour of chance, and a pixel of the file times nothing."""
    pattern = np.random.default_rng(5).integers(90, 160, (8, 8, 3)).astype(np.float32)
    drawn = types.Constant(pattern, device="cpu") + fn.random.uniform(range=[-90.0, 90.0], shape=[3])
    pixel = fn.decoders.image_crop(read(), crop=(1, 1))
    return fn.resize(fn.reshape(drawn, layout="HWC"), size=SIZE) + fn.cast(pixel, dtype=types.FLOAT) * 0.0


def computed_tiny_window() -> Any:
    """Decodes a window of 4 %, whose sides are computed."""
    sides = types.Constant(np.full(2, 0.4, np.float32), device="cpu") * 0.5
    corner = types.Constant(np.full(2, 0.3, np.float32), device="cpu")
    return fn.resize(fn.decoders.image_slice(read(), corner, sides), size=SIZE)


def top_rows() -> Any:
    """The upper 36 % of each image, in all its width."""
    images = fn.decoders.image_crop(read(), crop_h=69, crop_w=192, crop_pos_y=0.0, crop_pos_x=0.0)
    return fn.resize(images, size=SIZE)


def permuted_number() -> Any:
    """How far one image is turned is said by a number of another one."""
    angle = fn.permute_batch(fn.random.uniform(range=[-15.0, 15.0]), indices=fn.batch_permutation())
    return fn.rotate(whole(), angle=angle, keep_size=True)


def named_files() -> Any:
    """How bright an image is hangs on the name of its file."""
    images = whole()
    name = fn.cast(fn.get_property(images, key="source_info"), dtype=types.FLOAT)
    return fn.brightness(images, brightness=fn.reductions.mean(name) * 0.01)


def all_three() -> Any:
    """Each image is turned, coloured and blurred."""
    images = fn.rotate(whole(), angle=fn.random.uniform(range=[5.0, 15.0]), keep_size=True)
    images = fn.brightness(images, brightness=fn.random.uniform(range=[0.5, 0.8]))
    return fn.gaussian_blur(images, window_size=5, sigma=1.0)


def now_and_then() -> Any:
    """Each of the three for every other image."""
    images = whole()
    if fn.random.coin_flip(dtype=types.BOOL):
        images = fn.rotate(images, angle=fn.random.uniform(range=[5.0, 15.0]), keep_size=True)
    if fn.random.coin_flip(dtype=types.BOOL):
        images = fn.brightness(images, brightness=fn.random.uniform(range=[0.5, 0.8]))
    if fn.random.coin_flip(dtype=types.BOOL):
        images = fn.gaussian_blur(images, window_size=5, sigma=1.0)
    return images


def by_numbers() -> Any:
    """As before, with arguments in place of conditions."""
    angle = fn.random.coin_flip() * fn.random.uniform(range=[5.0, 15.0])
    return fn.rotate(whole(), angle=angle, keep_size=True)


def for_nothing() -> Any:
    """Work on a constant that is multiplied by zero, and on the image itself, multiplied by zero as well."""
    images = fn.cast(whole(), dtype=types.FLOAT)
    constant = fn.reshape(types.Constant(np.ones((1, 1, 3), np.float32), device="cpu"), layout="HWC")
    busy, also = (
        fn.gaussian_blur(fn.rotate(fn.brightness(made, brightness=0.5), angle=15.0, keep_size=True), window_size=3)
        for made in (constant, images)
    )
    return images + busy * 0.0 + also * 0.0


def on_a_thumbnail() -> Any:
    """All three on an image of 20 by 20 pixels, which is enlarged."""
    images = fn.resize(decoded(), size=(20, 20))
    images = fn.brightness(fn.rotate(images, angle=10.0, keep_size=True), brightness=0.6)
    return fn.resize(fn.gaussian_blur(images, window_size=5, sigma=1.0), size=SIZE)


_CONDITIONAL = (conditional, now_and_then, tricks.worked_on_by_luck, tricks.branch_never_taken, tricks.one_in_full)
ALL = _OF_ONE_LINE | {
    name: graph
    for module in (globals(), vars(tricks))
    for name, graph in module.items()
    if isfunction(graph) and graph.__module__ == module["__name__"] and not name.startswith("_")
}
"""Name → graph: whatever both modules define under a public name."""


def serialized(definition: Any) -> bytes:
    """One of them, as DALI serializes it."""
    options = {"enable_conditionals": True} if definition in _CONDITIONAL else {}
    built = pipeline_def(definition, **options)(batch_size=BATCH, num_threads=2, device_id=None, seed=3)
    return bytes(built.serialize())


if __name__ == "__main__":
    for name, definition in ALL.items():
        Path(sys.argv[1], name).write_bytes(serialized(definition))
