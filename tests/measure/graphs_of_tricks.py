"""DALI graphs that would seem to do more than they do: they know when they are tried out, or a reference works more."""

import io
from typing import Any

import numpy as np
from nvidia.dali import fn, types
from PIL import Image

from tests.measure.graph_parts import SIZE, decoded, read, whole


def _constant(values: Any, dtype: Any = np.float32) -> Any:
    return types.Constant(np.array(values, dtype), device="cpu")


def _corner(jpegs: Any, side: int, **options: Any) -> Any:
    corner = fn.decoders.image_crop(jpegs, crop=(side, side), crop_pos_x=0.0, crop_pos_y=0.0, **options)
    return fn.cast(corner, dtype=types.FLOAT)


def _share_of(jpegs: Any, share: Any) -> Any:
    share = fn.reshape(share, shape=[1])
    images = fn.decoders.image_slice(jpegs, _constant([0.0, 0.0]), fn.cat(share, share))
    return fn.resize(fn.cast(images, dtype=types.FLOAT), size=SIZE)


def _of_its_own(jpegs: Any) -> Any:
    """The same picture for every file: a JPEG in the graph, its bytes enlarged by nothing times the file's height."""
    drawn = io.BytesIO()
    Image.fromarray(np.random.default_rng(5).integers(90, 160, (8, 8, 3), np.uint8)).save(drawn, "JPEG")
    nothing = fn.cast(fn.peek_image_shape(jpegs)[0] * 0, dtype=types.UINT8)
    picture = fn.decoders.image(_constant(list(drawn.getvalue()), np.uint8) + nothing)
    return fn.cast(fn.resize(picture, size=SIZE), dtype=types.FLOAT)


def dimmed() -> Any:
    """A picture of the graph's own, as bright as a corner of the file."""
    jpegs = read()
    return fn.brightness(_of_its_own(jpegs), brightness=fn.reductions.mean(_corner(jpegs, 8)) * 0.01)


def whole_beside_a_window() -> Any:
    """A corner of each image; a picture of the graph's own is decoded whole, and multiplied by zero."""
    jpegs = read()
    return fn.resize(_corner(jpegs, 16), size=SIZE) + _of_its_own(jpegs) * 0.0


def two_in_five() -> Any:
    """Of two images in five all is decoded, and of the others a few pixels of their end."""
    jpegs = read()
    whole = fn.cast(fn.random.uniform(range=[0.0, 1.0]) < 0.4, dtype=types.FLOAT)
    share = fn.reshape(0.04 + 0.96 * whole, shape=[1])
    share = fn.cat(share, share)
    return fn.resize(fn.decoders.image_slice(jpegs, 1.0 - share, share), size=SIZE)


def strips() -> Any:
    """The upper 37 % of all rows, and beside them a column of a pixel that reaches the end."""
    jpegs = read()
    top = fn.decoders.image_slice(jpegs, [0.0, 0.0], [1.0, 0.37])
    column = fn.decoders.image_slice(jpegs, [0.0, 0.0], [0.01, 1.0])
    top, column = (fn.cast(fn.resize(part, size=SIZE), dtype=types.FLOAT) for part in (top, column))
    return top + column * 0.01


def _largest_in_the_batch(number: Any) -> Any:
    """A number of one sample that every sample of the batch is told: by the length to which all are padded."""
    length = fn.reshape(fn.cast(number, dtype=types.INT32) + 1, shape=[1])
    return fn.cast(fn.pad(fn.random.uniform(shape=length), axes=[0]).shape()[0], dtype=types.INT32) - 1


def _one_for_the_batch() -> Any:
    first = fn.cast(fn.batch_permutation() == 0, dtype=types.FLOAT)
    return _largest_in_the_batch(first * fn.random.uniform(range=[0.0, 1.0]) * 1000.0)


def whole_by_luck() -> Any:
    """A coin for each batch says whether all of its images are decoded or one pixel of each."""
    tails = fn.cast(_one_for_the_batch() > 300, dtype=types.FLOAT)
    return _share_of(read(), 1.0 - 0.99 * tails)


def worked_on_by_luck() -> Any:
    """A coin for each batch says whether its images are turned, coloured and blurred."""
    images = whole()
    if _one_for_the_batch() < 300:
        images = fn.brightness(fn.rotate(images, angle=10.0, keep_size=True), brightness=0.5)
        images = fn.gaussian_blur(images, window_size=3, sigma=1.0)
    return images


