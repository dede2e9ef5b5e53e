"""What a pod delivered in one window, as arrays that the host owns."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Delivered:
    """One window's images."""

    means: NDArray[np.float32]
    """[images, channels], each channel's mean over a grid of pixels, in whatever scale the graph has."""
    copies: tuple[tuple[int, NDArray[np.uint8]], ...]
    """(place in `means`, pixels `[H, W, C]`) of the images chosen beforehand."""
