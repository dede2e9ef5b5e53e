"""The check `auto_augment`: does the graph hold one of DALI's automatic augmentations, and does it act?"""

from typing import Annotated, Literal

from pydantic import Field

from checks.api import FromProbe, Result, check, failed, passed
from checks.observations.augmentation import Augmentation, AugmentedGraph, not_run
from checks.observations.carried import training_graph
from checks.probing import no_such_graph
from grader_service.model.base import ShortText

_LEAST_MADE = 8
"""Operators that DALI's own modules make for the smallest useful list of augmentations."""
_LEAST_SPLITS = 2
_SAMPLES = 32
"""Of one colour, as the probe draws them."""
_CALLS = {
    "auto_augment": "auto_augment.auto_augment(images)",
    "rand_augment": "rand_augment.rand_augment(images, n=2, m=9)",
    "trivial_augment": "trivial_augment.trivial_augment_wide(images)",
}


@check(
    version="1.1.0",
    title="Automatic augmentation",
    codes={
        "ok": "one of DALI's automatic augmentations acts on the images",
        "wrong_policy": "another automatic augmentation was wanted",
    },
)
def auto_augment(
    seen: Annotated[Augmentation, FromProbe("augmentation")],
    *,
    policy: Literal["any", "auto_augment", "rand_augment", "trivial_augment"] = "any",
    min_different: Annotated[int, Field(ge=2, le=32)] = 4,
    graph: ShortText | None = None,
) -> Result:
    """Judges whether a graph augments by AutoAugment, RandAugment or TrivialAugment, as DALI builds them.

    Evidence:
        probe `augmentation`: which files of `nvidia.dali.auto_aug` made how many operators of the learner's graph, how
            many of them split a batch by a condition, and how many different samples one picture gives, in a pod of
            ours. DALI 2.4 builds 178 operators for TrivialAugment, 195 to 340 for AutoAugment, 336 for RandAugment.
    Points: all or nothing.
    Errors: 0 false accepts on 8 failing and 0 false rejects on 8 passing controls in
        `tests/checks/graphs/test_auto_augment.py`.
    Cannot detect: an automatic augmentation that the learner wrote without DALI's modules: it is not found. Origins are
        file names that the learner's process wrote into the graph: files of these names, with as many operators and a
        visible effect, would pass.

    Args:
        policy: Which automatic augmentation the lab asks for.
        min_different: How many visibly different samples of 32 a picture of one colour must give at least.
        graph: Variable of the training pipeline or iterator; the best candidate that is not for validation if absent.
    """
    found = training_graph(seen.graphs, graph)
    if found is None:
        return no_such_graph(graph)
    details = {"graph": found.name, "operators": found.operators, "splits": found.splits} | dict(found.origins)
    used = _policy_of(found)
    if used is None:
        own = " and conditions of its own, not those of nvidia.dali.auto_aug" if found.splits >= _LEAST_SPLITS else ""
        return failed(
            "not_found",
            f"`{found.name}` holds none of DALI's automatic augmentations.",
            seen=f"It has {found.operators} operators{own}.",
            next="Define the pipeline with enable_conditionals=True, and return what this gives:",
            write=_lines("auto_augment" if policy == "any" else policy),
            details=details,
        )
    if policy not in ("any", used):
        wrong = f"`{found.name}` uses {used}, not {policy}."
        return failed("wrong_policy", wrong, next="Call the wanted one:", write=_lines(policy), details=details)
    if not found.runs:
        return not_run(found)
    different = min(_SAMPLES, max(build.distinct[2] for build in found.runs))
    details |= {"policy": used, "different": different}
    gave = f"{_SAMPLES} samples of one picture gave {different} different result{'' if different == 1 else 's'}."
    numbers = {"different": different, "needed": min_different}
    if different < min_different:
        return failed(
            "no_effect",
            f"`{found.name}` uses {used}, which hardly changes a picture.",
            seen=gave,
            wanted=f"At least {min_different} are needed.",
            next="Return the augmented images, and raise the magnitude or use DALI's own list of augmentations:",
            write=_lines(used),
            numbers=numbers,
            details=details,
        )
    good, needed = f"`{found.name}` augments by {used}.", f"At least {min_different} were needed."
    return passed(good, seen=gave, wanted=needed, numbers=numbers, details=details)


def _lines(policy: str) -> str:
    """How this augmentation is imported and called."""
    return f"from nvidia.dali.auto_aug import {policy}\nimages = {_CALLS[policy]}"


def _policy_of(graph: AugmentedGraph) -> str | None:
    """Which of DALI's automatic augmentations made operators of this graph; None when none did."""
    if sum(graph.origins.values()) < _LEAST_MADE or graph.splits < _LEAST_SPLITS:
        return None
    best = max(_CALLS, key=lambda policy: graph.origins.get(f"{policy}.py", 0))
    return best if graph.origins.get(f"{best}.py") else None
