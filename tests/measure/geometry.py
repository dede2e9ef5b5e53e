"""Honest chains of crops and resizes in great number: nobody who writes one may be accused of anything."""

import itertools
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from nvidia.dali import fn, pipeline_def, types
from PIL import Image

from grader_service.measure import acceptance
from grader_service.model.measurement import GraphProof
from sandbox.guest.graph import edit, model
from tests.measure.graph_parts import read
from tests.sandbox.guest.pipelines import normalised

Chain = Callable[[], Any]
_KINDS = (
    ("RGB", (500, 375)), ("RGB", (375, 500)), ("RGB", (640, 480)), ("L", (500, 375)), ("CMYK", (500, 375)),
    ("turned", (480, 320)), ("RGB", (100, 133)), ("RGB", (133, 100)), ("RGB", (1600, 1200)), ("RGB", (320, 240)),
    ("RGB", (1000, 250)), ("RGB", (4000, 3000)),
)  # fmt: skip
_THREADS = 2
_FILTERS = {
    "linear": {},
    "cubic": {"interp_type": types.INTERP_CUBIC},
    "nearest": {"interp_type": types.INTERP_NN},
    "lanczos": {"interp_type": types.INTERP_LANCZOS3},
    "aliased": {"antialias": False},
}
_OUTPUTS = (64, 128, 224, 384, 512)


def _shapes(side: int, filters: dict[str, Any], decoder: str) -> dict[str, Chain]:
    """Ways to an output of one size, by name."""
    square = (side, side)

    def whole() -> Any:
        return fn.decoders.image(read(), device=decoder)

    def resized(images: Any, **to: Any) -> Any:
        return fn.resize(images, **to, **filters)

    def by_chance(low: float, high: float) -> Any:
        return fn.random.uniform(range=[low, high])

    def part() -> Any:
        return fn.crop(whole(), crop=(90, 90), crop_pos_x=by_chance(0.0, 1.0))

    def random_part(images: Any) -> Any:
        return fn.random_resized_crop(images, size=square, **filters)

    def shorter_and_mirrored() -> Any:
        mirror = fn.random.coin_flip()
        return fn.resize_crop_mirror(whole(), resize_shorter=side + 8, crop=square, mirror=mirror, **filters)

    region = {"roi_start": [0.1, 0.1], "roi_end": [0.9, 0.9], "roi_relative": True}
    return {
        "stretch": lambda: resized(whole(), size=square),
        "shorter, crop": lambda: normalised(resized(whole(), resize_shorter=side * 8 // 7), crop=square),
        "longer, pad": lambda: fn.crop(resized(whole(), resize_longer=side), crop=square, out_of_bounds_policy="pad"),
        "two resizes": lambda: resized(resized(whole(), resize_shorter=2 * side), size=square),
        "three resizes": lambda: resized(
            resized(resized(whole(), size=(3 * side, 3 * side)), resize_longer=2 * side), size=square
        ),
        "crop, resize": lambda: resized(part(), size=square),
        "resize, random resized crop": lambda: random_part(resized(whole(), resize_shorter=256)),
        "the lab's own": lambda: normalised(
            random_part(fn.resize(whole(), resize_shorter=256)), mirror=fn.random.coin_flip()
        ),
        "random crop in the decoder": lambda: resized(
            fn.decoders.image_random_crop(read(), device=decoder), size=square
        ),
        "resize, crop, mirror": shorter_and_mirrored,
        "computed size": lambda: fn.crop(
            resized(whole(), resize_shorter=by_chance(1.1 * side, 1.6 * side)), crop=square
        ),
        "covers": lambda: fn.crop(resized(whole(), size=square, mode="not_smaller"), crop=square),
        "region of interest": lambda: resized(whole(), size=square, **region),
    }


def chains(decoder: str = "cpu") -> Iterator[tuple[str, Chain]]:
    """Name and definition of every chain; images are decoded by the CPU, or by the GPU too if `mixed`."""
    for side, (filtered, filters) in itertools.product(_OUTPUTS, _FILTERS.items()):
        for name, chain in _shapes(side, filters, decoder).items():
            yield f"{name}, {side} px, {filtered}", chain


def write_images(folder: Path) -> list[tuple[str, tuple[int, int]]]:
    """JPEG files of many sizes, modes and orientations, the largest last: path, and width and height in pixels."""
    generator = np.random.default_rng(1)
    written = []
    for number, (kind, (width, height)) in enumerate(_KINDS):
        mode = "RGB" if kind == "turned" else kind
        bands = len(Image.new(mode, (1, 1)).getbands())
        coarse = generator.integers(0, 256, (height // 8, width // 8, bands), np.uint8)
        smooth = Image.fromarray(coarse[:, :, 0] if mode == "L" else coarse, mode=mode).resize((width, height))
        noise = generator.integers(-20, 20, (height, width) if mode == "L" else (height, width, 1))
        image = Image.fromarray(np.clip(np.asarray(smooth) + noise, 0, 255).astype(np.uint8), mode=mode)
        exif = Image.Exif()
        if kind == "turned":
            exif[0x0112] = 6
        path = folder / f"{number}.jpg"
        image.save(path, quality=90, exif=exif)
        written.append((str(path), (width, height)))
    return written


def examined(
    name: str, chain: Chain, images: list[tuple[str, tuple[int, int]]], device: str, examining: Callable[..., Any]
) -> GraphProof:
    """What is found of a chain in batches of 16; the largest image takes as long as all others: few chains have it.

    Args:
        name: of the chain.
        chain: its definition.
        images: of `write_images`.
        device: where it is tried out.
        examining: `experiments.examine`, all but its first argument.
    """
    files, sizes = zip(*(images if "224 px, linear" in name else images[:-1]), strict=True)
    on_gpu = device == "cuda"
    pipeline = pipeline_def(chain)(batch_size=16, num_threads=_THREADS, device_id=0 if on_gpu else None, seed=3)
    graph = model.read(pipeline.serialize())
    edit.prune(graph)
    edit.check(graph)
    shuffled = random.sample(files, len(files))
    edit.repoint(graph, shuffled, list(range(len(files))))
    edit.restrain(graph, _THREADS)
    found = examining(graph, 0, shuffled, device, _THREADS)
    found.pop("sizes", None)
    return acceptance.judge(acceptance.Observed(**found), sizes)
