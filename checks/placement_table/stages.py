"""Which stage an operator of a DALI graph is, and which stage a learner's word means; pure text, no graph is run."""

import re
from collections.abc import Iterable, Sequence
from typing import Literal

from checks.dali_operators import row_of
from grader_service.model.evidence import OperatorFacts

Device = Literal["cpu", "gpu", "mixed"]

_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_SAID = {
    "read": "read reader readers reading load loader loading io disk storage lesen",
    "decode": (
        "decode decoder decoders decoding decoded nvjpeg jpegdecode imdecode dekodieren imagedecoder hostdecoder "
        "decompress decompression"
    ),
    "random_resized_crop": "crop cropping resize resizing rrc",
    "crop_mirror_normalize": (
        "normalize normalise normalization normalisation normalizing normalising norm cmn mirror mirroring crop "
        "cropping flip flipping layout normalisierung"
    ),
    "resize_crop_mirror": "resize resizing crop cropping mirror flip",
    "resize": "resize resizing rescale rescaling scale scaling",
    "crop": "crop cropping slice",
    "normalize": "normalize normalise normalization normalisation norm",
    "flip": "flip flipping mirror mirroring",
    "colour": "color colour twist jitter brightness contrast hsv hue saturation equalize colortwist colorjitter",
    "turn": "rotate rotation rotating warp affine shear perspective",
    "blur": "blur gaussian filter smoothing",
    "erase": "erase erasing cutout cut mask paste",
    # What is no stage:
    "any work": (
        "augment augmentation augmentations augmenting transform transforms transformation transformations preprocess "
        "preprocessing processing"
    ),
    "output": "output outputs batch batches result delivery final",
    "random": "random rng coin uniform coinflip generator",
    "labels": "label labels target targets class classes",
    "copy": "copy transfer cast",
}
"""What is meant → words for it."""
_MEANINGS = {meaning: frozenset(words.split()) for meaning, words in _SAID.items()}


def stage_of(operator: str) -> str | None:
    """The stage of an operator by its schema name; None for helpers such as random numbers, casts and copies."""
    return row_of(operator).stage or None


def words_of(text: str) -> list[str]:
    """The words of a name or a phrase, in lower case; camel case and underscores are cut."""
    return [word.lower() for word in _WORDS.findall(text[:200])]


def device_of(texts: Iterable[str]) -> Device | None:
    """The device that a value names; both sides of a way from CPU to GPU are `mixed`. None where it names none."""
    said = {word for text in texts for word in words_of(text)}
    cpu, gpu = not said.isdisjoint({"cpu", "host"}), not said.isdisjoint({"gpu", "cuda", "nvjpeg"})
    if "mixed" in said or (cpu and gpu):
        return "mixed"
    if cpu:
        return "cpu"
    return "gpu" if gpu else None


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
    spelled = {joined, joined.rstrip("0123456789") or joined}
    exact = [place for place, operator in enumerate(operators) if spelled & _names(operator.name)]
    if exact:
        return exact, ""
    said = set(words)
    if said & _MEANINGS["random"] and not said & (_MEANINGS["crop"] | _MEANINGS["resize"]):
        return [], "helper"
    stages = [stage_of(operator.name) for operator in operators]
    found = _by_meaning(said, stages, operators)
    if found:
        return found, ""
    if said & _MEANINGS["any work"]:
        return [place for place, stage in enumerate(stages) if stage not in (None, "read", "decode")], ""
    if said & (_MEANINGS["labels"] | _MEANINGS["copy"]):
        return [], "helper"
    return [], "output" if said & _MEANINGS["output"] else ""


def _by_meaning(said: set[str], stages: Sequence[str | None], operators: Sequence[OperatorFacts]) -> list[int]:
    hits = {stage for stage in stages if stage is not None and said & _MEANINGS[stage]}
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
        return [place for place, operator in enumerate(operators) if row_of(operator.name).window] + found
    return found


def _names(operator: str) -> set[str]:
    """Ways to write an operator's own name, joined, such as `decodersimage` and `decodersimagerandomcrop`."""
    name = operator.lower().replace("experimental__", "")
    last = name.rpartition("__")[2].replace("_", "")
    whole = name.replace("_", "")
    names = {whole, whole.replace("readers", "reader"), whole.replace("decoders", "decoder")}
    if stage_of(operator) not in ("read", "decode") or last not in ("image", "file"):
        names.add(last)
    return names
