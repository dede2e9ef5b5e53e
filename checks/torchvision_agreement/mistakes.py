"""The usual ways to prepare images otherwise than torchvision's transforms, and what to write instead."""

from collections.abc import Mapping

RESIZE = "images = fn.resize(images, resize_shorter={resize})"
CROP = "images = fn.crop(images, crop=({crop}, {crop}))"
_INTERPOLATION = ("Set the wanted one in fn.resize:", "interp_type=types.INTERP_{interpolation}")
_BY_HALF = (
    "shift images by half a pixel",
    "Look for a warp, or for coordinates that count from a pixel's middle here and from its corner there.",
    "",
)
MISTAKES: Mapping[str, tuple[str, str, str]] = {
    "no_antialias": (
        "resize without antialiasing",
        "Turn it on, as torchvision does:",
        "images = fn.resize(images, resize_shorter={resize}, antialias=True)",
    ),
    "antialias": (
        "resize with antialiasing, and the lab wants none",
        "Turn it off:",
        "images = fn.resize(images, resize_shorter={resize}, antialias=False)",
    ),
    "squashed": (
        "squash images to the final size, whatever their shape",
        "Resize the shorter side, then crop the middle:",
        f"{RESIZE}\n{CROP}",
    ),
    "squashed_then_cropped": (
        "squash images to {resize} × {resize} and then crop them",
        "Keep their shape in the resize:",
        RESIZE,
    ),
    "resized_to_crop": ("resize the shorter side to {crop}, not to {resize}", "Resize to {resize} first:", RESIZE),
    "not_resized": ("crop images as they are", "Resize the shorter side first:", RESIZE),
    "corner": (
        "crop the upper left corner",
        "Crop the middle:",
        "images = fn.crop(images, crop=({crop}, {crop}), crop_pos_x=0.5, crop_pos_y=0.5)",
    ),
    "longer_side": ("resize the longer side to {resize}", "Resize the shorter side:", RESIZE),
    "half_pixel": _BY_HALF,
    "half_pixel_back": _BY_HALF,
    "bilinear": ("use bilinear interpolation", *_INTERPOLATION),
    "bicubic": ("use bicubic interpolation", *_INTERPOLATION),
    "nearest": ("take the nearest pixel in the resize", *_INTERPOLATION),
}
"""Way of preparing images, as the probe names it → what the graph seems to do, what to do about it, what to write."""
