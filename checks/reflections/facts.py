"""Draws facts from concepts and numbers that stand together.

A *fact* is a concept that single words do not give: "4 cores" is few, "96 cores" is many, "GPU at 30 %" is idle and
"GPU at 99 %" is not, "32x32" is tiny. Nearness stands in for grammar, which is wrong now and then: a fact is one sign
among several, never a verdict.
"""

import re

from checks.reflections.lexicon import Hit
from checks.reflections.reading import BESIDE, NEAR, Reading
from checks.reflections.text import Piece

_ADJACENT, _SAME_PHRASE, _QUALIFIED, _PHRASE, _DENIED, _SENTENCE, _RELATED, _FAR = (
    1.8,
    1.2,
    3.2,
    4.6,
    4.7,
    5.6,
    8.0,
    99.0,
)
"""Distances in words."""
_ONE_CLAIM = 16
"""Words of an item short enough to make one statement."""
_FEW_CORES, _MANY_CORES, _MOST_CORES = 16, 24, 1024
_TWO, _MOST_GPUS = 2, 256
_BUSY, _IDLE, _LITTLE = 90, 78, 10
"""Percent."""
_LEAST_SIDE, _TINY_SIDE, _LARGE_SIDE = 8, 96, 480
"""Pixels."""
_THOUSAND = 1000
_A_MINUTE, _DIGITS = 60, 9
_FEWEST_IMAGES, _FEW_IMAGES = 20, 3000
_LARGE_EDGE = 700
_PIXELS = re.compile(r"(?<![0-9.,])([0-9]{3,6}) ?(?:px|pixel)")
_MEASURED_LOSS = re.compile(
    r"\bdali\b(?:(?!\b(?:data ?loader|loader|pytorch|torchvision|pillow|pil|cpu)\b)[^.;!?\n]){0,60}?"
    r"(?:\bslower than\b|\bbehind\b|\blost (?:to|against)\b|(?<![0-9.,])0[.,][0-9]{1,3} ?(?:x|×|times)(?![0-9a-z]))",
    re.IGNORECASE,
)
"""DALI itself compared and found slower; not a loader that is slower than DALI."""
_SIDES = re.compile(r"(?<![0-9])([0-9]{1,5}(?: ?k)?) ?[x×*х] ?([0-9]{1,5}(?: ?k\b)?)(?![0-9])")


def facts_of(reading: Reading) -> frozenset[str]:
    """Names of all facts."""
    return frozenset(
        _core_facts(reading)
        | _gpu_facts(reading)
        | _load_facts(reading)
        | _size_facts(reading)
        | _model_facts(reading)
        | _lost_causes(reading)
        | _claims(reading)
    )


def _model_facts(reading: Reading) -> set[str]:
    facts: set[str] = set()
    if reading.said_of(("small", "light", "fast"), "model") or "lightmodel" in reading.concepts:
        facts.add("light_model")
    if reading.said_of(("large", "heavy"), "model") or "bigmodel" in reading.concepts:
        facts.add("big_model")
    if reading.near(("step",), ("seconds", "slow"), _SENTENCE) or reading.near(("model",), ("seconds",)):
        facts.add("long_step")
    return facts


def _lost_causes(reading: Reading) -> set[str]:
    """What leaves nothing to win: a format that the card cannot decode, or an epoch of a minute at most."""
    causes: set[str] = set()
    works = reading.places("decode", "hwdec", "gpu", "video", "jpeg", "rawformat")
    for hit in reading.hits:
        if hit.concept != "support" or not any(abs(hit.at - work) <= _RELATED for work in works):
            continue
        if any(abs(hit.at - no) <= NEAR for no in reading.places("negation", "keepup")):
            causes.add("custom")
    brief = [hit.at for hit in reading.hits if hit.concept == "instant" and _is_brief(reading.words, hit)]
    if any(abs(at - run) <= _SENTENCE for at in brief for run in reading.places("epoch")):
        causes.add("smalldata")
    if brief and _has_few_images(reading):
        causes.add("smalldata")
    return causes


