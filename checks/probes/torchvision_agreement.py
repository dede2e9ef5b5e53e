"""Runs a graph without random operators beside torchvision's transforms on the same JPEGs; says how far they differ.

The graph is compared with what the lab wants and with what typical mistakes would give; errors are means of absolute
differences, in grey levels.
"""

from typing import Any

PROBE_API = 1
VERSION = "1.0.0"
SITE = "graph"
BUDGET_S = 45.0

CHECK = "torchvision_agreement"
SIZES = ((400, 600), (500, 400))
"""Height and width of each image; their ratios make the longer side a whole number after any usual resize, so that no
library has to round."""
CLOSE = 3.0
"""Grey levels; where no way of preparing comes so near, the normalisation is left out of the comparison."""
SAME = 0.5
"""Grey levels; a graph that is so near to what is wanted is not compared with mistakes."""
MODES = ("bilinear", "bicubic", "nearest")
VALIDATION = ("val", "eval", "test")


def probe(context: Any) -> dict[str, Any]:
    """The graph that was compared, and its error against each way of preparing the images."""
    context.graph  # noqa: B018 - raises where no graph can be run at all
    params = context.params.get(CHECK, {})
    chosen = _chosen(context, params.get("graph"))
    candidates = [
        {"name": graph.name, "refused": graph.refused[:300], "random": _random(context, graph)[:8]}
        for graph in context.graphs
    ]
    facts = {"graph": chosen.name if chosen else None, "carried": len(candidates), "candidates": candidates}
    return facts if chosen is None else facts | _compared(context, chosen, params)


def _chosen(context: Any, name: Any) -> Any:
    """The graph that the lab names; else the first without random operators, those for validation before others."""
    usable = [graph for graph in context.graphs if not graph.refused]
    if name:
        return next((graph for graph in usable if graph.name == name), None)
    still = [graph for graph in usable if not _random(context, graph)]
    return min(still, key=lambda graph: not any(hint in graph.name.lower() for hint in VALIDATION), default=None)


def _random(context: Any, graph: Any) -> Any:
    """Operators by which one sample is treated otherwise than the next."""
    rows = [(operator["name"], context.operator_row(operator["name"])) for operator in graph.operators]
    return [name for name, row in rows if row.varies or row.branch]


def _compared(context: Any, graph: Any, params: Any) -> Any:
    import numpy as np

    files = context.write_jpegs([_picture(height, width, seed) for seed, (height, width) in enumerate(SIZES)])
    run = graph.run(files, batches=1, batch_size=len(files), random_shuffle=False, shuffle_after_epoch=False)
    index = next((number for number in range(len(run.layouts)) if run.output(number)[0].ndim == 3), None)
    if index is None:
        return {"shape": None}
    samples = [np.asarray(sample, dtype=np.float64) for sample in run.output(index)]
    shape = list(samples[0].shape)
    if any(sample.shape != samples[0].shape for sample in samples):
        return {"shape": shape, "ragged": True}
    if 3 not in (shape[0], shape[2]):
        return {"shape": shape, "ragged": False}
    pictures = np.stack([s if shape[0] == 3 else s.transpose(2, 0, 1) for s in samples])
    mean, std = (np.asarray(params[key], dtype=np.float64).reshape(-1, 1, 1) for key in ("mean", "std"))
    # In grey levels: what the lab's normalisation would have been made of.
    levels = (pictures * std + mean) * 255.0
    places = [
        {"name": op["name"], "file": op["file"], "line": op["line"], "arguments": _arguments(op)}
        for op in graph.operators
        if (row := context.operator_row(op["name"])).cuts or row.resizes
    ][:8]
    ways = _ways(files, params)
    made = {"wanted": ways["wanted"]()}
    if made["wanted"].shape != levels.shape or np.abs(levels - made["wanted"]).mean() > SAME:
        made = {name: way() for name, way in ways.items()}
    made = {name: way for name, way in made.items() if way.shape == levels.shape}
    errors = {name: round(float(np.abs(levels - way).mean()), 3) for name, way in made.items()}
    fitted = {}
    if errors and min(errors.values()) > CLOSE:
        fitted = {name: round(_after_fit(pictures, way), 3) for name, way in made.items()}
    return {"shape": shape, "ragged": False, "errors": errors, "fitted": fitted, "operators": places}


