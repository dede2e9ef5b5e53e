"""The arms of the comparison: each draws batches in its own pod, and the host times it between two messages."""

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Literal, Protocol, Self, runtime_checkable

from pydantic import Field

from grader_service.errors import SandboxUnavailable
from grader_service.model.base import LongText, Shape, Wire, Word
from grader_service.model.discovery import Discovery, LoaderFacts
from grader_service.model.evidence import BatchFacts, GraphFacts
from grader_service.model.measurement import Arm, LoaderSettings, Window
from grader_service.run.dialogue import Mark, Problem, Stopped, WindowDone, ask, awake, hear, parse, trusted
from sandbox.api import Pod

MIN_WINDOW_TIMEOUT_S = 30.0
_SLOWEST = 12.0
"""A window may take this many times what its plan says before its arm counts as stuck."""
_PREPARE_LEARNER_S = 180.0
_PREPARE_S = 120.0
"""Building a loader and warming its workers up may take so long in a run, which is its learner's own."""
_MOST_BATCHES = 100_000
_LATE_S = 0.02
_LATE_SHARE = 0.2
"""A window that the host timed otherwise than its pod by more than both says how busy the host was, not the arm."""
_BUSY_S = 15.0
"""A host that timed every window wrongly for so long is too busy to measure on."""
_TOO_FAST = 3.0
"""No window is taken for this many times faster than all that was drawn since the request."""
QueueDepth = Annotated[int, Field(ge=0, le=2**31)]
"""Batches that lie ready before a window; as many are drawn and thrown away first."""


@dataclass(frozen=True)
class ArmLost:
    """The learner's arm ended or refused; the reference stands in for it."""

    reason: str


class TimedArm(Protocol):
    """One arm of the comparison."""

    arm: Arm

    def window(self, batches: int, *, timeout_s: float) -> Window | ArmLost:
        """Draws `batches` batches after emptying the queue; times them by the host's clock."""
        ...

    def batches_for(self, seconds: float) -> int:
        """How many batches a window of about this length needs, from the last rate seen."""
        ...


@runtime_checkable
class Settled(Protocol):
    """An arm that was warmed up before the blocks: its next window counts."""

    settled: bool


@runtime_checkable
class Discarding(Protocol):
    """An arm whose windows hang together."""

    def discarded(self) -> None:
        """The host contaminated the block of the last window, so that it counts nowhere."""
        ...


def window_timeout_s(seconds: float) -> float:
    """How long to wait for a window that is meant to last so many seconds."""
    return max(MIN_WINDOW_TIMEOUT_S, _SLOWEST * seconds)


@dataclass
class Pace:
    """Plans window sizes from the rate seen before.

    Workers deliver in bursts of one batch each, so a window holds whole bursts: a part of one would be an error of up
    to a batch per worker.
    """

    burst: int
    batches_per_s: float = 0.0
    least: int = field(init=False)

    def __post_init__(self) -> None:
        self.burst = max(1, self.burst)
        self.least = max(2, 2 * self.burst)

    def saw(self, batches: int, seconds: float, *, discarded: int, asked_s: float) -> None:
        """Remembers the newest rate.

        A host that hears a window's first mark late times the window as shorter than it was, a small one as nothing at
        all, and the next one would be planned for minutes. All that was drawn since the request bounds the rate.

        Args:
            seconds: from its first mark to its end.
            discarded: batches drawn before its first mark.
            asked_s: seconds from the request to the window's end.
        """
        self.batches_per_s = min(batches / seconds, (discarded + batches) / asked_s)

    def batches_for(self, seconds: float) -> int:
        """Whole bursts that fill about `seconds`."""
        wanted = math.ceil(self.batches_per_s * seconds / self.burst) * self.burst
        return min(max(wanted, self.least), _MOST_BATCHES)


@dataclass(frozen=True)
class Asked:
    """What a window holds: so many batches, after as many that are drawn and thrown away before its first mark."""

    batches: int
    discard: int
    more: Mapping[str, object] = field(default_factory=dict)
    """What this arm's pod wants to know beside that."""


