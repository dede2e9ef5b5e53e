"""The contract of a sandbox: what a runner starts, what a pod can do, and how each of them fails.

A runner opens one *run space* per submission (folders and scratch volumes that go away with it) and starts *pods* in
it. Whatever happens inside a pod is a value (`Ending`); only `SandboxUnavailable` is raised, and it is always ours.
`tests/sandbox/conformance.py` states the behaviour that every runner must show.
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
    cpus: tuple[int, ...]
    """Host CPU numbers that the pod may use; every arm gets the same."""
    shm_mib: int = 64
    scratch: Scratch = Scratch.NONE
    submission: bool = False
    """Whether the learner's files are mounted (read-only)."""
    shards: bool = False
    """Whether the held-out images are mounted (read-only)."""
    gpu: bool = False
    environment: Mapping[str, str] = field(default_factory=dict)
    imports: tuple[str, ...] = field(default=(), compare=False)
    """Modules that the pod loads while it waits for a run, where it does; see `sandbox.warm.pool`."""


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
    image_digest: str | None
    engine: str | None
    gpu_access: str | None
    """`cdi`, `nvidia-runtime`, `device-nodes` or None."""
    oci_runtime: str | None = None
    """What the engine starts pods with, as it names it; on Kubernetes a RuntimeClass; None where it is not known."""


class Pod(Protocol):
    """A running pod. `receive` and `send` never raise for what the guest does; they return how it ended.

    They raise `SandboxUnavailable` where no guest connects at all, since our code connects first, and where the engine
    fails.
    """

    spec: PodSpec

    def alive(self) -> bool:
        """Whether its main process is there, frozen or not, as its engine tells."""
        ...

    def claim(self) -> bool:
        """Begins the time of a pod that was started ahead of its run; False where it has ended meanwhile."""
        ...

    def send(self, body: Mapping[str, object], blob: bytes = b"", *, timeout_s: float = 30.0) -> Ending | None:
        """Sends one message; connects first. None when it was taken, else how the pod ended."""
        ...

    def receive(self, timeout_s: float) -> Message | Ending:
        """The next message within `timeout_s` of the host's clock. A pod that misses it is killed."""
        ...

    def pause(self) -> None:
        """Freezes every process of the pod."""
        ...

    def resume(self) -> None:
        """Lets the pod's processes run again."""
        ...

    def output(self) -> str:
        """The last of what the pod has written so far, at most 8,000 characters; empty where nobody can soon tell.

        From any thread, also while another one waits for a message; and after the pod's end.
        """
        ...

    def reject(self, why: str) -> Ending:
        """Ends the pod because what it sent is valid JSON but not a message that it may send."""
        ...

    def end(self) -> PodRecord:
        """Kills every process of the pod, removes it and says how it ended; again, the same answer."""
        ...


class RunSpace(AbstractContextManager["RunSpace"], Protocol):
    """One run's folders and scratch volumes. Leaving it ends every pod and removes everything."""

    paths: GuestPaths
    submission_dir: Path
    """Host folder for the unpacked submission; written before the learner's pod starts."""
    shards_dir: Path
    """Host folder for held-out images; what is written here is visible in pods at once."""

    def start(self, spec: PodSpec) -> Pod:
        """Starts one pod without waiting for its guest to be ready.

        Raises:
            SandboxUnavailable: the engine, the image or a device is missing, or the engine failed.
        """
        ...

    def quiet(self) -> AbstractContextManager[None]:
        """For as long as something is timed, or waited for: its runner does nothing else on this host meanwhile."""
        ...


class SandboxRunner(Protocol):
    """Starts pods somewhere."""

    @property
    def facts(self) -> SandboxFacts:
        """What this runner is."""
        ...

    def look(self) -> None:
        """Asks whether what pods need before their run space is still there: the engine, and the image.

        Raises:
            SandboxUnavailable: it is not.
        """
        ...

    def open_run(self, run_id: str, limits: SpaceLimits) -> RunSpace:
        """A fresh run space.

        Raises:
            SandboxUnavailable: the engine failed.
        """
        ...

    def of_image(self, image: str) -> "SandboxRunner":
        """A runner like this one whose pods have another image; this one where images are not its to choose.

        Raises:
            SandboxUnavailable: the image is not there, or the engine failed.
        """
        ...

    def sweep(self) -> int:
        """Removes what earlier, killed graders left behind; returns how many things were removed."""
        ...
