"""The check `random_augmentation`: is every sample of a training batch augmented by a draw of its own?"""

from collections.abc import Mapping, Sequence
from typing import Annotated, ClassVar, Literal

from pydantic import BaseModel, Field

from checks.api import API_VERSION, CheckResult, failed, passed, undecided
from checks.codes import GRAPH_PROBE, NO_SUCH_GRAPH, NOT_RUN, common
from checks.probing import no_such_graph, read_probe
from checks.random_augmentation.samples import (
    Augmentation,
    AugmentedGraph,
    Build,
    Flips,
    binomial_p,
    crops,
    flips,
    recolours,
)
from grader_service.model.base import ShortText, Wire
from grader_service.model.evidence import Evidence, Need
from grader_service.model.verdict import Outcome, Tier

_WORD = "augmentation"
_ALPHA = 1e-4
"""Probability that a coin of exactly the wanted probability is called wrong."""
_RANDOM_CROPS = ("RandomResizedCrop", "RandomCrop", "ROIRandomCrop")

Kind = Literal["crop", "flip", "colour"]
_HOW = {
    "crop": "fn.random_resized_crop, fn.decoders.image_random_crop, or crop_pos_x=fn.random.uniform(range=(0, 1)), "
    "draw a new part of the image for each sample",
    "flip": "mirror=fn.random.coin_flip(probability=0.5) in fn.crop_mirror_normalize flips each sample by a "
    "draw of its "
    "own",
    "colour": "fn.color_twist or fn.brightness_contrast with arguments from fn.random.uniform change each "
    "sample's colours",
}


class Params(Wire):
    """What the lab asks of the augmentation."""

    kinds: Annotated[tuple[Kind, ...], Field(max_length=3)] = ("crop", "flip")
    """Which changes must be there and random; an empty list asks for any visible one."""
    flip_probability: Annotated[float, Field(gt=0, lt=1)] | None = 0.5
    """Wanted probability of a flip, tested with an error of 1e-4; not looked at if absent, or without `flip`."""
    validation: Literal["if_found", "required", "ignored"] = "if_found"
    """Whether pipelines with `val`, `eval` or `test` in their name must not be random."""
    new_every_run: bool = False
    """Whether two builds must differ, which a fixed seed prevents."""
    graph: ShortText | None = None
    """Variable of the training pipeline or iterator; the best candidate that is not for validation if absent."""


class RandomAugmentationCheck:
    """Judges whether a training graph changes each sample by a draw of its own, in the ways that the lab wants.

    Evidence:
        probe `augmentation`: 64 samples of a ramp of grey across, 32 of one down and 32 of one colour, and a part of
            them from a second build, from the learner's graph in a pod of ours. The level in the middle and the growth
            of a ramp tell crops and flips.
    Points: all or nothing.
    Errors: 0 false accepts on 12 failing and 0 false rejects on 11 passing controls in
        `tests/builtin_graph/test_random_augmentation.py`. A fair coin is called unfair with a probability of at most
        1e-4; one of 0.1 or 0.9 is found out with more than 99.9 %, one of 0.3 with about 23 %.
    Cannot detect: whether ranges are sensible; which of several operators made a change. Where colours change as well,
        a random crop counts when samples differ and a cropping operator stands in the graph; an augmentation that
        inverts images looks like flips.
    """

    id: ClassVar[str] = "random_augmentation"
    version: ClassVar[str] = "1.0.0"
    api_version: ClassVar[int] = API_VERSION
    title: ClassVar[str] = "Random augmentation"
    needs: ClassVar[frozenset[Need]] = frozenset({Need.DISCOVERY})
    probes: ClassVar[tuple[str, ...]] = ("augmentation",)
    codes: ClassVar[Mapping[str, str]] = common(_WORD, GRAPH_PROBE, NO_SUCH_GRAPH, NOT_RUN) | {
        "augmentation.ok": "each sample is changed by a draw of its own",
        "augmentation.constant": "an image comes out the same every time",
        "augmentation.same_in_batch": "one draw is used for a whole batch",
        "augmentation.no_crop": "all samples hold the same part of their image",
        "augmentation.no_flip": "no sample is flipped",
        "augmentation.always_flips": "every sample is flipped",
        "augmentation.no_colour": "colours come out the same every time",
        "augmentation.flip_probability": "flips have another probability than wanted",
        "augmentation.same_every_run": "two builds change the images in the same way",
        "augmentation.no_validation": "no pipeline for validation was found",
        "augmentation.validation_random": "a pipeline for validation is random",
    }
    params_model: ClassVar[type[BaseModel]] = Params
    observation_model: ClassVar[type[BaseModel]] = Augmentation

    def observe(self, evidence: Evidence) -> Augmentation | CheckResult:
        """See `checks.api.Check.observe`."""
        return read_probe(evidence, _WORD, "augmentation", Augmentation)

    def judge(self, observation: Augmentation, params: Params) -> CheckResult:
        """See `checks.api.Check.judge`."""
        graph = observation.training(params.graph)
        if graph is None:
            return no_such_graph(_WORD, params.graph)
        if not graph.runs:
            return not_run(_WORD, graph)
        return (
            _constant(graph)
            or _missing_kinds(graph, params)
            or _flip_probability(graph, params)
            or _runs(graph, params)
            or _validation(observation, graph, params)
            or _passed(graph, params)
        )


