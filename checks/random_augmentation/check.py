"""The check `random_augmentation`: is every sample of a training batch augmented by a draw of its own?"""

from typing import Annotated, Literal

from pydantic import Field

from checks.api import FromProbe, Parts, Result, check, failed, passed
from checks.dali_operators import row_of
from checks.observations.augmentation import Augmentation, AugmentedGraph, binomial_p, not_run
from checks.observations.carried import training_graph
from checks.operator_names import where
from checks.probing import no_such_graph
from grader_service.model.base import ShortText

_ALPHA = 1e-4
"""Probability that a coin of exactly the wanted probability is called wrong; the learner is told of it."""
_EACH = "Draw for each sample, by fn.random.uniform or fn.random.coin_flip:"

Kind = Literal["crop", "flip", "colour"]


@check(version="1.1.0", title="Random augmentation", word="augmentation")
def random_augmentation(
    seen: Annotated[Augmentation, FromProbe("augmentation")],
    *,
    kinds: Annotated[tuple[Kind, ...], Field(max_length=3)] = ("crop", "flip"),
    flip_probability: Annotated[float, Field(gt=0, lt=1)] | None = 0.5,
    validation: Literal["if_found", "required", "ignored"] = "if_found",
    new_every_run: bool = False,
    graph: ShortText | None = None,
) -> Result:
    """Judges whether a training graph changes each sample by a draw of its own, in the ways that the lab wants.

    Evidence:
        probe `augmentation`: 64 samples of a ramp of grey across, 32 of one down and 32 of one colour, and a part of
            them from a second build, from the learner's graph in a pod of ours. The level in the middle and the growth
            of a ramp tell crops and flips.
    Points: all or nothing.
    Errors: 0 false accepts on 12 failing and 0 false rejects on 11 passing controls in
        `tests/checks/graphs/test_random_augmentation.py`. A fair coin is called unfair with a probability of at most
        1e-4; one of 0.1 or 0.9 is found out with more than 99.9 %, one of 0.3 with about 23 %.
    Cannot detect: whether ranges are sensible; which of several operators made a change. Where colours change as well,
        a random crop counts when samples differ and a cropping operator stands in the graph; an augmentation that
        inverts images looks like flips.

    Args:
        kinds: Which changes must be there and random; an empty list asks for any visible one.
        flip_probability: Wanted probability of a flip, tested with an error of 1e-4; not looked at if absent, or
            without `flip`.
        validation: Whether pipelines with `val`, `eval` or `test` in their name must not be random.
        new_every_run: Whether two builds must differ, which a fixed seed prevents.
        graph: Variable of the training pipeline or iterator; the best candidate that is not for validation if absent.
    """
    training = training_graph(seen.graphs, graph)
    if training is None:
        return no_such_graph(graph)
    if not training.runs:
        return not_run(training)
    coin = f"fn.random.coin_flip(probability={flip_probability or 0.5:g})"
    problem = _constant(training, coin) or _without(training, kinds, coin)
    if problem is None and flip_probability is not None and "flip" in kinds:
        problem = _unfair(training, flip_probability, coin)
    if problem is None and new_every_run and training.equal_runs:
        same = f"Two builds of `{training.name}` change the images in exactly the same way."
        problem = failed("same_every_run", same, next="Leave out seed=, or take a new one for each run.")
    if problem is not None:
        return problem.model_copy(update={"details": _details(training)})
    others = [one for one in seen.graphs if one.is_for_validation and one is not training and not one.refused]
    if validation == "required" and not others:
        return failed(
            "no_validation",
            "No pipeline for validation was found.",
            wanted="A second pipeline, without random operators, is wanted.",
            next="Keep it in a variable with `val` in its name:",
            write="val_pipe = val_pipeline()",
        )
    wrong = next((one for one in others if one.changes), None)
    if wrong is not None and validation != "ignored":
        return failed(
            "validation_random",
            f"`{wrong.name}` is for validation and changes images at random, so results cannot be compared.",
            seen=f"It draws{wrong.where}." if wrong.where else "",
            next="Only resize, crop from the middle and normalise there:",
            write="images = fn.resize(images, resize_shorter=256)\nimages = fn.crop(images, crop=(224, 224))",
            details=_details(wrong),
        )
    flipped, samples = training.most_flipped
    texts = {
        "crop": "samples hold different parts of the image",
        "flip": f"{flipped} of {samples} are flipped",
        "colour": "colours vary",
    }
    found = "; ".join(text for kind, text in texts.items() if kind in kinds)
    return passed(
        f"`{training.name}` changes each sample by a draw of its own.",
        seen=f"{found[:1].upper()}{found[1:]}." if found else "",
        numbers={"flipped": flipped, "samples": samples} if "flip" in kinds else {},
        details=_details(training),
    )


