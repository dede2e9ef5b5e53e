"""Has probes run: those of the learner's site in its pod, those of graphs in a pod of ours; bounds what they say."""

import json
import time
from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

from pydantic import Field, JsonValue

from grader_service.model.base import LongText, Wire
from grader_service.model.evidence import Ending, ProbeRecord, ProbeSite, ProbeTask
from grader_service.run.dialogue import Problem, Stopped, ask, parse
from grader_service.run.learner import Found
from grader_service.run.pod_set import PodSet
from grader_service.run.trusted_pod import await_ready
from sandbox.api import Pod

GRACE_S = 15.0
"""Beyond a probe's own budget, which its process watches; then the pod is ended."""
MAX_JSON = 256 << 10


class Probed(Wire):
    """What became of a probe, as its pod says."""

    kind: Literal["probed"]
    status: Literal["ok", "raised", "graph_failed", "no_graph", "timed_out", "unreadable"]
    text: LongText
    traceback: LongText = ""
    printed: LongText = ""
    observations: Annotated[Mapping[str, JsonValue] | None, Field(max_length=1000)]


class Prober:
    """The probes of one run, and what became of them."""

    def __init__(self, tasks: Sequence[ProbeTask]) -> None:
        self._tasks = tuple(tasks)
        self._records: dict[str, ProbeRecord] = {}

    @property
    def wants_learner(self) -> bool:
        """Whether any probe looks into the learner's process."""
        return bool(self._of(ProbeSite.LEARNER))

    @property
    def wants_graphs(self) -> bool:
        """Whether any probe runs graphs."""
        return bool(self._of(ProbeSite.GRAPH))

    @property
    def records(self) -> tuple[ProbeRecord, ...]:
        """What became of the probes, in the order in which they were asked for; those not reached are left out."""
        return tuple(self._records[task.ref.id] for task in self._tasks if task.ref.id in self._records)

    @property
    def learner_s(self) -> float:
        """Seconds that the probes of the learner's site may take together."""
        return sum(task.ref.budget_s + GRACE_S for task in self._of(ProbeSite.LEARNER))

    def visit_learner(self, pod_set: PodSet) -> None:
        """Runs the probes of the learner's site, before anything else is done with its pod, which must be running."""
        for task in self._of(ProbeSite.LEARNER):
            self._records[task.ref.id], ended = _run(task, pod_set.learner, pod_set.device)
            if ended:
                break
        for task in self._of(ProbeSite.LEARNER):
            if task.ref.id not in self._records:
                self._records[task.ref.id] = _record(task, "pod_ended", "An earlier look into it had ended it.", 0.0)

    def visit_graphs(self, pod_set: PodSet, found: Found) -> None:
        """Runs the probes on graphs, in a pod that has seen no other submission.

        Raises:
            SandboxUnavailable: a fresh pod of ours does not become ready.
        """
        if not found.graphs:
            self._without_graphs(found)
            return
        waiting, pod = pod_set.probe_room, None
        for task in self._of(ProbeSite.GRAPH):
            if pod is None:
                pod, waiting = waiting or pod_set.start_probe_room(), None
                await_ready(pod)
                _send_graphs(pod, found, pod_set)
            record, ended = _run(task, pod, pod_set.device)
            self._records[task.ref.id] = record
            if ended or record.status == "timed_out":
                pod.end()  # a graph that was stopped half-way may still be at work in there
                pod = None

    def _without_graphs(self, found: Found) -> None:
        """Answers for all probes of graphs at once: there is nothing to run."""
        problems = [pipeline.graph_problem for pipeline in found.discovery.pipelines if pipeline.graph_problem]
        text = problems[0] if problems else "No DALI pipeline was built that has a graph."
        for task in self._of(ProbeSite.GRAPH):
            self._records[task.ref.id] = _record(task, "no_graph", text, 0.0)

    def _of(self, site: ProbeSite) -> list[ProbeTask]:
        return [task for task in self._tasks if task.ref.site is site]


def _send_graphs(pod: Pod, found: Found, pod_set: PodSet) -> None:
    """Gives every graph to a pod, best candidate first; that it took no more is seen when it is asked."""
    for pipeline in found.discovery.pipelines:
        if pipeline.graph is None:
            continue
        request = {
            "kind": "graph",
            "name": pipeline.name,
            "device": pod_set.device,
            "threads": len(pod_set.cpus),
            "facts": pipeline.model_dump(mode="json"),
        }
        if pod.send(request, found.graphs[pipeline.graph]) is not None:
            return


def _run(task: ProbeTask, pod: Pod, device: str) -> tuple[ProbeRecord, bool]:
    """What became of a probe, and whether its pod has ended."""
    request = {
        "kind": "probe",
        "name": task.ref.id,
        "params": {check: dict(params) for check, params in task.ref.params.items()},
        "budget_s": task.ref.budget_s,
        "device": device,
    }
    started = time.monotonic()
    message = ask(pod, request, task.source, timeout_s=task.ref.budget_s + GRACE_S)
    seconds = time.monotonic() - started
    answer = parse(pod, message, Probed, Problem)
    if isinstance(answer, Stopped):
        return _stopped(task, answer, seconds), True
    if isinstance(answer, Problem):
        return _record(task, "raised", answer.text, seconds), False
    assert isinstance(answer, Probed)  # noqa: S101 - the only other type
    if answer.status == "ok" and (problem := _unusable(answer)):
        return _record(task, "unreadable", problem, seconds, printed=answer.printed), False
    found, trace = answer.observations, answer.traceback
    return _record(task, answer.status, answer.text, seconds, found, trace, printed=answer.printed), False


def _unusable(answer: Probed) -> str:
    """The guest bounds this as well; in the learner's pod the guest may have been changed."""
    if answer.observations is None:
        return "it sent no observations"
    try:
        size = len(json.dumps(answer.observations, ensure_ascii=False).encode())
    except UnicodeEncodeError:
        return "it sent text that UTF-8 cannot carry"
    return f"it sent {size} bytes; at most {MAX_JSON} are taken" if size > MAX_JSON else ""


def _stopped(task: ProbeTask, stopped: Stopped, seconds: float) -> ProbeRecord:
    if stopped.ending is Ending.TIMED_OUT:
        return _record(task, "timed_out", f"it was not done within {task.ref.budget_s:g} s", seconds)
    return _record(task, "pod_ended", f"Its ending: {stopped.ending.value.replace('_', ' ')}.", seconds)


def _record(
    task: ProbeTask,
    status: str,
    text: str,
    seconds: float,
    observations: Mapping[str, JsonValue] | None = None,
    traceback: str = "",
    printed: str = "",
) -> ProbeRecord:
    return ProbeRecord(
        id=task.ref.id,
        version=task.ref.version,
        site=task.ref.site,
        sha256=task.ref.sha256,
        status=status,
        text=text[:4000],
        traceback=traceback[:4000],
        printed=printed[-4000:],
        wall_s=seconds,
        observations=observations if status == "ok" else None,
    )
