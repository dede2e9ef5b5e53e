"""A runner that can be stopped from another thread: every pod of its open spaces ends, and none starts again."""

import contextlib
import threading
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Self

from grader_service.errors import SandboxUnavailable
from sandbox.api import GuestPaths, Pod, PodSpec, RunSpace, SandboxFacts, SandboxRunner, SpaceLimits


class Abortable:
    """Wraps a runner; implements `SandboxRunner`."""

    def __init__(self, runner: SandboxRunner) -> None:
        self._runner = runner
        self._lock = threading.Lock()
        self._pods: list[Pod] = []
        self._aborted = threading.Event()

    @property
    def aborted(self) -> bool:
        """Whether `abort` was called, by any thread."""
        return self._aborted.is_set()

    @property
    def facts(self) -> SandboxFacts:
        """See `SandboxRunner.facts`."""
        return self._runner.facts

    def of_image(self, image: str) -> "Abortable":
        """See `SandboxRunner.of_image`; the same object, so that who may abort it still can."""
        self._runner = self._runner.of_image(image)
        return self

    def look(self) -> None:
        """See `SandboxRunner.look`."""
        self._runner.look()

    def open_run(self, run_id: str, limits: SpaceLimits) -> "AbortableSpace":
        """See `SandboxRunner.open_run`."""
        return AbortableSpace(self, self._runner.open_run(run_id, limits))

    def sweep(self) -> int:
        """See `SandboxRunner.sweep`."""
        return self._runner.sweep()

    def abort(self) -> None:
        """Ends every pod; whoever waits for one is answered that it ended."""
        with self._lock:
            self._aborted.set()
            pods, self._pods = self._pods, []
        for pod in pods:
            # Whoever waits for it tries again, and says what cannot be removed.
            with contextlib.suppress(SandboxUnavailable):
                pod.end()

    def admit(self, space: RunSpace, spec: PodSpec) -> Pod:
        """Starts a pod unless the run was aborted.

        Raises:
            SandboxUnavailable: it was.
        """
        if self._aborted.is_set():
            raise SandboxUnavailable("the run was aborted")
        pod = space.start(spec)
        with self._lock:
            if not self._aborted.is_set():
                self._pods.append(pod)
                return pod
        pod.end()
        raise SandboxUnavailable("the run was aborted")


class AbortableSpace:
    """Implements `RunSpace` over the wrapped runner's."""

    def __init__(self, owner: Abortable, space: RunSpace) -> None:
        self._owner = owner
        self._space = space
        self.paths: GuestPaths = space.paths
        self.submission_dir = space.submission_dir
        self.shards_dir = space.shards_dir

    def __enter__(self) -> Self:
        self._space.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._space.__exit__(kind, error, trace)

    def start(self, spec: PodSpec) -> Pod:
        """See `RunSpace.start`."""
        return self._owner.admit(self._space, spec)

    def quiet(self) -> AbstractContextManager[None]:
        """See `RunSpace.quiet`."""
        return self._space.quiet()
