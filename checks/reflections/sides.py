"""Weighs an item's evidence for each side of the modality dependency.

DALI wins where compressed media must be decoded or transformed faster than the host's CPU can, and loses where the
input needs no such work or something else sets the pace. An item's concepts and facts each speak for one side; the
weights below say how strongly. Judged are lexical signs of a scenario, never its truth: a well-formed untrue claim
about the right kind of scenario passes.
"""

from dataclasses import dataclass

from checks.reflections.reading import Reading

WIN_WEIGHTS = {
    # what the samples are
    "video": 1.5, "audio": 1.0, "image": 0.5, "jpeg": 0.75, "photoset": 0.75, "rawformat": 0.25, "domain": 0.5,
    # what is done to them
    "decode": 1.0, "augment": 1.0, "resize": 0.75, "preproc": 0.75, "pillow": 0.5, "views": 0.75, "features": 1.0,
    "random": 0.5, "hwdec": 1.0, "offload": 0.75, "loader": 0.75,
    # the machine and the load on it
    "few_cores": 1.0, "slow_cpu": 0.5, "multi_gpu": 1.0, "cpu_busy": 1.0, "gpu_idle": 1.0, "share": 0.5, "edge": 0.5,
    "bottle": 0.5, "slow": 0.5, "keepup": 0.75, "cloud": 0.25, "cpu": 0.25, "core": 0.25, "gpu": 0.25, "fast": 0.25,
    # size and kind of the job
    "high_resolution": 1.0, "large_media": 0.5, "light_model": 1.0, "infer": 1.0, "tuning": 0.25, "heavy": 0.25,
    "scale": 0.25,
}  # fmt: skip
LOSS_WEIGHTS = {
    # inputs that need little or no decoding
    "text": 1.0, "tabular": 1.0, "series": 1.0, "otherdata": 1.0, "array": 0.75, "cached": 0.75, "tiny": 1.0,
    "tinyset": 0.5, "smalldata": 0.75, "few_images": 0.75, "small": 0.25, "nothing_to_do": 0.75, "negation": 0.25,
    "nogain": 0.5, "measured_loss": 2.0,
    # the model sets the pace
    "big_model": 1.0, "long_step": 0.75, "slow_gpu": 0.5, "hidden": 0.5, "compute": 1.0, "gpu_busy": 1.25,
    # the loader is no limit, or something before it is
    "many_cores": 1.0, "sufficient": 0.75, "little_loading": 1.0, "storage": 1.0, "slow_storage": 0.75, "bottle": 0.25,
    # it cannot be used, or costs too much
    "memory": 1.0, "tight_memory": 0.5, "custom": 1.0, "nocuda": 1.0, "latency": 1.0, "effort": 0.75, "repro": 1.0,
    "overhead": 0.75, "rawformat": 0.75, "faulty": 0.75,
}  # fmt: skip
_REPEAT, _MOST_REPEATS = 0.25, 2
"""A second and third term of the same concept (`BERT` and `tokens`) make it surer."""