class _PacedArm:
    """What the arms of whole windows share."""

    def __init__(self, pod: Pod, queue_depth: int, *, burst: int = 1) -> None:
        self.pod = pod
        self.queue_depth = queue_depth
        self._pace = Pace(burst)

    def batches_for(self, seconds: float) -> int:
        """See `TimedArm.batches_for`."""
        return self._pace.batches_for(seconds)


class DaliArm(_PacedArm):
    """A graph in the clean room, frozen whenever another arm runs: the learner's, or ours.

    What the graph makes between a window's end and the pause, or had half done then, is in its queue, and all that the
    queue can hold is drawn before the next first mark.
    """

    arm = Arm.DALI

    def window(self, batches: int, *, timeout_s: float) -> Window | ArmLost:
        """See `TimedArm.window`. A graph that breaks is the learner's, not ours; our own shares its pod."""
        asked = Asked(batches, self.queue_depth)
        with awake(self.pod):
            return timed_window(self.pod, self.arm, asked, timeout_s, self._pace, ours=True)


class LearnerArm(_PacedArm):
    """The learner's DataLoader in the learner's pod, frozen whenever another arm runs."""

    arm = Arm.LEARNER

    def __init__(self, pod: Pod, facts: "LoaderReady") -> None:
        super().__init__(pod, facts.queue_depth, burst=facts.loader.num_workers)
        self.facts = facts

    def window(self, batches: int, *, timeout_s: float) -> Window | ArmLost:
        """See `TimedArm.window`."""
        asked = Asked(batches, self.queue_depth)
        with awake(self.pod):
            return timed_window(self.pod, self.arm, asked, timeout_s, self._pace)


def prepare_learner_arm(pod: Pod, discovery: Discovery, shards: str, batch_size: int) -> LearnerArm | ArmLost:
    """Points the learner's DataLoader at the held-out images; the pod must not be frozen."""
    request = {
        "kind": "prepare_loader",
        "shards": shards,
        "dataset_dir": discovery.dataset_dir.path,
        "batch_size": batch_size,
    }
    message = ask(pod, request, timeout_s=_PREPARE_LEARNER_S)
    answer = parse(pod, message, LoaderReady, Problem)
    return LearnerArm(pod, answer) if isinstance(answer, LoaderReady) else lost(answer)


class ReferenceArm(_PacedArm):
    """Our own DataLoader in a pod of its own."""

    def __init__(self, pod: Pod, arm: Arm, settings: LoaderSettings, queue_depth: int) -> None:
        super().__init__(pod, queue_depth, burst=settings.num_workers)
        self.arm = arm
        self.settings = settings

    @classmethod
    def prepare(
        cls,
        pod: Pod,
        arm: Arm,
        settings: LoaderSettings,
        files: Sequence[str],
        plan: Mapping[str, object],
        device: str,
        *,
        timeout_s: float = _PREPARE_S,
    ) -> Self:
        """Builds the loader in its pod and waits until its workers deliver.

        Args:
            files: images, as the pod sees them.
            plan: the job; see `reference_plan`.
            timeout_s: for the first batches of all workers.

        Raises:
            SandboxUnavailable: the pod ended, or took longer.
        """
        request = {
            "kind": "prepare",
            "name": arm.value,
            "files": list(files),
            "plan": dict(plan),
            "settings": settings.model_dump(),
            "device": device,
        }
        ready = trusted(parse(pod, ask(pod, request, timeout_s=timeout_s), ReferencePrepared), pod)
        return cls(pod, arm, settings, ready.queue_depth)

    def window(self, batches: int, *, timeout_s: float) -> Window:
        """See `TimedArm.window`.

        Raises:
            SandboxUnavailable: the pod ended; it runs only our code, so that is ours.
        """
        asked = Asked(batches, self.queue_depth, {"name": self.arm.value})
        window = _window(self.pod, self.arm, asked, timeout_s, (), self._pace, ours=True)
        if isinstance(window, Window):
            return window
        if not isinstance(window, Stopped):
            window = Stopped(self.pod.reject("a window without images"))
        return trusted(window, self.pod)