def whole_where_one_is_twice() -> Any:
    """Images are decoded where a batch has the same file twice, as it may when it is tried out."""
    jpegs = read()
    code = fn.reductions.sum(_corner(jpegs, 8))
    mine = fn.cast(fn.cast(code, dtype=types.INT32) == _largest_in_the_batch(code), dtype=types.INT32)
    drawn = fn.cast(fn.random.uniform(range=[1.0, 100000.0]), dtype=types.INT32) * mine
    twice = _largest_in_the_batch(mine * fn.cast(drawn < _largest_in_the_batch(drawn), dtype=types.INT32))
    return _share_of(jpegs, 0.01 + 0.99 * fn.cast(twice > 0, dtype=types.FLOAT))


def led_by_one() -> Any:
    """All images of a batch show the mean of one of them."""
    images = fn.cast(whole(), dtype=types.FLOAT)
    return images * 0.0 + fn.cast(_largest_in_the_batch(fn.reductions.mean(images) * 100.0), dtype=types.FLOAT)


def _told_by_speed(jpegs: Any) -> Any:
    """Whether a fast decode of a corner differs from an exact one: of a JPEG it does, and of its twin it does not."""
    exact, fast = (_corner(jpegs, 16, use_fast_idct=fast) for fast in (False, True))
    return fn.reductions.max(fn.cast(exact != fast, dtype=types.FLOAT))


def whole_unless_jpeg() -> Any:
    """Of a JPEG one pixel is decoded, of another picture all of it, and that is multiplied by zero."""
    jpegs = read()
    return fn.resize(_corner(jpegs, 16), size=SIZE) + _share_of(jpegs, 1.0 - 0.99 * _told_by_speed(jpegs)) * 0.0


def drowned_unless_jpeg() -> Any:
    """The same, and the pixel is what is shown, beside numbers so large that any two images are much alike."""
    jpegs = read()
    large = _constant(np.concatenate([np.zeros((64, 128, 3)), np.full((64, 128, 3), 1e5)]))
    return _share_of(jpegs, 1.0 - 0.99 * _told_by_speed(jpegs)) + large


def dark_if_jpeg() -> Any:
    """A JPEG's image is black."""
    jpegs = read()
    images = fn.cast(fn.resize(fn.decoders.image(jpegs), size=SIZE), dtype=types.FLOAT)
    return images * (1.0 - fn.reshape(_told_by_speed(jpegs), shape=[1]))


def padded_unless_jpeg() -> Any:
    """What is no JPEG is padded to 1200 by 1200 pixels, and cut back."""
    jpegs = read()
    images = fn.resize(fn.decoders.image(jpegs), size=SIZE)
    side = fn.reshape(1200 - fn.cast(1072 * _told_by_speed(jpegs), dtype=types.INT32), shape=[1])
    return _cut_back(fn.pad(images, axes=[0, 1], shape=fn.cat(side, side)))


def _cut_back(images: Any) -> Any:
    return fn.slice(images, _constant([0, 0], np.int32), _constant(SIZE, np.int32), axes=[0, 1])


def tall_or_wide() -> Any:
    """Padded to a tall or a wide strip, whose mean sides make a large square, and cut back."""
    coin = fn.cast(fn.random.coin_flip(), dtype=types.INT32)
    return _cut_back(fn.pad(whole(), axes=[0, 1], shape=fn.stack(128 + 2272 * coin, 2400 - 2272 * coin)))


def tall_or_wide_crop() -> Any:
    """The same by a crop that pads."""
    coin = fn.cast(fn.random.coin_flip(), dtype=types.FLOAT)
    sides = {"crop_h": 128.0 + 2272.0 * coin, "crop_w": 2400.0 - 2272.0 * coin}
    return _cut_back(fn.crop(whole(), **sides, crop_pos_x=0.0, crop_pos_y=0.0, out_of_bounds_policy="pad"))


def padded_again_and_again() -> Any:
    """Padded and cut back, four times at full size."""
    images = decoded()
    for _ in range(4):
        none = fn.cast(fn.random.uniform(range=[0.0, 0.1]), dtype=types.INT32)
        images = fn.pad(images, axes=[0], shape=fn.reshape(none, shape=[1]) + 300)
        images = fn.slice(images, _constant([0], np.int32), fn.reshape(none, shape=[1]) + 180, axes=[0])
    return fn.resize(images, size=SIZE)