def _constant(graph: AugmentedGraph, coin: str) -> Result | None:
    """Nothing is drawn, or one draw is used for a whole batch."""
    if not graph.changes:
        outcome = f"`{graph.name}` gives the same result for an image every time."
        if stuck := _stuck_coin(graph):
            return failed("constant", outcome, seen=stuck, next="Set a probability between 0 and 1:", write=coin)
        if graph.random:
            seen = f"The random operator{graph.where} has no visible effect."
            action = "Pass on what it gives to another operator, or widen its range."
            return failed("constant", outcome, seen=seen, next=action)
        seen = "It has no random operator: Python's random module draws once, when the pipeline is defined."
        return failed("constant", outcome, seen=seen, next=_EACH, write=_mirror(coin))
    per_batch = [count for build in graph.runs for count in build.distinct_per_batch]
    if max(per_batch, default=0) == 1 and not graph.recolours:
        return failed(
            "same_in_batch",
            f"`{graph.name}` changes all samples of a batch in the same way.",
            seen=f"One draw{graph.where} is used for the whole batch.",
            next=_EACH,
            write=_mirror(coin),
        )
    return None


def _without(graph: AugmentedGraph, kinds: tuple[Kind, ...], coin: str) -> Result | None:
    """A kind of change does not come at random; the first of the lab's list."""
    for kind in kinds:
        if kind == "crop" and not _crops(graph):
            return failed(
                "no_crop",
                f"All samples of `{graph.name}` hold the same part of their image.",
                next="Draw a new part of the image for each sample:",
                write="images = fn.random_resized_crop(images, size=(224, 224))",
            )
        if kind == "flip" and (result := _no_flip(graph, coin)) is not None:
            return result
        if kind == "colour" and not graph.recolours:
            return failed(
                "no_colour",
                f"The colours of an image come out of `{graph.name}` the same every time.",
                next="Change the colours of each sample:",
                write="images = fn.brightness_contrast(images, brightness=fn.random.uniform(range=(0.7, 1.3)))",
            )
    return None


def _crops(graph: AugmentedGraph) -> bool:
    """Where colours change as well, the ramps say too little: then an operator has to stand in the graph."""
    named = any(row_of(one.name).step == "random crop" for one in graph.random) or bool(graph.crops)
    return graph.moves and (named or not graph.recolours)


def _no_flip(graph: AugmentedGraph, coin: str) -> Result | None:
    flipped, samples = graph.most_flipped
    action = "Flip each sample by a draw of its own:"
    told = Parts(seen=_stuck_coin(graph), next=action, write=_mirror(coin))
    if samples == 0:
        return failed("no_flip", f"No flip was found in `{graph.name}`: its samples show no direction.", **told)
    if flipped == 0:
        return failed("no_flip", f"None of {samples} samples of `{graph.name}` is flipped.", **told)
    if flipped == samples:
        return failed("always_flips", f"All {samples} samples of `{graph.name}` are flipped.", **told)
    return None


def _unfair(graph: AugmentedGraph, probability: float, coin: str) -> Result | None:
    """Flips have another probability than wanted, where that is beyond chance."""
    flipped, samples = graph.most_flipped
    if binomial_p(flipped, samples, probability) >= _ALPHA:
        return None
    side = "few" if flipped < probability * samples else "many"
    place = next((where(one.file, one.line) for one in graph.random if one.probability is not None), "")
    return failed(
        "flip_probability",
        f"`{graph.name}` flips {flipped} of {samples} samples, too {side} for a probability of {probability:g}.",
        seen="With that probability it would happen less than once in 10,000 times.",
        next=f"Set the probability{place}:",
        write=coin,
        numbers={"flipped": flipped, "samples": samples, "needed": probability},
    )


def _stuck_coin(graph: AugmentedGraph) -> str:
    """The learner's coin, where its probability is 0 or 1; empty where there is none."""
    for one in graph.random:
        if one.probability in (0.0, 1.0):
            return f"fn.random.coin_flip{where(one.file, one.line)} has probability {one.probability:g}."
    return ""


def _mirror(coin: str) -> str:
    return f"images = fn.crop_mirror_normalize(images, mirror={coin})"


def _details(graph: AugmentedGraph) -> dict[str, object]:
    across, down = graph.flips
    return {
        "graph": graph.name,
        "distinct": [list(build.distinct) for build in graph.runs],
        "flipped_across": list(across),
        "flipped_down": list(down),
        "crops": graph.moves,
        "recolours": graph.recolours,
        "equal_runs": graph.equal_runs,
        "random": [operator.name for operator in graph.random],
    }
