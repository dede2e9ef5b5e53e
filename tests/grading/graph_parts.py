"""Parts that the graphs of the tests are made of."""

from typing import Any

from nvidia.dali import fn, types

SIZE = (128, 128)
BATCH = 16


def read() -> Any:
    """Files and labels."""
    jpegs, labels = fn.readers.file(files=["/any.jpg"], random_shuffle=True, name="Reader")
    return jpegs, labels


def normalised(images: Any, **options: Any) -> Any:
    """Channels first, as the lab has them."""
    return fn.crop_mirror_normalize(
        images,
        dtype=types.FLOAT,
        output_layout="CHW",
        mean=[123.7, 116.3, 103.5],
        std=[58.4, 57.1, 57.4],
        **options,
    )


def random_crop(**options: Any) -> Any:
    """The standard window, decoded alone, in the final size."""
    jpegs, _ = read()
    return fn.resize(fn.decoders.image_random_crop(jpegs, **options), size=SIZE)


def decoded(**options: Any) -> Any:
    """Whole images."""
    return fn.decoders.image(read()[0], **options)


def whole() -> Any:
    """Whole images in the final size."""
    return fn.resize(decoded(), size=SIZE)
