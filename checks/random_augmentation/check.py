"""The check `random_augmentation`: is every sample of a training batch augmented by a draw of its own?"""

from typing import Annotated, Literal

from pydantic import Field

from checks.api import Check, Result, failed, passed, undecided
from checks.codes import GRAPH_PROBE, NO_SUCH_GRAPH, NOT_RUN, common
from checks.probing import no_such_graph, read_probe
from checks.random_augmentation import wording
from checks.random_augmentation.samples import (
    Augmentation,
    AugmentedGraph,
    binomial_p,
    crops,
    flips,
    most_flipped,
    recolours,
)
from grader_service.model.base import ShortText, Wire
from grader_service.model.evidence import Evidence, Need, ProbeSite
from grader_service.model.feedback import Feedback
from grader_service.model.verdict import Outcome, Tier

_WORD = "augmentation"
_ALPHA = 1e-4
"""Probability that a coin of exactly the wanted probability is called wrong; `wording.flip_probability` says it."""
_RANDOM_CROPS = ("RandomResizedCrop", "RandomCrop", "ROIRandomCrop")

Kind = Literal["crop", "flip", "colour"]


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


class RandomAugmentationCheck(Check[Params, Augmentation]):
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

    id = "random_augmentation"
    version = "1.1.0"
    title = "Random augmentation"
    word = _WORD
    needs = frozenset({Need.DISCOVERY})
    probes = ("augmentation",)
    codes = common(_WORD, GRAPH_PROBE, NO_SUCH_GRAPH, NOT_RUN) | {
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
    params_model = Params
    observation_model = Augmentation

    def observe(self, evidence: Evidence) -> Augmentation | Result:
        """See `checks.api.Check.observe`."""
        return read_probe(evidence, _WORD, "augmentation", Augmentation, ProbeSite.GRAPH)

    def judge(self, observation: Augmentation, params: Params) -> Result:
        """See `checks.api.Check.judge`."""
        graph = observation.training(params.graph)
        if graph is None:
            return no_such_graph(_WORD, params.graph)
        if not graph.runs:
            return not_run(_WORD, graph)
        problem = (
            _constant(graph, params)
            or _missing_kind(graph, params)
            or _flip_probability(graph, params)
            or _runs(graph, params)
        )
        if problem is not None:
            code, feedback = problem
            return failed(f"{_WORD}.{code}", feedback, tier=Tier.GRAPH, details=_details(graph))
        if (result := _validation(observation, graph, params)) is not None:
            return result
        return passed(wording.good(graph, params.kinds), tier=Tier.GRAPH, details=_details(graph))


def not_run(word: str, graph: AugmentedGraph) -> Result:
    """The result where a graph gave no samples."""
    return undecided(Outcome.UNVERIFIED, f"{word}.not_run", wording.not_run(graph), tier=Tier.GRAPH)


def _constant(graph: AugmentedGraph, params: Params) -> tuple[str, Feedback] | None:
    probability = params.flip_probability or 0.5
    if not graph.changes:
        return "constant", wording.constant(graph, probability)
    per_batch = [count for build in graph.runs for count in build.distinct_per_batch]
    if per_batch and max(per_batch) == 1 and not recolours(graph.runs):
        return "same_in_batch", wording.same_in_batch(graph, probability)
    return None


def _missing_kind(graph: AugmentedGraph, params: Params) -> tuple[str, Feedback] | None:
    probability = params.flip_probability or 0.5
    for kind in params.kinds:
        problem = {"crop": _no_crop, "flip": _no_flip, "colour": _no_colour}[kind](graph)
        if problem is not None:
            code, outcome = problem
            return code, wording.without(graph, kind, outcome, probability)
    return None


def _no_crop(graph: AugmentedGraph) -> tuple[str, str] | None:
    moved = crops(graph.runs)
    if moved and recolours(graph.runs):
        moved = any(name in one.name for one in graph.random for name in _RANDOM_CROPS) or bool(graph.crops)
    return None if moved else ("no_crop", f"All samples of `{graph.name}` hold the same part of their image.")


def _no_flip(graph: AugmentedGraph) -> tuple[str, str] | None:
    found = most_flipped(graph.runs)
    if found.samples == 0:
        return "no_flip", f"No flip was found in `{graph.name}`: its samples show no direction."
    if found.reversed == 0:
        return "no_flip", f"None of {found.samples} samples of `{graph.name}` is flipped."
    if found.reversed == found.samples:
        return "always_flips", f"All {found.samples} samples of `{graph.name}` are flipped."
    return None


def _no_colour(graph: AugmentedGraph) -> tuple[str, str] | None:
    if recolours(graph.runs):
        return None
    return "no_colour", f"The colours of an image come out of `{graph.name}` the same every time."


def _flip_probability(graph: AugmentedGraph, params: Params) -> tuple[str, Feedback] | None:
    if params.flip_probability is None or "flip" not in params.kinds:
        return None
    found = most_flipped(graph.runs)
    if binomial_p(found.reversed, found.samples, params.flip_probability) >= _ALPHA:
        return None
    return "flip_probability", wording.flip_probability(graph, found, params.flip_probability)


def _runs(graph: AugmentedGraph, params: Params) -> tuple[str, Feedback] | None:
    if not params.new_every_run or not graph.equal_runs:
        return None
    return "same_every_run", wording.same_every_run(graph)


def _validation(observation: Augmentation, training: AugmentedGraph, params: Params) -> Result | None:
    others = [one for one in observation.graphs if one.is_for_validation and one is not training and not one.refused]
    if params.validation == "required" and not others:
        return failed(f"{_WORD}.no_validation", wording.NO_VALIDATION, tier=Tier.GRAPH)
    wrong = next((one for one in others if one.changes), None)
    if params.validation == "ignored" or wrong is None:
        return None
    feedback = wording.validation_random(wrong)
    return failed(f"{_WORD}.validation_random", feedback, tier=Tier.GRAPH, details=_details(wrong))


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
