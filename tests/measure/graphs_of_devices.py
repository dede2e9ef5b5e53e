"""DALI graphs that tell a GPU from a CPU, and decode less on the GPU; on a CPU they decode whole images.

`python bench/gpu_graphs.py --telling` shows that their experiments find it out.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from nvidia.dali import fn, math, pipeline_def, types

from tests.measure.graph_parts import SIZE, read

_POINTS = np.linspace(0.1, 2.9, 64).astype(np.float32)


def telling() -> dict[str, Callable[[], Any]]:
    """The graphs, by name; each has a problem on a GPU."""
    return {graph.__name__: graph for graph in (shrunk_window, moved_window, two_decoders, filtered)}


def shrunk_window() -> Any:
    """A corner in place of the whole image, which is cut to that corner."""
    jpegs = read()
    size, tile = _size(jpegs), _tile(48)
    return _corner(_cut(jpegs, [0, 0], tile + (size - tile) * _on_cpu()), 48)


def moved_window() -> Any:
    """The top in place of the end, of which next to nothing is delivered."""
    jpegs = read()
    size = _size(jpegs)
    rows = _upper(size)
    return _thumbnail(_cut(jpegs, (size - rows) * _on_cpu(), rows))


def two_decoders() -> Any:
    """A corner of what two decoders show otherwise, which is a JPEG and no picture without loss."""
    jpegs = read()
    size, tile = _size(jpegs), _tile(48)
    return _corner(_cut(jpegs, [0, 0], size + (tile - size) * _is_jpeg(jpegs)), 48)


def filtered() -> Any:
    """The top of JPEGs and the end of others, behind an operator that exists on the GPU only."""
    jpegs = read()
    size = _size(jpegs)
    rows = _upper(size)
    images = _thumbnail(_cut(jpegs, (size - rows) * (1 - _is_jpeg(jpegs)), rows))
    return fn.experimental.median_blur(images, window_size=3)


def _size(jpegs: Any) -> Any:
    return fn.cast(fn.peek_image_shape(jpegs)[0:2], dtype=types.INT32)


def _tile(side: int) -> Any:
    return types.Constant(np.array([side, side], np.int32), device="cpu")


def _upper(size: Any) -> Any:
    share = types.Constant(np.array([0.37, 1.0], np.float32), device="cpu")
    return fn.cast(fn.cast(size, dtype=types.FLOAT) * share, dtype=types.INT32)


def _cut(jpegs: Any, start: Any, shape: Any) -> Any:
    return fn.decoders.image_slice(jpegs, start=start, shape=shape, axes=[0, 1], device="cpu").gpu()


def _corner(images: Any, side: int) -> Any:
    return fn.resize(fn.slice(images, start=[0, 0], shape=[side, side], axes=[0, 1]), size=SIZE)


def _thumbnail(images: Any) -> Any:
    return fn.resize(fn.resize(images, size=(2, 2)), size=SIZE)


def _is_jpeg(jpegs: Any) -> Any:
    window = {"start": [0, 0], "shape": [48, 48], "axes": [0, 1]}
    near = fn.cast(fn.decoders.image_slice(jpegs, device="cpu", **window), dtype=types.FLOAT)
    far = fn.cast(fn.decoders.image_slice(jpegs, device="mixed", **window), dtype=types.FLOAT)
    return fn.cast(fn.reductions.max(math.abs(near.gpu() - far)).cpu() > 0.5, dtype=types.INT32)


def _on_cpu() -> Any:
    """1 where arithmetic in which small errors grow gives what it gives on a CPU."""
    drift = _stirred(types.Constant(_POINTS, device="gpu")) - types.Constant(_on_this_cpu(), device="gpu")
    return fn.cast(fn.reductions.max(math.abs(drift)).cpu() < 0.001, dtype=types.INT32)


def _stirred(values: Any) -> Any:
    values = values * 1.0
    for _ in range(7):
        values = math.sin(values * 37.0)
    return values


@cache
def _on_this_cpu() -> Any:
    @pipeline_def(batch_size=1, num_threads=1, device_id=None)  # type: ignore[untyped-decorator]
    def settled() -> Any:
        return _stirred(types.Constant(_POINTS, device="cpu"))

    pipe = settled()
    pipe.build()
    return np.array(pipe.run()[0].at(0), np.float32)
