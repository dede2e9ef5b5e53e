"""Says why a DALI graph could not be run again by the grader, and what would let it."""

import re

from checks.api import CheckResult, failed, undecided
from grader_service.model.evidence import CleanRoom, Discovery
from grader_service.model.verdict import Outcome, Tier

_CHANGE = {
    "operator_not_allowed": (
        "Read the JPEGs with fn.readers.file, or from a container (fn.readers.tfrecord, mxnet, webdataset, caffe), and "
        "use DALI's own operators, so that the grader can run your graph on other images."
    ),
    "reader_outputs": (
        "Benchmark a pipeline that takes only the encoded image and its class from the container, or read the JPEGs "
        "with fn.readers.file."
    ),
    "encoded_images": "Decode first, and let all other operators work on decoded images.",
    "no_reader": "Read the JPEGs with fn.readers.file inside the pipeline.",
    "no_decoder": "Decode inside the pipeline with fn.decoders.image(..., device='mixed').",
    "not_serializable": (
        "Leave out operators that run Python code (fn.python_function, fn.external_source), or keep them out of the "
        "pipeline that you benchmark."
    ),
    "dynamic_mode": "Define the pipeline with @pipeline_def and read it through DALIGenericIterator.",
    "batch_size": "Choose a batch size between 16 and 1024.",
    "out_of_memory": "Use a smaller batch or output size.",
    "timed_out": "Check the graph on a few images first: it should deliver a batch within seconds.",
    "crashed": "Check the graph on other images than yours, of the same kind.",
    "graph_failed": "The images it was given have the sizes of your own; check that no crop is larger than an image.",
    "unreadable_graph": "Build the pipeline with @pipeline_def and do not change DALI's own modules.",
}
_WRONG = {"ragged_batch": "ragged", "no_image_output": "no_images"}


_UNSERIALIZABLE = re.compile(r"Could not serialize the operator: `([A-Za-z_.0-9]+)`")


def _reason(clean_room: CleanRoom) -> str:
    found = _UNSERIALIZABLE.search(clean_room.problem_text)
    if found is not None:
        return f"It contains {found.group(1)}, which DALI cannot take out of your process."
    return clean_room.problem_text[:1500]


def not_carried(check: str, clean_room: CleanRoom) -> CheckResult:
    """The result of a check that needs the graph in the clean room, when it did not get there.

    A graph that ran and delivered something else than a batch of images fails; everything else is `unverified`, since
    what could not be re-measured is not known to be wrong: as `needs_gpu` where only a rehearsal cannot run it.
    """
    problem = clean_room.problem or "graph_failed"
    named = f" of `{clean_room.pipeline}`" if clean_room.pipeline else ""
    if problem in _WRONG:
        return failed(f"{check}.{_WRONG[problem]}", clean_room.problem_text, tier=Tier.GRAPH)
    details = {"problem": problem, "problem_text": clean_room.problem_text, "pipeline": clean_room.pipeline}
    why = f"The DALI pipeline{named} could not be run again by the grader. {_reason(clean_room)}"
    if problem == "needs_gpu":
        return undecided(Outcome.UNVERIFIED, f"{check}.needs_gpu", why, tier=Tier.CLAIMS, details=details)
    return undecided(
        Outcome.UNVERIFIED,
        f"{check}.not_carried",
        f"{why} {_CHANGE.get(problem, '')}".strip(),
        tier=Tier.CLAIMS,
        details=details,
    )


def no_dali(check: str, discovery: Discovery, stopped: str) -> CheckResult | None:
    """The result when the submission built no DALI pipeline at all; None when it built one."""
    if discovery.pipelines or discovery.dynamic_mode:
        return None
    if discovery.needs_gpu:
        return undecided(
            Outcome.UNVERIFIED,
            f"{check}.needs_gpu",
            "No DALI pipeline was built, because your code does something that a rehearsal without a GPU cannot do: "
            f"{discovery.needs_gpu[:600]} Grade it on a host with a GPU.",
            tier=Tier.CLAIMS,
        )
    return failed(
        f"{check}.no_pipeline",
        "No DALI pipeline was found. Define one with @pipeline_def and wrap it in DALIGenericIterator or "
        f"DALIClassificationIterator.{stopped}",
    )
