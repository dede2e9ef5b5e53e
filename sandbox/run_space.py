"""What the run spaces of all engines of this host have in common: the run's folder, its pods, and the end of both."""

import contextlib
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Self

from grader_service.errors import SandboxUnavailable
from sandbox.pod import ConnectedPod
from sandbox.run_folder import RunFolder


class LocalRunSpace(ABC):
    """Implements `sandbox.api.RunSpace` but for `start`; see `RunFolder` for the arguments."""

    def __init__(self, state_dir: Path, run_id: str, *, shared: bool = False) -> None:
        self._run_id = run_id
        self._folder = RunFolder(state_dir, run_id, shared=shared)
        self._kept_in = state_dir
        self.submission_dir = self._folder.submission
        self.shards_dir = self._folder.shards
        self._pods: list[ConnectedPod] = []
        self._started = 0

    def __enter__(self) -> Self:
        try:
            self._folder.create()
        except OSError as error:
            raise SandboxUnavailable(f"no run can be kept in {self._kept_in}: {error}") from error
        try:
            self._make()
        except BaseException:
            self._clear()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        left = self._clear()
        if left is not None and kind is None:
            raise left

    def quiet(self) -> contextlib.AbstractContextManager[None]:
        """See `RunSpace.quiet`; it never does anything else."""
        return contextlib.nullcontext()

    def _clear(self) -> SandboxUnavailable | None:
        """Removes everything; what cannot be removed now is left to a sweep, and said if it may still run."""
        for pod in reversed(self._pods):
            with contextlib.suppress(SandboxUnavailable):
                pod.end()
        left = self._remove()
        self._folder.remove()
        return left

    @abstractmethod
    def _make(self) -> None:
        """Makes what the engine needs beside the folder."""

    @abstractmethod
    def _remove(self) -> SandboxUnavailable | None:
        """Removes what `_make` and pods left with the engine; what may still be there."""