def timed_window(
    pod: Pod, arm: Arm, asked: Asked, timeout_s: float, pace: Pace, *, ours: bool = False
) -> Window | ArmLost:
    """Asks for a window, and times by the host's clock what lies between its two marks.

    Args:
        timeout_s: for each of the marks.
        pace: hears how fast it was.
        ours: whether only our code runs in the pod, so that it can be asked how long the window took by its own clock,
            from when the queue was empty. Where the host was too busy to hear a mark in time, or the pod to send it
            before the queue was full again, that or the rate differs, and the window is asked for again: what counts is
            always what the host timed. Any other pod's window that is too fast is given the rate of all that was drawn.

    Raises:
        SandboxUnavailable: the host was too busy for `_BUSY_S`.
    """
    window = _window(pod, arm, asked, timeout_s, (Problem,), pace, ours=ours)
    if isinstance(window, Window):
        return window
    if isinstance(window, WindowDone):
        return ArmLost(f"it delivered {window.images} images in a window")
    return lost(window)


def _window(
    pod: Pod, arm: Arm, asked: Asked, timeout_s: float, others: tuple[type[Wire], ...], pace: Pace, *, ours: bool
) -> Window | WindowDone | Wire | Stopped:
    """A window, one in which nothing was delivered, or what was said in place of a mark (`others`)."""
    request = {"kind": "window", "discard": asked.discard, "batches": asked.batches, **asked.more}
    began = time.monotonic()
    while True:
        sent = time.monotonic()
        first = ask(pod, request, timeout_s=timeout_s)
        opened = parse(pod, first, Mark, *others)
        if not isinstance(opened, Mark):
            return opened
        started = time.monotonic()
        message = hear(pod, timeout_s)
        ended = time.monotonic()
        seconds = ended - started
        done = parse(pod, message, WindowDone, *others)
        if not isinstance(done, WindowDone) or done.images <= 0 or seconds <= 0:
            return done
        pace.saw(asked.batches, seconds, discarded=asked.discard, asked_s=ended - sent)
        drawn_s = asked.batches / pace.batches_per_s
        too_fast = seconds * _TOO_FAST < drawn_s
        if too_fast and not ours:
            # Nobody else can say how late the host was. A loader that is timed as too slow has our reference as its
            # floor; one that is timed as much too fast would fail its learner.
            return Window(arm=arm, images=done.images, seconds=drawn_s)
        own = done.seconds if ours and done.seconds is not None else seconds
        if not too_fast and abs(own - seconds) <= max(_LATE_S, _LATE_SHARE * own):
            return Window(arm=arm, images=done.images, seconds=seconds)
        if ended - began > _BUSY_S:
            raise SandboxUnavailable(f"this host was too busy to time the {arm.value} arm for {_BUSY_S:.0f} s")


def lost(answer: Wire | Stopped) -> ArmLost:
    """Why an arm was lost, in words for the learner."""
    if isinstance(answer, Problem):
        return ArmLost(answer.text)
    if isinstance(answer, Stopped):
        return ArmLost(f"its pod ended: {answer.ending.value.replace('_', ' ')}")
    return ArmLost("it answered out of turn")


class LoaderReady(Wire):
    """The learner's pod found a DataLoader and gave it the held-out images; all of it is a claim."""

    kind: Literal["loader_ready"]
    loader: LoaderFacts
    content: Literal["exchanged", "rewritten", "factory", "kept"]
    """How the loader came to read held-out images; `kept` when it still reads the learner's own."""
    queue_depth: QueueDepth
    shape: Shape


class ReferencePrepared(Wire):
    """A reference loader is warm."""

    kind: Literal["prepared"]
    queue_depth: QueueDepth


class GraphPrepared(Wire):
    """The clean room runs the graph."""

    kind: Literal["prepared"]
    graph: GraphFacts
    batch: BatchFacts
    batch_size: Annotated[int, Field(ge=1, le=1 << 20)]
    queue_depth: QueueDepth
    settings: Mapping[str, object]


class GraphRefusedAnswer(Wire):
    """The clean room cannot run the graph."""

    kind: Literal["refused"]
    problem: Word
    text: LongText
