"""Words for what a graph does to its samples, what was wanted, and what to write."""

from collections.abc import Sequence

from checks.not_carried import first_words
from checks.operator_names import where
from checks.random_augmentation.samples import AugmentedGraph, Flips, most_flipped
from grader_service.model.feedback import Feedback, NextStep

NO_VALIDATION = Feedback(
    outcome="No pipeline for validation was found.",
    wanted="A second pipeline, without random operators, is wanted.",
    next=NextStep(text="Keep it in a variable with `val` in its name:", code="val_pipe = val_pipeline()"),
)


def not_run(graph: AugmentedGraph) -> Feedback:
    """Feedback where a graph gave no samples."""
    return Feedback(
        outcome=f"`{graph.name}` gave no samples to look at, so nothing is counted.",
        seen=first_words(graph.problem or "No image came."),
        next=NextStep(text="Check that it returns images, and that no crop is larger than an image."),
    )


def constant(graph: AugmentedGraph, probability: float) -> Feedback:
    """Feedback for a graph that changes nothing at random."""
    coin = _coin(graph)
    if coin:
        seen, step = coin, NextStep(text="Set a probability between 0 and 1:", code=_coin_flip(probability))
    elif graph.random:
        seen = f"The random operator{graph.where} has no visible effect."
        step = NextStep(text="Pass on what it gives to another operator, or widen its range.")
    else:
        seen = "It has no random operator: Python's random module draws once, when the pipeline is defined."
        step = NextStep(
            text="Draw for each sample, by fn.random.uniform or fn.random.coin_flip:", code=_mirror(probability)
        )
    return Feedback(outcome=f"`{graph.name}` gives the same result for an image every time.", seen=seen, next=step)


def same_in_batch(graph: AugmentedGraph, probability: float) -> Feedback:
    """Feedback for one draw per batch."""
    return Feedback(
        outcome=f"`{graph.name}` changes all samples of a batch in the same way.",
        seen=f"One draw{graph.where} is used for the whole batch.",
        next=NextStep(
            text="Draw for each sample, by fn.random.uniform or fn.random.coin_flip:", code=_mirror(probability)
        ),
    )


def without(graph: AugmentedGraph, kind: str, outcome: str, probability: float) -> Feedback:
    """Feedback for a kind of change that does not come at random."""
    steps = {
        "crop": NextStep(
            text="Draw a new part of the image for each sample:",
            code="images = fn.random_resized_crop(images, size=(224, 224))",
        ),
        "flip": NextStep(text="Flip each sample by a draw of its own:", code=_mirror(probability)),
        "colour": NextStep(
            text="Change the colours of each sample:",
            code="images = fn.brightness_contrast(images, brightness=fn.random.uniform(range=(0.7, 1.3)))",
        ),
    }
    return Feedback(outcome=outcome, seen=_coin(graph) if kind == "flip" else "", next=steps[kind])


def flip_probability(graph: AugmentedGraph, found: Flips, probability: float) -> Feedback:
    """Feedback for flips of another probability than wanted, where that is beyond chance (1e-4)."""
    side = "few" if found.reversed < probability * found.samples else "many"
    coin = next((where(one.file, one.line) for one in graph.random if one.probability is not None), "")
    return Feedback(
        outcome=f"`{graph.name}` flips {found.reversed} of {found.samples} samples, too {side} for a probability of "
        f"{probability:g}.",
        seen="With that probability it would happen less than once in 10,000 times.",
        next=NextStep(text=f"Set the probability{coin}:", code=_coin_flip(probability)),
        numbers={"flipped": found.reversed, "samples": found.samples, "needed": probability},
    )


def same_every_run(graph: AugmentedGraph) -> Feedback:
    """Feedback for a fixed seed."""
    return Feedback(
        outcome=f"Two builds of `{graph.name}` change the images in exactly the same way.",
        next=NextStep(text="Leave out seed=, or take a new one for each run."),
    )


def validation_random(graph: AugmentedGraph) -> Feedback:
    """Feedback for a pipeline for validation that is random."""
    return Feedback(
        outcome=f"`{graph.name}` is for validation and changes images at random, so results cannot be compared.",
        seen=f"It draws{graph.where}." if graph.where else "",
        next=NextStep(
            text="Only resize, crop from the middle and normalise there:",
            code="images = fn.resize(images, resize_shorter=256)\nimages = fn.crop(images, crop=(224, 224))",
        ),
    )


def good(graph: AugmentedGraph, kinds: Sequence[str]) -> Feedback:
    """Feedback for a pass."""
    found = most_flipped(graph.runs)
    said = {
        "crop": "samples hold different parts of the image",
        "flip": f"{found.reversed} of {found.samples} are flipped",
        "colour": "colours vary",
    }
    seen = "; ".join(text for kind, text in said.items() if kind in kinds)
    return Feedback(
        outcome=f"`{graph.name}` changes each sample by a draw of its own.",
        seen=f"{seen[:1].upper()}{seen[1:]}." if seen else "",
        numbers={"flipped": found.reversed, "samples": found.samples} if "flip" in kinds else {},
    )


def _coin(graph: AugmentedGraph) -> str:
    """The learner's coin, where its probability is 0 or 1; empty where there is none."""
    for operator in graph.random:
        if operator.probability in (0.0, 1.0):
            place = where(operator.file, operator.line)
            return f"fn.random.coin_flip{place} has probability {operator.probability:g}."
    return ""


def _coin_flip(probability: float) -> str:
    return f"fn.random.coin_flip(probability={probability:g})"


def _mirror(probability: float) -> str:
    return f"images = fn.crop_mirror_normalize(images, mirror={_coin_flip(probability)})"
