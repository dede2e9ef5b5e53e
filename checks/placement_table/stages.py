"""Which stage an operator of a DALI graph is, and which stage a learner's word means; pure text, no graph is run."""

import re
from collections.abc import Iterable, Sequence
from typing import Literal

from grader_service.model.evidence import OperatorFacts

Device = Literal["cpu", "gpu", "mixed"]

_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_STAGES: dict[str, tuple[str, ...]] = {
    "read": ("readers__", "_reader", "filereader", "externalsource"),
    "decode": ("decoders__", "imagedecoder"),
    "random_resized_crop": ("randomresizedcrop",),
    "crop_mirror_normalize": ("cropmirrornormalize",),
    "resize_crop_mirror": ("resizecropmirror", "fastresizecropmirror"),
    "resize": ("resize", "tensorresize", "experimental__resize", "experimental__tensorresize"),
    "crop": ("crop", "slice", "tensorsubscript", "_tensorsubscript", "roirandomcrop"),
    "normalize": ("normalize",),
    "flip": ("flip",),
    "colour": (
        *("colortwist", "brightness", "contrast", "brightnesscontrast", "hsv", "hue", "saturation", "equalize"),
        *("colorspaceconversion", "lookuptable", "experimental__equalize"),
    ),
    "turn": ("rotate", "warpaffine", "warpperspective", "experimental__warpperspective"),
    "blur": ("gaussianblur", "filter", "experimental__filter", "medianblur", "experimental__medianblur", "laplacian"),
    "erase": ("erase", "gridmask", "multipaste", "paste", "jpegcompressiondistortion", "jitter", "sphere", "water"),
}
"""Beginnings (ending in `__`), inner parts (beginning with `_`) or whole names of operators, in lower case."""
_MEANINGS: dict[str, frozenset[str]] = {
    "read": frozenset(
        {*("read", "reader", "readers", "reading", "load", "loader", "loading", "io", "disk", "storage", "lesen")}
    ),
    "decode": frozenset(
        {
            *("decode", "decoder", "decoders", "decoding", "decoded", "nvjpeg", "jpegdecode", "imdecode", "dekodieren"),
            *("imagedecoder", "hostdecoder", "decompress", "decompression"),
        }
    ),
    "random_resized_crop": frozenset({"crop", "cropping", "resize", "resizing", "rrc"}),
    "crop_mirror_normalize": frozenset(
        {
            *("normalize", "normalise", "normalization", "normalisation", "normalizing", "normalising", "norm", "cmn"),
            *("mirror", "mirroring", "crop", "cropping", "flip", "flipping", "layout", "normalisierung"),
        }
    ),
    "resize_crop_mirror": frozenset({"resize", "resizing", "crop", "cropping", "mirror", "flip"}),
    "resize": frozenset({"resize", "resizing", "rescale", "rescaling", "scale", "scaling"}),
    "crop": frozenset({"crop", "cropping", "slice"}),
    "normalize": frozenset({"normalize", "normalise", "normalization", "normalisation", "norm"}),
    "flip": frozenset({"flip", "flipping", "mirror", "mirroring"}),
    "colour": frozenset(
        {
            *("color", "colour", "twist", "jitter", "brightness", "contrast", "hsv", "hue", "saturation", "equalize"),
            *("colortwist", "colorjitter"),
        }
    ),
    "turn": frozenset({"rotate", "rotation", "rotating", "warp", "affine", "shear", "perspective"}),
    "blur": frozenset({"blur", "gaussian", "filter", "smoothing"}),
    "erase": frozenset({"erase", "erasing", "cutout", "cut", "mask", "paste"}),
}
_ALL_WORK = frozenset(
    {
        *("augment", "augmentation", "augmentations", "augmenting", "transform", "transforms", "transformation"),
        *("transformations", "preprocess", "preprocessing", "processing"),
    }
)
_OUTPUT = frozenset({"output", "outputs", "batch", "batches", "result", "delivery", "final"})
_RANDOM = frozenset({"random", "rng", "coin", "uniform", "coinflip", "generator"})
_LABELS = frozenset({"label", "labels", "target", "targets", "class", "classes"})
_MAIN = ("normalize", "normalise", "normalization", "normalisation")


def stage_of(operator: str) -> str | None:
    """The stage of an operator by its schema name; None for helpers such as random numbers, casts and copies."""
    name = operator.lower()
    for stage, patterns in _STAGES.items():
        for pattern in patterns:
            if pattern.endswith("__") and name.startswith((pattern, f"experimental__{pattern}")):
                return stage
            if name == pattern or (pattern.startswith("_") and pattern in name) or _decoder(pattern, name):
                return stage
    return None