def not_run(word: str, graph: AugmentedGraph) -> CheckResult:
    """The result where a graph gave no samples."""
    return undecided(
        Outcome.UNVERIFIED,
        f"{word}.not_run",
        f"`{graph.name}` could not be looked at: {graph.problem or 'it gave no images'}.",
        tier=Tier.GRAPH,
    )


def _constant(graph: AugmentedGraph) -> CheckResult | None:
    if not graph.changes:
        return failed(
            f"{_WORD}.constant",
            f"`{graph.name}` gives the same result for an image every time. {_why_constant(graph)}",
            tier=Tier.GRAPH, details=_details(graph),
        )  # fmt: skip
    per_batch = [count for build in graph.runs for count in build.distinct_per_batch]
    if per_batch and max(per_batch) == 1 and not recolours(graph.runs):
        return failed(
            f"{_WORD}.same_in_batch",
            f"All samples of a batch of `{graph.name}` are changed in the same way{graph.where}: one draw is used for "
            "the whole batch. Take random numbers from fn.random.uniform or fn.random.coin_flip, which draw for each "
            "sample.",
            tier=Tier.GRAPH, details=_details(graph),
        )  # fmt: skip
    return None


def _why_constant(graph: AugmentedGraph) -> str:
    for operator in graph.random:
        place = f" ({operator.file}, line {operator.line})" if operator.file and operator.line is not None else ""
        if operator.probability is not None and operator.probability in (0.0, 1.0):
            return f"fn.random.coin_flip has probability {operator.probability:g}{place}, so it always says the same."
    if graph.random:
        return f"Its random operator{graph.where} has no visible effect: use what it gives, or widen its range."
    return (
        "It has no random operator. A number from Python's random module is drawn once, when the pipeline is defined; "
        "use fn.random.uniform or fn.random.coin_flip, which draw for each sample."
    )


def _missing_kinds(graph: AugmentedGraph, params: Params) -> CheckResult | None:
    for kind in params.kinds:
        problem = {"crop": _no_crop, "flip": _no_flip, "colour": _no_colour}[kind](graph)
        if problem is not None:
            code, text = problem
            return failed(
                f"{_WORD}.{code}", f"{text} For example, {_HOW[kind]}.",
                tier=Tier.GRAPH, details=_details(graph),
            )  # fmt: skip
    return None


def _no_crop(graph: AugmentedGraph) -> tuple[str, str] | None:
    moved = crops(graph.runs)
    if moved and recolours(graph.runs):
        moved = any(name in one.name for one in graph.random for name in _RANDOM_CROPS) or bool(graph.crops)
    return None if moved else ("no_crop", f"All samples of `{graph.name}` hold the same part of their image.")


def _no_flip(graph: AugmentedGraph) -> tuple[str, str] | None:
    found = _most_flipped(graph.runs)
    if found.samples == 0:
        return "no_flip", f"In samples of `{graph.name}` no direction can be seen, so no flip was found."
    if found.reversed == 0:
        return "no_flip", f"None of {found.samples} samples of `{graph.name}` is flipped{_coin(graph)}."
    if found.reversed == found.samples:
        return "always_flips", f"All {found.samples} samples of `{graph.name}` are flipped{_coin(graph)}."
    return None


