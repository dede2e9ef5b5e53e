"""The clean room's pod: tries to carry one of the learner's graphs, best candidate first."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from grader_service.measure.acceptance import Observed
from grader_service.measure.arms import DaliArm, GraphPrepared, GraphRefusedAnswer
from grader_service.model.base import Device, Wire
from grader_service.model.evidence import CleanRoom, Ending
from grader_service.run.dialogue import Stopped, ask, hear, parse, trusted
from grader_service.run.learner import Found
from sandbox.api import Pod

PREPARE_S = 120.0
EXPERIMENT_S = 180.0
_ENDING_WORDS = {
    Ending.OUT_OF_MEMORY: ("out_of_memory", "Running the graph needs more memory than the clean room has."),
    Ending.TIMED_OUT: ("timed_out", f"The graph delivered no batch within {PREPARE_S:.0f} s."),
}


@dataclass(frozen=True)
class Carried:
    """A graph that runs in the clean room."""

    facts: CleanRoom
    arm: DaliArm
    batch_size: int
    settings: Mapping[str, object]
    plan: Mapping[str, object] = field(default_factory=dict)
    """What a reference loader must do to have the same job, once `experimented` has told it."""


class Experimented(Wire):
    """What a graph was seen to do."""

    kind: Literal["experimented"]
    found: Observed
    plan: Mapping[str, object]


def carry(
    pod: Pod, found: Found, files: Sequence[str], threads: int, device: Device, *, experiments: bool
) -> Carried | CleanRoom:
    """Rebuilds the first graph that the allow-list takes and draws its first batch.

    Args:
        files: held-out images, by their paths in the pod.
        threads: of the CPU.
        experiments: the clean room is to find out what the graph does as well; `experimented` hears of it.

    Returns:
        The running arm, or why no graph could be carried; the reason of the best candidate stands.

    Raises:
        SandboxUnavailable: the pod had ended before it got a graph, which therefore is not to blame.
    """
    if not pod.alive():
        trusted(Stopped(Ending.EXITED), pod)
    refusals: list[CleanRoom] = []
    for pipeline in found.discovery.pipelines:
        if pipeline.graph is None:
            text = pipeline.graph_problem or "DALI could not serialize it."
            refusals.append(CleanRoom(pipeline=pipeline.name, problem="not_serializable", problem_text=text))
            continue
        request = {
            "kind": "prepare",
            "files": list(files),
            "threads": threads,
            "device": device,
            "experiments": experiments,
        }
        message = ask(pod, request, found.graphs[pipeline.graph], timeout_s=PREPARE_S)
        answer = parse(pod, message, GraphPrepared, GraphRefusedAnswer)
        if isinstance(answer, Stopped):
            # Only the graph is the learner's here: what kills this pod is what the graph asks for.
            word, text = _ENDING_WORDS.get(answer.ending, ("crashed", "The graph crashed the process that ran it."))
            refusals.append(CleanRoom(pipeline=pipeline.name, problem=word, problem_text=text))
            break
        if isinstance(answer, GraphPrepared):
            facts = CleanRoom(pipeline=pipeline.name, graph=answer.graph, batch=answer.batch)
            arm = DaliArm(pod, answer.queue_depth)
            return Carried(facts, arm, answer.batch_size, answer.settings)
        assert isinstance(answer, GraphRefusedAnswer)  # noqa: S101 - the only other type
        refusals.append(CleanRoom(pipeline=pipeline.name, problem=answer.problem, problem_text=answer.text))
    if refusals:
        return refusals[0]
    if found.discovery.dynamic_mode:
        return CleanRoom(
            pipeline="",
            problem="dynamic_mode",
            problem_text="DALI's dynamic mode runs operators one by one and has no graph that could be carried.",
        )
    return CleanRoom(pipeline="", problem="no_pipeline", problem_text="No DALI pipeline was built.")


def experimented(pod: Pod) -> Experimented | Stopped:
    """Waits for what the clean room finds out of the graph that was carried; see `acceptance` for what follows."""
    return parse(pod, hear(pod, EXPERIMENT_S), Experimented)