def _decoder(pattern: str, name: str) -> bool:
    return pattern == "imagedecoder" and name.startswith(pattern)


def words_of(text: str) -> list[str]:
    """The words of a name or a phrase, in lower case; camel case and underscores are cut."""
    return [word.lower() for word in _WORDS.findall(text[:200])]


def device_of(texts: Iterable[str]) -> Device | None:
    """The device that a value names; both sides of a way from CPU to GPU are `mixed`. None where it names none."""
    found = set()
    for text in texts:
        words = set(words_of(text))
        if "mixed" in words:
            return "mixed"
        if words & {"cpu", "host"}:
            found.add("cpu")
        if words & {"gpu", "cuda", "nvjpeg"}:
            found.add("gpu")
    if len(found) > 1:
        return "mixed"
    return None if not found else ("cpu" if "cpu" in found else "gpu")


def is_device(text: str) -> bool:
    """Whether a key of the table is nothing but a device, so that the table stands the other way round."""
    words = set(words_of(text)) - {"on", "the", "runs", "device", "stages", "operators", "ops"}
    return bool(words) and words <= {"cpu", "gpu", "mixed", "host", "cuda"}


def meant(key: str, operators: Sequence[OperatorFacts]) -> tuple[list[int], str]:
    """Which operators a key of the table means, by position, and what it is otherwise.

    Returns:
        Positions, and `output` (the delivered batch), `helper` (random numbers, labels, copies) or empty.
    """
    words = words_of(key)
    joined = "".join(word for word in words if word not in {"fn", "ops", "dali", "experimental"})
    if not joined:
        return [], ""
    exact = [
        place
        for place, operator in enumerate(operators)
        if joined in _names(operator.name) or (joined.rstrip("0123456789") or joined) in _names(operator.name)
    ]
    if exact:
        return exact, ""
    said = set(words)
    if said & _RANDOM and not said & (_MEANINGS["crop"] | _MEANINGS["resize"]):
        return [], "helper"
    found = _by_meaning(said, operators)
    if found:
        return found, ""
    if said & _ALL_WORK:
        work = [
            place for place, operator in enumerate(operators) if stage_of(operator.name) not in (None, "read", "decode")
        ]
        return work, ""
    if said & _LABELS or said & {"copy", "transfer", "cast"}:
        return [], "helper"
    if said & _OUTPUT:
        return [], "output"
    return [], ""


def _by_meaning(said: set[str], operators: Sequence[OperatorFacts]) -> list[int]:
    stages = [stage_of(operator.name) for operator in operators]
    hits = {stage for stage in set(stages) if stage is not None and said & _MEANINGS[stage]}
    # A plain `crop` or `resize` is that operator where the graph has one, not a fused one that also does it.
    for fused, plain in (
        ("crop_mirror_normalize", ("crop", "random_resized_crop", "resize_crop_mirror", "flip")),
        ("random_resized_crop", ("resize",)),
    ):
        shared = said & _MEANINGS[fused]
        others = set().union(*(_MEANINGS[stage] for stage in plain if stage in hits))
        if fused in hits and shared <= others and not (fused == "random_resized_crop" and "crop" in said):
            hits.discard(fused)
    found = [place for place, stage in enumerate(stages) if stage in hits]
    if said & _MEANINGS["crop"] and not hits & {"crop", "random_resized_crop", "resize_crop_mirror"}:
        # A decoder that cuts while it decodes may be what is meant, and so may the crop of crop_mirror_normalize.
        found = [place for place, operator in enumerate(operators) if _cuts_while_decoding(operator.name)] + found
    return found


def _cuts_while_decoding(name: str) -> bool:
    return stage_of(name) == "decode" and name.endswith(("Crop", "Slice"))


def _names(operator: str) -> set[str]:
    """Ways to write an operator's own name, joined, such as `decodersimage` and `decodersimagerandomcrop`."""
    name = operator.lower().replace("experimental__", "")
    last = name.rpartition("__")[2].replace("_", "")
    whole = name.replace("_", "")
    names = {whole, whole.replace("readers", "reader"), whole.replace("decoders", "decoder")}
    if stage_of(operator) not in ("read", "decode") or last not in ("image", "file"):
        names.add(last)
    return names
