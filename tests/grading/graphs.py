"""Writes serialized DALI graphs into a folder: honest ones, and ones that deliver less than they read."""

import sys
from pathlib import Path
from typing import Any

from nvidia.dali import fn, pipeline_def, types

SIZE = (224, 224)


def _read() -> Any:
    jpegs, labels = fn.readers.file(files=["/any.jpg"], random_shuffle=True, name="Reader")
    return jpegs, labels


def _normalised(images: Any, **options: Any) -> Any:
    return fn.crop_mirror_normalize(
        images,
        dtype=types.FLOAT,
        output_layout="CHW",
        mean=[123.7, 116.3, 103.5],
        std=[58.4, 57.1, 57.4],
        **options,
    )


def _random_crop(**options: Any) -> Any:
    jpegs, _ = _read()
    return fn.resize(fn.decoders.image_random_crop(jpegs, **options), size=SIZE)


def _whole() -> Any:
    jpegs, _ = _read()
    return fn.resize(fn.decoders.image(jpegs), size=SIZE)


def lab() -> Any:
    """The lab's own: random crop, flip, normalisation."""
    return _normalised(_random_crop(), mirror=fn.random.coin_flip())


def whole_uint8() -> Any:
    """NHWC bytes of whole images."""
    return _whole()


def half_precision() -> Any:
    """FLOAT16."""
    return fn.cast(_normalised(_random_crop()), dtype=types.FLOAT16)


def blue_first() -> Any:
    """BGR."""
    jpegs, _ = _read()
    return fn.resize(fn.decoders.image(jpegs, output_type=types.BGR), size=SIZE)


def colours() -> Any:
    """Hue, saturation and brightness at random."""
    images = fn.color_twist(
        _random_crop(),
        hue=fn.random.uniform(range=[-40.0, 40.0]),
        saturation=fn.random.uniform(range=[0.2, 1.8]),
        brightness=fn.random.uniform(range=[0.6, 1.4]),
        contrast=0.8,
    )
    return _normalised(images)


def grey() -> Any:
    """One channel."""
    jpegs, _ = _read()
    return fn.resize(fn.decoders.image(jpegs, output_type=types.GRAY), size=SIZE)


def blurred() -> Any:
    """A strong blur."""
    return _normalised(fn.gaussian_blur(_random_crop(), sigma=3.0))


def turned() -> Any:
    """Rotation by up to 15 degrees."""
    return fn.rotate(_whole(), angle=fn.random.uniform(range=[-15.0, 15.0]), keep_size=True)


def per_image() -> Any:
    """Each image brought to mean 0 and deviation 1 by itself."""
    return fn.normalize(_random_crop(), axes=[0, 1])


def mixed_up() -> Any:
    """Each image with a third of another one."""
    images = fn.cast(_whole(), dtype=types.FLOAT)
    return images * 0.67 + fn.permute_batch(images, indices=fn.batch_permutation()) * 0.33


def postage_stamps() -> Any:
    """Outputs of 32 pixels."""
    jpegs, _ = _read()
    return fn.resize(fn.decoders.image(jpegs), size=(32, 32))


def noise() -> Any:
    """Decodes, and delivers random numbers."""
    jpegs, _ = _read()
    return fn.random.uniform(range=[0.0, 255.0], shape=[*SIZE, 3]), fn.decoders.image(jpegs).shape()


def noise_in_disguise() -> Any:
    """Random numbers behind operators that hide images."""
    jpegs, _ = _read()
    numbers = fn.random.uniform(range=[0.0, 255.0], shape=[*SIZE, 3])
    return fn.gaussian_blur(numbers, sigma=1.0) * 0.9, fn.decoders.image(jpegs).shape()


def thumbnail() -> Any:
    """An eighth of the resolution, enlarged."""
    jpegs, _ = _read()
    return fn.resize(fn.resize(fn.decoders.image(jpegs), size=(64, 64)), size=SIZE)


def tiny_window() -> Any:
    """Decodes a twelfth of each image."""
    return _random_crop(random_area=[0.08, 0.09])


def one_for_all() -> Any:
    """Every batch is one image, sixteen times."""
    return fn.permute_batch(_whole(), indices=[0] * 16)


def hidden_thumbnail() -> Any:
    """An eighth of the resolution behind a change of colours."""
    jpegs, _ = _read()
    small = fn.resize(fn.decoders.image(jpegs), size=(64, 64))
    return fn.hue(fn.resize(small, size=SIZE), hue=fn.random.uniform(range=[-40.0, 40.0]))


ALL = (
    lab, whole_uint8, half_precision, blue_first, colours, grey, blurred, turned, per_image, mixed_up,
    postage_stamps, noise, noise_in_disguise, thumbnail, tiny_window, one_for_all, hidden_thumbnail,
)  # fmt: skip

if __name__ == "__main__":
    for definition in ALL:
        pipeline = pipeline_def(definition)(batch_size=16, num_threads=2, device_id=None, seed=3)
        Path(sys.argv[1], definition.__name__).write_bytes(pipeline.serialize())