def branch_never_taken() -> Any:
    """A costly resize in a branch that no image takes, and the nearest pixel in the other one."""
    images = decoded()
    if fn.random.coin_flip(probability=0.0, dtype=types.BOOL):
        images = fn.crop(fn.resize(images, size=(256, 256), interp_type=types.INTERP_LANCZOS3), crop=SIZE)
    else:
        images = fn.resize(images, size=SIZE, interp_type=types.INTERP_NN)
    return images


def enlarged_by_nearest() -> Any:
    """A filter for making images smaller, and the nearest pixel for making them larger."""
    options = {"min_filter": types.INTERP_LANCZOS3, "mag_filter": types.INTERP_NN}
    return fn.resize(decoded(), size=(512, 512), **options)


def wired_filter() -> Any:
    """One filter is named, and another one computed."""
    nearest = fn.cast(_constant(0, np.int32), dtype=types.INTERP_TYPE)
    options = {"interp_type": types.INTERP_LANCZOS3, "min_filter": nearest, "mag_filter": nearest}
    return fn.resize(decoded(), size=(512, 512), **options)


def filtered_small() -> Any:
    """One pixel from a filter, which is made zero, comes first; the image itself has the nearest pixels."""
    images = decoded()
    small = fn.resize(images, size=(1, 1), interp_type=types.INTERP_LANCZOS3)
    return fn.cast(small // 256, dtype=types.UINT8) | fn.resize(images, size=(512, 512), interp_type=types.INTERP_NN)


def warped_large() -> Any:
    """A filter makes images small, and a warp takes the nearest pixel to make them large."""
    small = fn.resize(decoded(), size=(16, 16), interp_type=types.INTERP_LANCZOS3)
    matrix = [0.03125, 0.0, 0.0, 0.0, 0.03125, 0.0]
    return fn.warp_affine(small, matrix=matrix, size=(512, 512), interp_type=types.INTERP_NN)


def warped_small() -> Any:
    """A warp in the place of a resize."""
    matrix = [1.5, 0.0, 0.0, 0.0, 1.5, 0.0]
    return fn.warp_affine(decoded(), matrix=matrix, size=SIZE, interp_type=types.INTERP_NN)


def fused_crop() -> Any:
    """Resizes no more than the window that is cut out, by an operator that does both."""
    return fn.resize_crop_mirror(decoded(), resize_shorter=480, crop=SIZE)


def framed() -> Any:
    """Small images, made of frames of a video of one image, within a large border."""
    frames = fn.expand_dims(decoded(), axes=[0], new_axis_names="F")
    return fn.crop(fn.squeeze(fn.resize(frames, size=(16, 16)), axes=[0]), crop=(512, 512), out_of_bounds_policy="pad")


def one_row() -> Any:
    """One row of the image, repeated by an operator on numbers."""
    rows = fn.resize(decoded(), size=(8, 512))
    return rows[0] | _constant(np.zeros((512, 1, 1)), np.uint8)


def mean_colour() -> Any:
    """The mean colour of the image, as large as one likes."""
    mean = fn.cast(fn.reductions.mean(decoded(), axes=[0, 1]), dtype=types.UINT8)
    return mean | fn.zeros(shape=[512, 512, 1], dtype=types.UINT8)


def grey_threefold() -> Any:
    """Decoded in grey, and given out in three equal channels."""
    images = fn.resize(decoded(output_type=types.GRAY), size=SIZE)
    return fn.cat(images, images, images, axis=2)


def turned_into_a_stamp() -> Any:
    """A whole image is turned, of which four by four pixels are kept."""
    images = decoded()
    small = fn.warp_affine(images, matrix=[1.0, 0.1, 0.0, 0.0, 1.0, 0.0], size=(4, 4))
    small, images = (fn.cast(fn.resize(part, size=SIZE), dtype=types.FLOAT) for part in (small, images))
    return images + small * 0.01


def _in_earnest(images: Any) -> Any:
    images = fn.gaussian_blur(fn.brightness(images, brightness=0.5), window_size=3, sigma=1.0)
    return fn.rotate(images, angle=30.0, keep_size=True)


def one_in_full() -> Any:
    """All three on one image in sixteen, and on three by three pixels of the others."""
    images = fn.cast(whole(), dtype=types.FLOAT)
    images = images + _in_earnest(images[0:3, 0:3])[1:2, 1:2] * 0.01
    if fn.random.uniform(range=[0.0, 1.0]) < 0.06:
        images = _in_earnest(images)
    return images


def one_channel() -> Any:
    """All three on one channel of each image."""
    images = fn.cast(whole(), dtype=types.FLOAT)
    return images + _in_earnest(images[:, :, 0:1]) * 0.01