def _is_brief(words: list[Piece], hit: Hit) -> bool:
    """Whether it is a minute at most: "5 s", "a few seconds"; a lone "s" is a possessive."""
    before = words[hit.piece - 1] if hit.piece else None
    if before is None or before.kind != "number":
        return len(words[hit.piece].text) > 1
    count = before.text.partition(".")[0]
    return count.isdecimal() and int(count[:_DIGITS]) <= _A_MINUTE


def _denies_work(reading: Reading) -> bool:
    """Whether it says that there is no decoding and the like; "cannot decode fast enough" does not."""
    unable = reading.places("keepup")
    work = reading.places("decode", "image", "augment", "video", "preproc", "resize", "audio", "jpeg")
    return any(
        any(abs(no - thing) <= _DENIED for thing in work) and not any(abs(no - at) <= _SAME_PHRASE for at in unable)
        for no in reading.places("negation")
    )


def _claims(reading: Reading) -> set[str]:
    """Statements about decoding and cores that only hold on one side."""
    claims = {"nothing_to_do"} if _denies_work(reading) else set()
    if _MEASURED_LOSS.search(reading.text):
        claims.add("measured_loss")
    unable = reading.places("keepup", "idle", "aside", "contrast")
    tools = {hit.piece for hit in reading.hits if hit.concept == "pillow"}
    decoding = [hit.at for hit in reading.hits if hit.concept == "decode" and hit.piece not in tools]
    for no in reading.places("negation"):
        beside = any(0 < thing - no <= BESIDE for thing in decoding)
        if beside and not any(abs(no - at) <= NEAR for at in unable):
            claims.add("no_decoding")
    excuses = {"negation", "contrast", "aside", "small", "hidden", "nogain", "cached", "light"}
    if not reading.concepts & excuses and reading.near(("heavy", "many", "large"), ("decode",), BESIDE):
        claims.add("much_decoding")
    # "photos many and cores few": where adjectives follow their noun, the many are the photos
    of_media = reading.near(("many",), ("image", "jpeg", "video", "photoset"), _ADJACENT)
    both = reading.said_of(("few",), "core") and reading.said_of(("many",), "core")
    if reading.length <= _ONE_CLAIM and both and not of_media:
        claims.add("few_and_many")
    return claims


def _core_facts(reading: Reading) -> set[str]:
    facts: set[str] = set()
    cores = reading.places("core", "cpu")
    own = reading.places("core") or cores
    gpus = reading.places("gpu")
    for value, at in reading.numbers:
        to_core = min((abs(at - core) for core in own), default=_FAR)
        to_gpu = min((gpu - at for gpu in gpus if gpu > at), default=_FAR)
        if to_core <= BESIDE and not (to_gpu <= to_core and not any(0 < core - at <= to_gpu for core in own)):
            if 1 <= value <= _FEW_CORES:
                facts.add("few_cores")
            elif _MANY_CORES <= value <= _MOST_CORES:
                facts.add("many_cores")
    if reading.said_of(("fast", "many", "heavy"), "cpu"):
        facts.add("few_cores" if reading.near(("negation",), ("fast", "many", "heavy"), BESIDE) else "many_cores")
    if reading.said_of(("few", "small"), "core") or reading.said_of(("few", "small"), "cpu"):
        facts.add("few_cores")
    if reading.near(("slow", "keepup", "bottle"), ("core", "cpu", "loader", "pillow", "decode"), _PHRASE):
        facts.add("slow_cpu")
    if "enough" in reading.concepts:
        facts.add("slow_cpu" if reading.concepts & {"keepup", "negation", "idle", "few", "slow"} else "sufficient")
    if reading.near(("edge",), ("cpu", "core"), BESIDE):
        facts.add("few_cores")
    if reading.near(("many",), ("core", "cpu"), BESIDE):
        facts.add("few_cores" if reading.near(("negation",), ("many", "keepup"), BESIDE) else "many_cores")
    if "cloud" in reading.concepts and "core" in reading.concepts:
        facts.add("few_cores")
    return facts


