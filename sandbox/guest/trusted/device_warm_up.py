"""Opens a device ahead of its first real work: context, decoder and kernels, with a graph and an image of ours."""

from typing import Any

from . import own_graph

_SIDE = 256
_BATCH = 2
_PLAN: dict[str, Any] = {
    "size": [64, 64],
    "steps": [{"op": "random_resized_crop", "area": [0.3, 1.0], "ratio": [0.75, 1.33], "size": [64, 64]}],
    "interpolation": "bilinear",
    "mirror": True,
    "colour": False,
    "turn": False,
    "blur": False,
    "floats": True,
    "channels": 3,
}
"""What most submissions do; an operator that they use beside these is loaded when its graph is built."""


def warm_up(folder: str, device: str) -> None:
    """Draws one batch of a graph of ours and forgets it.

    Args:
        folder: where this process may write one small file.
        device: `cuda` or `cpu`.
    """
    from PIL import Image

    path = f"{folder}/warm-up.jpg"
    Image.new("RGB", (_SIDE, _SIDE), (90, 120, 150)).save(path, "JPEG")
    pipe = own_graph.build([path], _PLAN, _BATCH, 1, device)
    pipe.run()
    if device == "cuda":
        import torch

        torch.zeros(1, device="cuda")
        torch.cuda.synchronize()
