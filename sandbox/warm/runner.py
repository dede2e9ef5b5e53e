"""A runner whose runs may have been prepared ahead: the pods' interpreters stand ready, their imports are done."""

from contextlib import AbstractContextManager
from types import TracebackType
from typing import Self

from sandbox.api import GuestPaths, Pod, PodSpec, RunSpace, SandboxFacts, SandboxRunner, SpaceLimits
from sandbox.warm.pool import PreparedRun, Recipe, WarmPool


class WarmRunner:
    """Wraps a runner; implements `SandboxRunner`. What the pool has not prepared is started as ever.

    A run leaves its recipe (image, limits, and the pods that it started, one of each) to the pool, which prepares the
    next one by it.
    """

    def __init__(self, runner: SandboxRunner, pool: WarmPool) -> None:
        self._runner = runner
        self._pool = pool

    @property
    def facts(self) -> SandboxFacts:
        """See `SandboxRunner.facts`."""
        return self._runner.facts

    def of_image(self, image: str) -> "WarmRunner":
        """See `SandboxRunner.of_image`; with the same pool."""
        runner = self._runner.of_image(image)
        return self if runner is self._runner else WarmRunner(runner, self._pool)

    def look(self) -> None:
        """See `SandboxRunner.look`."""
        self._runner.look()

    def open_run(self, run_id: str, limits: SpaceLimits) -> "WarmRunSpace":
        """See `SandboxRunner.open_run`; a prepared run has an id of its own."""
        prepared = self._pool.take(self.facts.image_digest, limits)
        space = self._runner.open_run(run_id, limits) if prepared is None else prepared.space
        return WarmRunSpace(self._runner, self._pool, limits, space, prepared)

    def sweep(self) -> int:
        """See `SandboxRunner.sweep`; prepared runs are alive, and stay."""
        return self._runner.sweep()


class WarmRunSpace:
    """See `sandbox.api.RunSpace`."""

    def __init__(
        self,
        runner: SandboxRunner,
        pool: WarmPool,
        limits: SpaceLimits,
        space: RunSpace,
        prepared: PreparedRun | None,
    ) -> None:
        self._runner = runner
        self._pool = pool
        self._limits = limits
        self._space = space
        self._prepared = prepared
        self._specs: list[PodSpec] = []
        self.paths: GuestPaths = space.paths
        self.submission_dir = space.submission_dir
        self.shards_dir = space.shards_dir

    def __enter__(self) -> Self:
        if self._prepared is None:
            self._space.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._specs:
            recipe = Recipe(self._runner.facts.image_digest, self._limits, tuple(self._specs))
            self._pool.want(self._runner, recipe)
        (self._space if self._prepared is None else self._prepared.stack).__exit__(kind, error, trace)

    def start(self, spec: PodSpec) -> Pod:
        """See `RunSpace.start`."""
        if spec not in self._specs:
            self._specs.append(spec)
        waiting = self._prepared.claim(spec) if self._prepared is not None else None
        return waiting or self._space.start(spec)

    def quiet(self) -> AbstractContextManager[None]:
        """See `RunSpace.quiet`."""
        return self._pool.quiet()
