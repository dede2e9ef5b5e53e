"""Runs prepared while nothing runs: open run spaces with the pods that the last run had, waiting for a first message.

Nothing here is shared or used twice: a prepared run goes to one submission, whole, and is removed with it. Pods start
through the same runner, with the same walls, as those of any other run.
"""

import contextlib
import logging
import secrets
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace

from grader_service.errors import SandboxUnavailable
from sandbox.api import Pod, PodRole, PodSpec, RunSpace, SandboxRunner, SpaceLimits

log = logging.getLogger(__name__)

AHEAD: Mapping[str, str] = {"GRADER_AHEAD": "torch,torchvision,nvidia.dali.fn,nvidia.dali.types"}
"""What a learner's pod imports while it waits. None of them touches a GPU before it is used."""


@dataclass(frozen=True)
class Recipe:
    """What a prepared run is made of; two equal ones are interchangeable."""

    image_digest: str | None
    limits: SpaceLimits
    specs: tuple[PodSpec, ...] = field(compare=False)


@dataclass
class PreparedRun:
    """An open run space with pods that wait."""

    recipe: Recipe
    space: RunSpace
    stack: ExitStack
    pods: list[tuple[PodSpec, Pod]]

    def claim(self, spec: PodSpec) -> Pod | None:
        """The waiting pod of this specification, whose time begins now; None when there is none, or none alive."""
        for entry in self.pods:
            if entry[0] == spec:
                self.pods.remove(entry)
                return entry[1] if entry[1].claim() else None
        return None

    def remove(self) -> None:
        """Ends its pods and removes its folders; what cannot be removed is left to a sweep."""
        try:
            self.stack.close()
        except SandboxUnavailable as error:
            log.warning("a prepared run could not be removed: %s", error)


class WarmPool:
    """Prepares runs in a thread of its own, and only while no run is open: a measurement never has company.

    Args:
        size: how many runs to keep prepared.
    """

    def __init__(self, size: int) -> None:
        if size < 1:
            raise ValueError(f"a pool of {size} runs: expected 1 or more")
        self._size = size
        self._changed = threading.Condition()
        self._waiting: list[PreparedRun] = []
        self._open = 0
        self._wanted: tuple[SandboxRunner, Recipe] | None = None
        self._thread: threading.Thread | None = None
        self._busy = False
        self._closed = False

    @contextlib.contextmanager
    def quiet(self) -> Iterator[None]:
        """Holds preparing up; what is under way ends first: the start of one pod, or the removal of an outdated run."""
        with self._changed:
            self._open += 1
            self._changed.wait_for(lambda: not self._busy)
        try:
            yield
        finally:
            with self._changed:
                self._open -= 1
                self._changed.notify_all()

    def take(self, image_digest: str | None, limits: SpaceLimits) -> PreparedRun | None:
        """A prepared run of this image and these limits, perhaps with fewer pods than it should get."""
        with self._changed:
            for prepared in self._waiting:
                if (prepared.recipe.image_digest, prepared.recipe.limits) == (image_digest, limits):
                    self._waiting.remove(prepared)
                    return prepared
        return None

    def want(self, runner: SandboxRunner, recipe: Recipe) -> None:
        """What runs are prepared from here on; prepared runs of another recipe are removed."""
        with self._changed:
            if self._closed:
                return
            self._wanted = (runner, recipe)
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="warm-pool", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def waits(self, timeout_s: float) -> bool:
        """Blocks until the pool is full; False when it is not by then."""
        with self._changed:
            return self._changed.wait_for(self._full, timeout_s)

    def close(self) -> None:
        """Removes what waits and prepares nothing more."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
            thread = self._thread
        if thread is not None:
            thread.join()
        for prepared in self._waiting:
            prepared.remove()
        self._waiting.clear()

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._closed or self._may_work())
                if self._closed:
                    return
                assert self._wanted is not None  # noqa: S101 - _may_work() said so
                wanted = self._wanted
                self._busy = True
            done = False
            try:
                self._step(*wanted)
                done = True
            except SandboxUnavailable as error:
                log.warning("no run could be prepared: %s", error)
            except Exception:
                log.exception("preparing a run failed")
            with self._changed:
                self._busy = False
                if not done and self._wanted is wanted:
                    self._wanted = None  # until another run has shown that the engine works
                self._changed.notify_all()

    def _step(self, runner: SandboxRunner, recipe: Recipe) -> None:
        """One thing that is not done yet: an old run removed, a run opened, or one pod started."""
        with self._changed:
            old = next((prepared for prepared in self._waiting if not _serves(prepared, recipe)), None)
            if old is not None:
                self._waiting.remove(old)
            short = next((prepared for prepared in self._waiting if _missing(prepared)), None)
        if old is not None:
            old.remove()
        elif short is not None:
            spec = _missing(short)[0]
            short.pods.append((spec, short.space.start(_ahead(spec))))
        else:
            stack = ExitStack()
            space = stack.enter_context(runner.open_run(secrets.token_hex(16), recipe.limits))
            with self._changed:
                self._waiting.append(PreparedRun(recipe, space, stack, []))

    def _may_work(self) -> bool:
        return self._wanted is not None and self._open == 0 and not self._full()

    def _full(self) -> bool:
        if self._wanted is None:
            return False
        recipe = self._wanted[1]
        ready = [prepared for prepared in self._waiting if _serves(prepared, recipe) and not _missing(prepared)]
        return len(ready) == len(self._waiting) == self._size


def _serves(prepared: PreparedRun, recipe: Recipe) -> bool:
    return prepared.recipe == recipe and prepared.recipe.specs == recipe.specs


def _missing(prepared: PreparedRun) -> list[PodSpec]:
    return [spec for spec in prepared.recipe.specs if all(spec != there for there, _ in prepared.pods)]


def _ahead(spec: PodSpec) -> PodSpec:
    if spec.role is not PodRole.LEARNER:
        return spec  # those of ours import what they need before they hear the first message
    return replace(spec, environment={**spec.environment, **AHEAD})
