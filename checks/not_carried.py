"""Says why a DALI graph could not be run again by the grader, and what would let it."""

import re

from checks.diagnosis import diagnose
from checks.diagnosis.message import read
from checks.results import Result, failed, undecided
from checks.stopped import cut_short, run_end
from grader_service.model.discovery import Discovery, LearnerException
from grader_service.model.evidence import CleanRoom
from grader_service.model.feedback import Feedback, NextStep
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
FACTORY_CALL = "build_dali_iterator(dataset_dir, batch_size)"
"""Code of the learner that delivers what a graph that cannot be carried would."""
OTHER_IMAGES = (
    "Let `build_dali_iterator` read the folder that it is given, keep no images from an earlier call, and open each "
    "file anew in every epoch."
)
_SIGNATURE = "TypeError: build_dali_iterator() "
"""How Python begins to say that a function takes other arguments."""
NEEDS_GPU = "Grade it on a host with a GPU: a rehearsal without one cannot do this."
_WRONG = {
    "ragged_batch": "Resize or crop all images to one size before they leave the pipeline.",
    "no_image_output": "Return the decoded images as one output of the pipeline.",
}


_MOST_WORDS = 30
_MOST_CHARS = 400
_UNSERIALIZABLE = re.compile(r"Could not serialize the operator: `([A-Za-z_.0-9]+)`")


def _reason(clean_room: CleanRoom, action: str) -> tuple[str, str]:
    """Why, and what to do: as for an exception in the learner's own process, where the message is a known one."""
    found = _UNSERIALIZABLE.search(clean_room.problem_text)
    if found is not None:
        return f"It contains {found.group(1)}, which DALI cannot take out of your process.", action
    raised = LearnerException(type="RuntimeError", message=clean_room.problem_text)
    if (known := diagnose(raised)) is not None:
        return known.cause, known.remedy
    return first_words(read(raised).texts[0]), action


def _of_factory(named: str, problem: str) -> Feedback:
    """Where the learner offered code of its own for a graph that cannot be carried, and that did not work either."""
    action = NextStep(text=OTHER_IMAGES)
    if _SIGNATURE in problem:
        action = NextStep(text="Let it take both arguments:", code=f"def {FACTORY_CALL}:")
    return Feedback(
        outcome=f"The grader could run neither your DALI pipeline{named} again nor `build_dali_iterator`.",
        seen=first_words(problem),
        next=action,
    )


def first_words(text: str, most: int = _MOST_WORDS) -> str:
    """The beginning of a text, at most so many words of it; staff read the rest in the details."""
    words = text.split()
    shown = " ".join(words) if len(words) <= most else f"{' '.join(words[:most])} …"
    return shown if len(shown) <= _MOST_CHARS else f"{shown[: _MOST_CHARS - 1]}…"


def not_carried(clean_room: CleanRoom) -> Result:
    """The result of a check that needs the graph in the clean room, when it did not get there.

    A graph that ran and delivered something else than a batch of images fails; everything else is `unverified`, since
    what could not be re-measured is not known to be wrong: as `needs_gpu` where only a rehearsal cannot run it.
    """
    problem = clean_room.problem or "graph_failed"
    named = f" `{clean_room.pipeline}`" if clean_room.pipeline else ""
    if problem in _WRONG:
        feedback = Feedback(outcome=first_words(clean_room.problem_text), next=NextStep(text=_WRONG[problem]))
        return failed("ragged" if problem == "ragged_batch" else "no_images", feedback, tier=Tier.GRAPH)
    details = {"problem": problem, "problem_text": clean_room.problem_text, "pipeline": clean_room.pipeline}
    needs_gpu = problem == "needs_gpu"
    if clean_room.factory_problem:
        told = _of_factory(named, clean_room.factory_problem)
    else:
        reason, action = _reason(clean_room, NEEDS_GPU if needs_gpu else _CHANGE.get(problem, _CHANGE["crashed"]))
        outcome = f"The grader could not run your DALI pipeline{named} again."
        told = Feedback(outcome=outcome, seen=reason, next=NextStep(text=action))
    return undecided(
        Outcome.UNVERIFIED,
        "needs_gpu" if needs_gpu else "not_carried",
        told,
        tier=Tier.CLAIMS,
        details=details,
    )


def no_dali(discovery: Discovery) -> Result | None:
    """The result when the submission built no DALI pipeline at all; None when it built one."""
    if discovery.pipelines or discovery.dynamic_mode:
        return None
    if (result := cut_short(run_end(discovery))) is not None:
        return result
    return failed(
        "no_pipeline",
        Feedback(
            outcome="No DALI pipeline was found.",
            wanted="A function with @pipeline_def, built, and an iterator around it.",
            next=NextStep(
                text="Build one, and keep its iterator in a variable:",
                code='dali_iter = DALIGenericIterator(pipe, ["data", "label"], reader_name="Reader", auto_reset=True)',
            ),
        ),
    )