def _no_colour(graph: AugmentedGraph) -> tuple[str, str] | None:
    changed = recolours(graph.runs)
    return (
        None if changed else ("no_colour", f"The colours of an image come out of `{graph.name}` the same every time.")
    )


def _most_flipped(builds: Sequence[Build]) -> Flips:
    """Of both directions the one in which flips are neither never nor always, else the one with more."""
    across = flips([ends for build in builds for ends in build.across])
    down = flips([ends for build in builds for ends in build.down])
    return max(across, down, key=lambda one: (0 < one.reversed < one.samples, one.reversed))


def _coin(graph: AugmentedGraph) -> str:
    """The learner's coin, where its probability is 0 or 1."""
    for operator in graph.random:
        if operator.probability is not None and operator.probability in (0.0, 1.0):
            place = f" in {operator.file}, line {operator.line}" if operator.file and operator.line is not None else ""
            return f" (fn.random.coin_flip has probability={operator.probability:g}{place})"
    return ""


def _flip_probability(graph: AugmentedGraph, params: Params) -> CheckResult | None:
    if params.flip_probability is None or "flip" not in params.kinds:
        return None
    found = _most_flipped(graph.runs)
    chance = binomial_p(found.reversed, found.samples, params.flip_probability)
    if chance >= _ALPHA:
        return None
    return failed(
        f"{_WORD}.flip_probability",
        f"`{graph.name}` flips {found.reversed} of {found.samples} samples{graph.where}; with a probability of "
        f"{params.flip_probability:g} that would happen once in {min(1 / max(chance, 1e-12), 1e12):.0f} times. Set "
        f"fn.random.coin_flip(probability={params.flip_probability:g}).",
        tier=Tier.GRAPH, details=_details(graph) | {"p": chance},
    )  # fmt: skip


def _runs(graph: AugmentedGraph, params: Params) -> CheckResult | None:
    if not params.new_every_run or not graph.equal_runs:
        return None
    return failed(
        f"{_WORD}.same_every_run",
        f"Two builds of `{graph.name}` change the images in exactly the same way. Leave out the seed, or take "
        "a new one "
        "for each run.",
        tier=Tier.GRAPH, details=_details(graph),
    )  # fmt: skip


def _validation(observation: Augmentation, training: AugmentedGraph, params: Params) -> CheckResult | None:
    others = [one for one in observation.graphs if one.is_for_validation and one is not training and not one.refused]
    if params.validation == "required" and not others:
        return failed(
            f"{_WORD}.no_validation",
            "No pipeline for validation was found. Build a second one without random operators, in a variable with "
            "`val` in its name.",
            tier=Tier.GRAPH,
        )
    wrong = next((one for one in others if one.changes), None)
    if params.validation == "ignored" or wrong is None:
        return None
    return failed(
        f"{_WORD}.validation_random",
        f"`{wrong.name}` is for validation and changes images at random{wrong.where}. Only resize, crop from "
        "the middle "
        "and normalise there, so that results can be compared.",
        tier=Tier.GRAPH, details=_details(wrong),
    )  # fmt: skip


def _passed(graph: AugmentedGraph, params: Params) -> CheckResult:
    found = _most_flipped(graph.runs)
    said = [f"Samples of one image come out of `{graph.name}` different"]
    if "crop" in params.kinds:
        said.append("they hold different parts of it")
    if "flip" in params.kinds:
        said.append(f"{found.reversed} of {found.samples} are flipped")
    if "colour" in params.kinds:
        said.append("their colours vary")
    return passed(f"{_WORD}.ok", "; ".join(said) + ".", tier=Tier.GRAPH, details=_details(graph))


def _details(graph: AugmentedGraph) -> dict[str, object]:
    across = flips([ends for build in graph.runs for ends in build.across])
    down = flips([ends for build in graph.runs for ends in build.down])
    return {
        "graph": graph.name,
        "distinct": [list(build.distinct) for build in graph.runs],
        "flipped_across": [across.reversed, across.samples],
        "flipped_down": [down.reversed, down.samples],
        "crops": crops(graph.runs),
        "recolours": recolours(graph.runs),
        "equal_runs": graph.equal_runs,
        "random": [operator.name for operator in graph.random],
    }


CHECK = RandomAugmentationCheck()