OTHER_INPUTS = frozenset({"text", "tabular", "series", "otherdata"})
MEDIA = frozenset({"image", "jpeg", "video", "audio", "photoset", "features"})
_ANCHORS = MEDIA | {"high_resolution", "decode", "augment", "resize", "preproc", "pillow", "views", "loader", "hwdec"}
_TOGETHER = 0.5
_TELLING_PAIRS: tuple[tuple[set[str], set[str]], ...] = (
    ({"multi_gpu"}, {"cpu", "core", "share", "loader", "decode", "keepup", "slow_cpu"}),
    ({"infer"}, {"image", "jpeg", "video", "photoset"}),
    ({"augment"}, {"gpu", "cpu", "heavy", "image", "jpeg", "video", "loader"}),
    ({"share"}, {"cpu", "core"}),
    ({"few_cores"}, {"image", "jpeg", "video", "photoset", "decode", "augment"}),
    ({"high_resolution"}, {"decode", "few_cores", "video", "resize", "augment", "random"}),
)
"""What says more together than apart."""
_ANCHORING_GROUPS = (
    {"multi_gpu", "share"},
    {"share", "core"},
    {"few_cores", "gpu"},
    {"gpu_idle", "light_model"},
    {"gpu_idle", "cpu"},
    {"multi_gpu", "cpu"},
    {"multi_gpu", "core"},
)
"""Together these tell of starvation without naming any data."""
_HARD_LOSS = OTHER_INPUTS | {
    *("tiny", "array", "cached", "smalldata", "big_model", "gpu_busy", "long_step", "compute", "many_cores"),
    *("storage", "memory", "custom", "nocuda", "latency", "repro", "measured_loss"),
}  # fmt: skip
"""Scenarios in which DALI loses, as against mere remarks."""
_HARD_WIN = frozenset(
    {
        *("video", "features", "augment", "views", "random", "hwdec", "high_resolution", "large_media", "infer"),
        *("few_cores", "multi_gpu", "cpu_busy", "gpu_idle", "slow_cpu", "light_model", "keepup"),
    }
)  # fmt: skip
_DOMAINS = frozenset(
    {"medical", "aerial", "factory", "retail", "traffic", "nature", "people", "document", "sport", "security"}
)
WIN_NEEDED, LOSS_NEEDED = 1.75, 1.0


@dataclass(frozen=True)
class Evidence:
    """What one item says for each side."""

    win: float
    loss: float
    hard_wins: frozenset[str]
    hard_losses: frozenset[str]
    anchored: bool
    """It names media or their preparation."""


def weigh(reading: Reading) -> Evidence:
    """Adds up the evidence; what is only named for contrast ("unlike BERT, ...") counts for nothing."""
    named = _without_asides(reading)
    facts = set(reading.facts)
    if named & _DOMAINS:
        facts.add("domain")
    if facts & {"few_cores", "multi_gpu"} and not reading.concepts & {"aside", "aside_before"}:
        facts.discard("many_cores")
    if "tinyset" in reading.concepts - named:
        facts.discard("tiny")
    if "high_resolution" in facts:
        facts.discard("large_media")
    if facts & {"cpu_busy", "few_cores"} or ("gpu_idle" in facts and "gpu_busy" in facts and "compute" not in named):
        facts.discard("gpu_busy")
    everything = named | facts
    together = sum(_TOGETHER for first, second in _TELLING_PAIRS if first <= everything and second & everything)
    return Evidence(
        win=_sum(reading, everything, WIN_WEIGHTS) + together,
        loss=_sum(reading, everything, LOSS_WEIGHTS),
        hard_wins=_HARD_WIN & everything,
        hard_losses=_HARD_LOSS & everything,
        anchored=bool(everything & _ANCHORS) or any(group <= everything for group in _ANCHORING_GROUPS),
    )


def _sum(reading: Reading, everything: frozenset[str] | set[str], weights: dict[str, float]) -> float:
    total = 0.0  # of quarters, so that the order of a set does not matter
    for name in everything:
        weight = weights.get(name, 0.0)
        if weight >= _REPEAT * 3:
            terms = len({reading.words[hit.piece].text for hit in reading.hits if hit.concept == name})
            phrases = any(hit.size > 1 for hit in reading.hits if hit.concept == name)
            weight += _REPEAT * min(_MOST_REPEATS, max(terms - 1, 0) + phrases)
        total += weight
    return total


def _without_asides(reading: Reading) -> set[str]:
    """Concepts, except those that stand only inside "unlike ..." or "not because of ..."."""
    aside: set[int] = set()
    clauses = [piece.clause for piece in reading.words]
    for hit in reading.hits:
        if hit.concept == "aside":
            aside.update(number for number in range(hit.piece, len(clauses)) if clauses[number] == clauses[hit.piece])
        elif hit.concept == "aside_before":
            aside.update(number for number in range(hit.piece) if clauses[number] == clauses[hit.piece])
    if not aside:
        return set(reading.concepts)
    return {hit.concept for hit in reading.hits if hit.piece not in aside or hit.concept in _ANCHORS | _HARD_WIN}
