"""Honest chains of crops and resizes in great number: nobody who writes one may be accused of anything."""

import itertools
from collections.abc import Callable, Iterator
from typing import Any

from nvidia.dali import fn, types

Chain = Callable[[], Any]
_FILTERS = {
    "linear": {},
    "cubic": {"interp_type": types.INTERP_CUBIC},
    "nearest": {"interp_type": types.INTERP_NN},
    "lanczos": {"interp_type": types.INTERP_LANCZOS3},
    "aliased": {"antialias": False},
}
_OUTPUTS = (64, 128, 224, 384, 512)


def _read() -> Any:
    return fn.readers.file(files=["/any.jpg"], random_shuffle=True, name="Reader")[0]


def _normal(images: Any, **options: Any) -> Any:
    return fn.crop_mirror_normalize(
        images, dtype=types.FLOAT, output_layout="CHW", mean=[123.7, 116.3, 103.5], std=[58.4, 57.1, 57.4], **options
    )


def _shapes(side: int, filters: dict[str, Any]) -> Iterator[tuple[str, Chain]]:
    """Ways to an output of one size."""

    def whole(**options: Any) -> Any:
        return fn.decoders.image(_read(), **options)

    yield "stretch", lambda: fn.resize(whole(), size=(side, side), **filters)
    yield (
        "shorter, crop",
        lambda: _normal(fn.resize(whole(), resize_shorter=side * 8 // 7, **filters), crop=(side, side)),
    )
    yield (
        "longer, pad",
        lambda: fn.crop(
            fn.resize(whole(), resize_longer=side, **filters), crop=(side, side), out_of_bounds_policy="pad"
        ),
    )
    yield (
        "two resizes",
        lambda: fn.resize(fn.resize(whole(), resize_shorter=2 * side, **filters), size=(side, side), **filters),
    )
    yield (
        "three resizes",
        lambda: fn.resize(
            fn.resize(fn.resize(whole(), size=(3 * side, 3 * side), **filters), resize_longer=2 * side, **filters),
            size=(side, side),
            **filters,
        ),
    )
    yield (
        "crop, resize",
        lambda: fn.resize(
            fn.crop(whole(), crop=(90, 90), crop_pos_x=fn.random.uniform(range=[0.0, 1.0])),
            size=(side, side),
            **filters,
        ),
    )
    yield (
        "resize, random resized crop",
        lambda: fn.random_resized_crop(fn.resize(whole(), resize_shorter=256, **filters), size=(side, side), **filters),
    )
    yield (
        "the lab's own",
        lambda: _normal(
            fn.random_resized_crop(fn.resize(whole(), resize_shorter=256), size=(side, side), **filters),
            mirror=fn.random.coin_flip(),
        ),
    )
    yield (
        "random crop in the decoder",
        lambda: fn.resize(fn.decoders.image_random_crop(_read()), size=(side, side), **filters),
    )
    yield (
        "resize, crop, mirror",
        lambda: fn.resize_crop_mirror(
            whole(), resize_shorter=side + 8, crop=(side, side), mirror=fn.random.coin_flip(), **filters
        ),
    )
    yield (
        "computed size",
        lambda: fn.crop(
            fn.resize(whole(), resize_shorter=fn.random.uniform(range=[1.1 * side, 1.6 * side]), **filters),
            crop=(side, side),
        ),
    )
    yield (
        "covers",
        lambda: fn.crop(fn.resize(whole(), size=(side, side), mode="not_smaller", **filters), crop=(side, side)),
    )
    yield (
        "region of interest",
        lambda: fn.resize(
            whole(), size=(side, side), roi_start=[0.1, 0.1], roi_end=[0.9, 0.9], roi_relative=True, **filters
        ),
    )


def chains() -> Iterator[tuple[str, Chain]]:
    """Name and definition of every chain."""
    for side, (filtered, filters) in itertools.product(_OUTPUTS, _FILTERS.items()):
        for name, chain in _shapes(side, filters):
            yield f"{name}, {side} px, {filtered}", chain
