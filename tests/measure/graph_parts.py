"""Parts that the graphs of the tests are made of."""

from typing import Any

from nvidia.dali import fn

SIZE = (128, 128)
BATCH = 16


def read() -> Any:
    """Files."""
    return fn.readers.file(files=["/any.jpg"], random_shuffle=True, name="Reader")[0]


def random_crop(**options: Any) -> Any:
    """The standard window, decoded alone, in the final size."""
    return fn.resize(fn.decoders.image_random_crop(read(), **options), size=SIZE)


def decoded(**options: Any) -> Any:
    """Whole images."""
    return fn.decoders.image(read(), **options)


def whole() -> Any:
    """Whole images in the final size."""
    return fn.resize(decoded(), size=SIZE)
