"""The check `auto_augment`: does the graph hold one of DALI's automatic augmentations, and does it act?"""

from typing import Annotated, Literal

from pydantic import Field

from checks.api import Check, Result, failed, passed
from checks.codes import GRAPH_PROBE, NO_SUCH_GRAPH, NOT_RUN, common
from checks.probing import no_such_graph, read_probe
from checks.random_augmentation.check import not_run
from checks.random_augmentation.samples import Augmentation, AugmentedGraph
from grader_service.model.base import ShortText, Wire
from grader_service.model.evidence import Evidence, Need, ProbeSite
from grader_service.model.feedback import Feedback, NextStep
from grader_service.model.verdict import Tier

_WORD = "auto_augment"
_POLICIES = ("auto_augment", "rand_augment", "trivial_augment")
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


class Params(Wire):
    """Which automatic augmentation the lab asks for."""

    policy: Literal["any", "auto_augment", "rand_augment", "trivial_augment"] = "any"
    min_different: Annotated[int, Field(ge=2, le=32)] = 4
    """How many visibly different samples of 32 a picture of one colour must give at least."""
    graph: ShortText | None = None
    """Variable of the training pipeline or iterator; the best candidate that is not for validation if absent."""


class AutoAugmentCheck(Check[Params, Augmentation]):
    """Judges whether a graph augments by AutoAugment, RandAugment or TrivialAugment, as DALI builds them.

    Evidence:
        probe `augmentation`: which files of `nvidia.dali.auto_aug` made how many operators of the learner's graph, how
            many of them split a batch by a condition, and how many different samples one picture gives, in a pod of
            ours. DALI 2.4 builds 178 operators for TrivialAugment, 195 to 340 for AutoAugment, 336 for RandAugment.
    Points: all or nothing.
    Errors: 0 false accepts on 8 failing and 0 false rejects on 8 passing controls in
        `tests/builtin_graph/test_auto_augment.py`.
    Cannot detect: an automatic augmentation that the learner wrote without DALI's modules: it is not found. Origins are
        file names that the learner's process wrote into the graph: files of these names, with as many operators and a
        visible effect, would pass.
    """

    id = "auto_augment"
    version = "1.1.0"
    title = "Automatic augmentation"
    needs = frozenset({Need.DISCOVERY})
    probes = ("augmentation",)
    codes = common(_WORD, GRAPH_PROBE, NO_SUCH_GRAPH, NOT_RUN) | {
        "auto_augment.ok": "one of DALI's automatic augmentations acts on the images",
        "auto_augment.not_found": "the graph holds none of DALI's automatic augmentations",
        "auto_augment.wrong_policy": "another automatic augmentation was wanted",
        "auto_augment.no_effect": "one picture came out in too few different ways",
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
        details = {"graph": graph.name, "operators": graph.operators, "splits": graph.splits} | dict(graph.origins)
        found = policy_of(graph)
        if found is None:
            return failed(f"{_WORD}.not_found", _not_found(graph, params), tier=Tier.GRAPH, details=details)
        if params.policy not in ("any", found):
            feedback = Feedback(
                outcome=f"`{graph.name}` uses {found}, not {params.policy}.",
                next=NextStep(text="Call the wanted one:", code=_lines(params.policy)),
            )
            return failed(f"{_WORD}.wrong_policy", feedback, tier=Tier.GRAPH, details=details)
        if not graph.runs:
            return not_run(_WORD, graph)
        different = min(_SAMPLES, max(build.distinct[2] for build in graph.runs))
        details |= {"policy": found, "different": different}
        if different < params.min_different:
            feedback = _no_effect(graph, found, different, params.min_different)
            return failed(f"{_WORD}.no_effect", feedback, tier=Tier.GRAPH, details=details)
        feedback = Feedback(
            outcome=f"`{graph.name}` augments by {found}.",
            seen=_gave(different),
            wanted=f"At least {params.min_different} were needed.",
            numbers={"different": different, "needed": params.min_different},
        )
        return passed(feedback, tier=Tier.GRAPH, details=details)


def _not_found(graph: AugmentedGraph, params: Params) -> Feedback:
    own = " and conditions of its own, not those of nvidia.dali.auto_aug" if graph.splits >= _LEAST_SPLITS else ""
    return Feedback(
        outcome=f"`{graph.name}` holds none of DALI's automatic augmentations.",
        seen=f"It has {graph.operators} operators{own}.",
        next=NextStep(
            text="Define the pipeline with enable_conditionals=True, and return what this gives:",
            code=_lines("auto_augment" if params.policy == "any" else params.policy),
        ),
    )


def _no_effect(graph: AugmentedGraph, policy: str, different: int, needed: int) -> Feedback:
    return Feedback(
        outcome=f"`{graph.name}` uses {policy}, which hardly changes a picture.",
        seen=_gave(different),
        wanted=f"At least {needed} are needed.",
        next=NextStep(
            text="Return the augmented images, and raise the magnitude or use DALI's own list of augmentations:",
            code=_lines(policy),
        ),
        numbers={"different": different, "needed": needed},
    )


def _gave(different: int) -> str:
    return f"{_SAMPLES} samples of one picture gave {different} different result{'' if different == 1 else 's'}."


def _lines(policy: str) -> str:
    """How this augmentation is imported and called."""
    return f"from nvidia.dali.auto_aug import {policy}\nimages = {_CALLS[policy]}"


def policy_of(graph: AugmentedGraph) -> str | None:
    """Which of DALI's automatic augmentations made operators of this graph; None when none did."""
    made = sum(graph.origins.values())
    if made < _LEAST_MADE or graph.splits < _LEAST_SPLITS:
        return None
    counts = {policy: graph.origins.get(f"{policy}.py", 0) for policy in _POLICIES}
    best = max(counts, key=lambda policy: counts[policy])
    return best if counts[best] else None


CHECK = AutoAugmentCheck()
