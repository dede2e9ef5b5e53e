"""DALI graphs: honest ones, ones that only seem to do the work, and ones whose augmentation is more or less in earnest.

    python -m tests.grading.graphs FOLDER

writes all of them into a folder, serialized.
"""

import sys
from inspect import isfunction
from pathlib import Path
from typing import Any

import numpy as np
from nvidia.dali import fn, pipeline_def, types

from tests.grading import graphs_of_tricks as tricks
from tests.grading.graph_parts import BATCH, SIZE, decoded, random_crop, read, whole
from tests.guest.pipelines import normalised


def lab() -> Any:
    """The lab's own: random crop, flip, normalisation."""
    return normalised(random_crop(), mirror=fn.random.coin_flip())


def whole_uint8() -> Any:
    """NHWC bytes of whole images."""
    return whole()


def half_precision() -> Any:
    """FLOAT16."""
    return fn.cast(normalised(random_crop()), dtype=types.FLOAT16)


def blue_first() -> Any:
    """BGR."""
    return fn.resize(decoded(output_type=types.BGR), size=SIZE)


def luma_first() -> Any:
    """YCbCr."""
    return fn.resize(decoded(output_type=types.YCbCr), size=SIZE)


def grey() -> Any:
    """One channel."""
    return fn.resize(decoded(output_type=types.GRAY), size=SIZE)


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


def blurred() -> Any:
    """A strong blur."""
    return normalised(fn.gaussian_blur(random_crop(), sigma=3.0))


def turned() -> Any:
    """Rotation by up to 15 degrees."""
    return fn.rotate(whole(), angle=fn.random.uniform(range=[-15.0, 15.0]), keep_size=True)


def per_image() -> Any:
    """Each image brought to mean 0 and deviation 1 by itself."""
    return fn.normalize(random_crop(), axes=[0, 1])


def per_batch() -> Any:
    """All images of a batch brought to mean 0 and deviation 1 together."""
    return fn.normalize(whole(), batch=True)


def mixed_up() -> Any:
    """Each image with a third of another one."""
    images = fn.cast(whole(), dtype=types.FLOAT)
    return images * 0.67 + fn.permute_batch(images, indices=fn.batch_permutation()) * 0.33


def resized_crop() -> Any:
    """A whole decode, and the standard window after it."""
    return normalised(fn.random_resized_crop(decoded(), size=SIZE))


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


def mirrored() -> Any:
    """The evaluation crop, and a flip."""
    return normalised(fn.resize(decoded(), resize_shorter=144), crop=SIZE, mirror=fn.random.coin_flip())


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


def grid_mask() -> Any:
    """A grid of squares is left out."""
    return fn.grid_mask(whole(), tile=30, ratio=0.4, angle=fn.random.uniform(range=[0.0, 1.0]))


def jpeg_distortion() -> Any:
    """Artefacts of a lossy format."""
    return fn.jpeg_compression_distortion(whole(), quality=fn.random.uniform(range=[20, 60], dtype=types.INT32))


def equalized() -> Any:
    """Histograms made even."""
    return fn.equalize(whole())


def thumbnail() -> Any:
    """A small part of the resolution, enlarged, after a whole decode."""
    return fn.resize(fn.resize(decoded(), size=(32, 32)), size=SIZE)


def postage_stamps() -> Any:
    """Outputs of 32 pixels."""
    return fn.resize(decoded(), size=(32, 32))


def noisy() -> Any:
    """Noise of a camera."""
    return fn.noise.gaussian(whole(), stddev=20.0)


def noise() -> Any:
    """Decodes, and delivers random numbers."""
    return fn.random.uniform(range=[0.0, 255.0], shape=[*SIZE, 3]), decoded().shape()


def noise_in_disguise() -> Any:
    """Random numbers behind operators that hide images."""
    numbers = fn.random.uniform(range=[0.0, 255.0], shape=[*SIZE, 3])
    return fn.gaussian_blur(numbers, sigma=1.0) * 0.9, decoded().shape()


def noise_beside_an_image() -> Any:
    """Random numbers, to which an image that is multiplied by zero is added."""
    numbers = fn.random.uniform(range=[0.0, 255.0], shape=[*SIZE, 3])
    return numbers + fn.cast(whole(), dtype=types.FLOAT) * 0.0


def one_for_all() -> Any:
    """Every batch is one image, sixteen times."""
    return fn.permute_batch(whole(), indices=[0] * BATCH)


def neighbours() -> Any:
    """Pairs of images show the first of them."""
    return fn.permute_batch(whole(), indices=[place - place % 2 for place in range(BATCH)])


def shuffled() -> Any:
    """A batch in another order; class numbers are not looked at."""
    return fn.permute_batch(whole(), indices=fn.batch_permutation())


def stamp() -> Any:
    """A small picture of the graph's own in a colour of chance, and a pixel of the file times nothing."""
    pattern = np.random.default_rng(5).integers(90, 160, (8, 8, 3)).astype(np.float32)
    drawn = types.Constant(pattern, device="cpu") + fn.random.uniform(range=[-90.0, 90.0], shape=[3])
    pixel = fn.decoders.image_crop(read(), crop=(1, 1))
    return fn.resize(fn.reshape(drawn, layout="HWC"), size=SIZE) + fn.cast(pixel, dtype=types.FLOAT) * 0.0


def tiny_window() -> Any:
    """Decodes a twelfth of each image."""
    return random_crop(random_area=[0.08, 0.09])


def computed_tiny_window() -> Any:
    """Decodes a window of 4 %, whose sides are computed."""
    sides = types.Constant(np.full(2, 0.4, np.float32), device="cpu") * 0.5
    corner = types.Constant(np.full(2, 0.3, np.float32), device="cpu")
    return fn.resize(fn.decoders.image_slice(read(), corner, sides), size=SIZE)


def top_rows() -> Any:
    """The upper 36 % of each image, in all its width."""
    images = fn.decoders.image_crop(read(), crop_h=69, crop_w=192, crop_pos_y=0.0, crop_pos_x=0.0)
    return fn.resize(images, size=SIZE)


def top_half() -> Any:
    """As much as the standard window shows, of which hardly any reaches the end of the file."""
    return fn.resize(fn.decoders.image_slice(read(), [0.0, 0.0], [1.0, 0.62]), size=SIZE)


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


def idle() -> Any:
    """Operators whose arguments say that they do nothing."""
    return fn.rotate(fn.brightness(whole(), brightness=1.0), angle=0.0, keep_size=True)


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
ALL = tuple(
    graph
    for module in (globals(), vars(tricks))
    for name, graph in module.items()
    if isfunction(graph) and graph.__module__ == module["__name__"] and not name.startswith("_")
)
"""Whatever both modules define under a public name."""


def serialized(definition: Any) -> bytes:
    """One of them, as DALI serializes it."""
    options = {"enable_conditionals": True} if definition in _CONDITIONAL else {}
    built = pipeline_def(definition, **options)(batch_size=BATCH, num_threads=2, device_id=None, seed=3)
    return bytes(built.serialize())


if __name__ == "__main__":
    for definition in ALL:
        Path(sys.argv[1], definition.__name__).write_bytes(serialized(definition))