def _load_facts(reading: Reading) -> set[str]:
    facts: set[str] = set()
    gpus, cpus = reading.places("gpu"), reading.places("cpu", "core", "loader", "decode")
    loaders = reading.places("loader", "preproc", "decode")
    for value, at in reading.percentages:
        to_gpu = min((abs(at - place) for place in gpus), default=_FAR)
        to_cpu = min((abs(at - place) for place in cpus), default=_FAR)
        if min(to_gpu, to_cpu) > _RELATED:
            continue
        if value <= _LITTLE and min(abs(at - place) for place in [*loaders, _FAR]) < to_gpu:
            facts.add("little_loading")
        elif to_gpu <= to_cpu:
            facts.add("gpu_busy" if value >= _BUSY else "gpu_idle" if value <= _IDLE else "gpu_some")
        elif value >= _BUSY:
            facts.add("cpu_busy")
    for full in reading.places("full"):
        to_cpu = min((abs(full - place) for place in cpus), default=_FAR)
        if to_cpu <= min([_PHRASE, *(abs(full - place) for place in gpus)]):
            facts.add("cpu_busy")
    if reading.near(("full", "compute"), ("gpu",), _PHRASE):
        facts.add("gpu_busy")
    if reading.near(("storage",), ("slow", "bottle", "idle", "few", "keepup")):
        facts.add("slow_storage")
    if reading.near(("plainmemory",), ("full", "few", "keepup"), _PHRASE) and "cached" not in reading.concepts:
        facts.add("tight_memory")
    if "idle" in reading.concepts or reading.near(("few", "small"), ("util",), BESIDE):
        facts.add("gpu_idle")
    return facts


def _size_facts(reading: Reading) -> set[str]:
    facts: set[str] = set()
    for sides in _SIDES.findall(reading.text):
        shortest, longest = sorted(int(side.rstrip(" k")) * (_THOUSAND if side.endswith("k") else 1) for side in sides)
        if longest <= _TINY_SIDE and shortest >= _LEAST_SIDE:
            facts.add("tiny")
        elif longest >= _LARGE_SIDE and shortest > _TINY_SIDE:
            facts.add("high_resolution")
    if _has_few_images(reading):
        facts.add("few_images")
    if any(int(pixels) >= _LARGE_EDGE for pixels in _PIXELS.findall(reading.text)):
        facts.add("high_resolution")
    if any(not _is_rate(reading.words, hit) for hit in reading.hits if hit.concept == "hires"):
        facts.add("high_resolution")
    if "tinyset" in reading.concepts or reading.near(("small",), ("image", "jpeg"), _ADJACENT):
        facts.add("tiny")
    if reading.near(("long",), ("video", "audio"), _ADJACENT) or reading.near(
        ("large",), ("image", "jpeg", "video", "aerial"), _QUALIFIED
    ):
        facts.add("large_media")
    return facts


def _has_few_images(reading: Reading) -> bool:
    return any(
        _FEWEST_IMAGES <= value <= _FEW_IMAGES
        and any(0 < image - at <= BESIDE / 2 for image in reading.places("image"))
        for value, at in reading.numbers
    )


def _is_rate(words: list[Piece], hit: Hit) -> bool:
    """Whether "4k" counts images per second and is no image size."""
    after = [piece.text for piece in words[hit.piece + hit.size : hit.piece + hit.size + 2]]
    return words[hit.piece].kind == "number" and after[1:] in (["s"], ["sec"], ["per"], ["second"])


def _gpu_facts(reading: Reading) -> set[str]:
    facts: set[str] = set()
    if reading.said_of(("slow", "few"), "gpu"):
        facts.add("slow_gpu")
    if "multi" in reading.concepts or reading.near(("many",), ("gpu",), _ADJACENT):
        facts.add("multi_gpu")
    gpus = [hit.at for hit in reading.hits if hit.concept == "gpu"]
    cores = [hit.at for hit in reading.hits if hit.concept in ("core", "cpu")]
    for value, at in reading.numbers:
        if _TWO <= value <= _MOST_GPUS and value == int(value):
            gap = min((gpu - at for gpu in gpus if 0 <= gpu - at <= BESIDE), default=None)
            if gap is not None and not any(0 <= core - at < gap for core in cores):
                facts.add("multi_gpu")
    return facts
