"""The contract of a sandbox: what a runner starts, what a pod can do, and how each of them fails.

A `SandboxRunner` opens one `RunSpace` per run: folders and scratch volumes that are removed when it is left. The space
starts `Pod`s, and a pod exchanges messages with the program in it:

    with runner.open_run(run_id, limits) as space:
        pod = space.start(spec)
        pod.send({"kind": "which_gpu"})
        answer = pod.receive(timeout_s=60.0)  # a Message, or how the pod ended without one
        record = pod.end()

How the program in a pod ends is a value (`Ending`). The only exception is `grader_service.errors.SandboxUnavailable`:
an engine, an image or a host failed, which never counts against a learner. Docker, Kubernetes and plain processes
implement this contract; `tests/sandbox/conformance.py` states the behaviour that each of them must show.
"""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from grader_service.model.evidence import Ending, PodRecord, PodRole
from sandbox.frames import Message


class Scratch(StrEnum):
    """A pod's access to the run's scratch volumes (`/workspace`, `/tmp`, `/dev/shm` of the learner)."""

    NONE = "none"
    """The pod has a small scratch of its own."""
    READ_WRITE = "read_write"
    READ_ONLY = "read_only"
    """For the scanner: the learner's files, which it cannot change."""


@dataclass(frozen=True)
class SpaceLimits:
    """Sizes of the run's scratch volumes."""

    workspace_mib: int
    workspace_inodes: int
    shm_mib: int


@dataclass(frozen=True)
class PodSpec:
    """One pod to start. Nothing in it comes from a learner."""

    role: PodRole
    program: str
    """Module below `sandbox.guest` to run, such as `trusted.scanner`."""
    memory_mib: int
    pids: int
    """Most processes and threads at a time."""
    cpus: tuple[int, ...]
    """Host CPU numbers that the pod may use; every arm gets the same."""
    shm_mib: int = 64
    scratch: Scratch = Scratch.NONE
    submission: bool = False
    """Whether the learner's files are mounted (read-only)."""
    shards: bool = False
    """Whether the held-out images are mounted (read-only)."""
    gpu: bool = False
    """Whether the pod gets the GPU that its runner holds."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Added to the image's own."""
    imports: tuple[str, ...] = field(default=(), compare=False)
    """Modules that a warm pod loads while it waits for a run; see `sandbox.warm.pool`."""


@dataclass(frozen=True)
class GuestPaths:
    """Where a pod finds its files; the same in every pod of a run."""

    workspace: str
    tmp: str
    shm: str
    submission: str
    shards: str
    lab_data: str


@dataclass(frozen=True)
class SandboxFacts:
    """What the verdict says about the sandbox."""

    name: str
    isolated: bool
    image: str | None
    """Name of the lab image; None, as for digest and engine, where there are no images."""
    image_digest: str | None
    engine: str | None
    gpu_access: str | None
    """`cdi`, `nvidia-runtime`, `device-nodes` or None."""
    oci_runtime: str | None = None
    """What the engine starts pods with, as it names it; on Kubernetes a RuntimeClass; None where it is not known."""