def _arguments(operator: Any) -> Any:
    kept = (
        "antialias", "interp_type", "min_filter", "mag_filter", "size", "resize_x", "resize_y", "resize_shorter",
        "resize_longer", "mode", "crop", "crop_h", "crop_w", "crop_pos_x", "crop_pos_y", "subpixel_scale",
    )  # fmt: skip
    return {key: str(value)[:60] for key, value in operator["arguments"].items() if key in kept}


def _after_fit(pictures: Any, wanted: Any) -> Any:
    """The error that is left when each channel may be scaled and shifted as a whole: that of geometry alone."""
    import numpy as np

    rest = []
    for channel in range(3):
        x, y = pictures[:, channel].ravel(), wanted[:, channel].ravel()
        spread = x.std()
        slope = ((x - x.mean()) * (y - y.mean())).mean() / spread**2 if spread > 1e-9 else 0.0
        rest.append(float(np.abs(y.mean() + slope * (x - x.mean()) - y).mean()))
    return sum(rest) / len(rest)


def _picture(height: Any, width: Any, seed: Any) -> Any:
    """A smooth ramp, waves of several lengths down to four pixels, and hard edges: each shows other mistakes."""
    import numpy as np

    y, x = np.mgrid[0:height, 0:width].astype(np.float64)
    channels = []
    for channel in range(3):
        ramp = 90.0 * (x / width) + 60.0 * (y / height) * (channel + 1) / 3
        waves = 22 * np.sin(x / (1.1 + 0.4 * seed) + channel) + 22 * np.sin(y / (2.3 + channel) + seed)
        bars = 40.0 * ((x // 23 + y // 31 + channel) % 2)
        channels.append(ramp + waves + bars + 20)
    return np.clip(np.stack(channels, axis=2), 0, 255).round().astype(np.uint8)


def _ways(files: Any, params: Any) -> dict[str, Any]:
    """Each way of preparing, by name: a function that gives float64 [N, 3, height, width] in grey levels."""
    from functools import partial

    import numpy as np
    from PIL import Image
    from torchvision.transforms import functional as vision

    resize, crop = int(params["resize"]), int(params["crop"])
    smooth, mode = bool(params["antialias"]), str(params["interpolation"])
    images = []
    for file in files:
        with Image.open(file) as image:
            images.append(vision.pil_to_tensor(image.convert("RGB")))

    def prepared(size: Any, *, mode: str = mode, smooth: bool = smooth, corner: bool = False, shift: int = 0) -> Any:
        made = []
        for image in images:
            picture = _resized(image, size(image), mode, smooth=smooth)
            picture = picture[:, :crop, :crop] if corner else vision.center_crop(picture, [crop, crop])
            made.append(np.asarray(_half_pixel(picture, shift) if shift else picture, dtype=np.float64))
        return np.stack(made) if len({one.shape for one in made}) == 1 else np.empty(0)

    def shorter(_: Any) -> Any:
        return [resize]

    ways = {
        "wanted": partial(prepared, shorter),
        "no_antialias" if smooth else "antialias": partial(prepared, shorter, smooth=not smooth),
        "squashed": partial(prepared, lambda _: [crop, crop]),
        "squashed_then_cropped": partial(prepared, lambda _: [resize, resize]),
        "resized_to_crop": partial(prepared, lambda _: [crop]),
        "not_resized": partial(prepared, lambda _: None),
        "corner": partial(prepared, shorter, corner=True),
        "longer_side": partial(
            prepared, lambda image: [round(side * resize / max(image.shape[1:])) for side in image.shape[1:]]
        ),
        "half_pixel": partial(prepared, shorter, shift=1),
        "half_pixel_back": partial(prepared, shorter, shift=-1),
    }
    return ways | {other: partial(prepared, shorter, mode=other) for other in MODES if other != mode}


def _resized(image: Any, size: Any, mode: str, *, smooth: bool) -> Any:
    from torchvision.transforms import InterpolationMode
    from torchvision.transforms import functional as vision

    if size is None:
        return image
    # The nearest pixel by the middles of both, as Pillow and DALI take it.
    method = InterpolationMode.NEAREST_EXACT if mode == "nearest" else InterpolationMode[mode.upper()]
    return vision.resize(image, size, method, antialias=smooth)


def _half_pixel(image: Any, way: int) -> Any:
    """The image moved by half a pixel down and to the right, or back."""
    import torch

    values = image.to(torch.float32)
    moved = (values + torch.roll(values, way, 1)) / 2
    return (moved + torch.roll(moved, way, 2)) / 2