class Pod(Protocol):
    """A running pod.

    One thread talks with it. `output` and `end` may be called from any other one; a `receive` that waits then returns
    `Ending.COMPLETED`.
    """

    spec: PodSpec

    def alive(self) -> bool:
        """Whether its main process is there, paused or not, as the engine tells.

        Raises:
            SandboxUnavailable: the engine cannot tell.
        """
        ...

    def start_clock(self) -> bool:
        """Starts the clock of a pod that was started ahead of its run.

        Returns:
            False where the pod has ended meanwhile: take another one.

        Raises:
            SandboxUnavailable: the engine cannot tell.
        """
        ...

    def send(self, body: Mapping[str, object], blob: bytes = b"", *, timeout_s: float = 30.0) -> Ending | None:
        """Sends one message; waits for the pod's connection first.

        Args:
            body: a JSON object.
            blob: bytes that go with it.
            timeout_s: seconds that the pod has to take the message once it has connected, for which it has up to 60 s
                more; one that misses it is killed.

        Returns:
            None when the message was taken, else how the pod ended.

        Raises:
            SandboxUnavailable: the pod never connected, which it does before any learner's code runs, or the engine
                failed.
        """
        ...

    def receive(self, timeout_s: float) -> Message | Ending:
        """Waits for the next message.

        Args:
            timeout_s: seconds of the host's clock; a pod that misses it is killed. The first call of all may last up to
                60 s, until the pod has connected, which counts against this time.

        Returns:
            The message, with its JSON not yet validated, or how the pod ended.

        Raises:
            SandboxUnavailable: as for `send`.
        """
        ...

    def pause(self) -> None:
        """Freezes every process of the pod; does nothing once it has ended.

        Raises:
            SandboxUnavailable: the engine failed.
        """
        ...

    def resume(self) -> None:
        """Lets the pod's processes run again; does nothing once it has ended.

        Raises:
            SandboxUnavailable: the engine failed.
        """
        ...

    def output(self) -> str:
        """What the pod wrote to standard output and error, also after its end.

        Returns:
            At most the last 8,000 characters, safe to show; empty where the engine does not tell within seconds.
        """
        ...

    def reject(self, why: str) -> Ending:
        """Kills the pod because of a message that is valid JSON, but not one that it may send.

        Args:
            why: for staff; becomes `PodRecord.detail`.

        Returns:
            `Ending.PROTOCOL_VIOLATION`, or how the pod had ended before.

        Raises:
            SandboxUnavailable: as for `end`.
        """
        ...

    def end(self) -> PodRecord:
        """Kills every process of the pod and removes it. May be called again, and returns the same record.

        Raises:
            SandboxUnavailable: processes of the pod may still run. A second call tries again, and so does leaving the
                run space; what is left then is for `SandboxRunner.sweep`.
        """
        ...


class RunSpace(AbstractContextManager["RunSpace"], Protocol):
    """One run's folders and scratch volumes: made when it is entered; removed, with every pod, when it is left.

    Raises:
        SandboxUnavailable: on entering, it could not be made. On leaving, pods may still run; this is raised only where
            the block itself raised nothing.
    """

    paths: GuestPaths
    submission_dir: Path
    """Host folder for the unpacked submission; written before the learner's pod starts."""
    shards_dir: Path
    """Host folder for held-out images; what is written here is visible in pods at once."""

    def start(self, spec: PodSpec) -> Pod:
        """Starts one pod without waiting for its program to be ready.

        Raises:
            SandboxUnavailable: the engine, the image or a device is missing, or the engine failed.
        """
        ...

    def quiet(self) -> AbstractContextManager[None]:
        """Keeps this runner from other work on the host, such as preparing pods, while something is timed."""
        ...


class SandboxRunner(Protocol):
    """Starts pods.

    For another engine write this class, a `sandbox.run_space.LocalRunSpace`, which makes and removes the space, and a
    `sandbox.pod.ContainerHandle`, of which `ConnectedPod` makes a `Pod`.
    """

    @property
    def facts(self) -> SandboxFacts:
        """What the verdict says about this sandbox."""
        ...

    def look(self) -> None:
        """Asks whether the engine answers and still has the image; needs no run space.

        Raises:
            SandboxUnavailable: something is missing; the message says what to do.
        """
        ...

    def open_run(self, run_id: str, limits: SpaceLimits) -> RunSpace:
        """Names a fresh run space; entering it makes it. One that was made ahead may be handed over.

        Args:
            run_id: names the folders and volumes; never used before.
            limits: sizes of the scratch volumes.

        Raises:
            SandboxUnavailable: the engine failed.
        """
        ...

    def of_image(self, image: str) -> "SandboxRunner":
        """A runner like this one whose pods have another image; itself where it cannot choose images.

        Raises:
            SandboxUnavailable: the image is not there, or the engine failed.
        """
        ...

    def sweep(self) -> int:
        """Removes what graders that were killed left behind.

        Returns:
            How many things were removed.

        Raises:
            SandboxUnavailable: the engine failed.
        """
        ...
