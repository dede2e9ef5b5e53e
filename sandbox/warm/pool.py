"""Runs prepared ahead: open run spaces with the pods that the last run had, waiting for a first message.

Nothing here is shared or used twice: a prepared run goes to one submission, whole, and is removed with it. Pods start
through the same runner, with the same walls, as those of any other run.
"""

import contextlib
import logging
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field, replace

from grader_service.errors import SandboxUnavailable
from sandbox.api import Pod, PodSpec, RunSpace, SandboxRunner, SpaceLimits

log = logging.getLogger(__name__)

RENEW_S = 2 * 3600.0
"""A prepared run of this age serves nobody and is replaced: Kubernetes ends a pod eight hours after its start, and one
that is taken at the last moment must outlive the longest run."""
LOOK_S = 30.0
"""How often an idle pool asks whether its pods live: they do not after a restart of the engine."""
WHOLE_S = 900.0
"""How long runs with fewer pods leave a recipe as it is: between those that measure come others that only count."""
_MOST_LOSSES = 3
"""Looks that may find dead pods; then nothing is prepared before another run, or what cannot live starts for ever."""


@dataclass(frozen=True)
class Recipe:
    """What a prepared run is made of; two equal ones are interchangeable."""

    image_digest: str | None
    limits: SpaceLimits
    specs: tuple[PodSpec, ...] = field(compare=False)

    def covers(self, other: "Recipe") -> bool:
        """Whether a run of this recipe has all that one of the other has."""
        return self == other and all(spec in self.specs for spec in other.specs)


@dataclass(eq=False)
class PreparedRun:
    """An open run space with pods that wait."""

    recipe: Recipe
    space: RunSpace
    stack: ExitStack
    born: float
    pods: list[tuple[PodSpec, Pod]] = field(default_factory=list)
    still: bool = False
    """Whether its pods are frozen, or some of them."""

    def claim(self, spec: PodSpec) -> Pod | None:
        """The waiting pod of this specification, whose time begins now; None when there is none, or none alive."""
        for entry in self.pods:
            if entry[0] == spec:
                self.pods.remove(entry)
                return entry[1] if entry[1].start_clock() else None
        return None

    def alive(self) -> bool:
        """Whether every pod is there."""
        return all(pod.alive() for _, pod in self.pods)

    def wake(self) -> None:
        """Lets them go on for a run.

        Raises:
            SandboxUnavailable: none of them is there any more; where all ended, their run space may have ended, too.
        """
        self.resume()
        if self.pods and not any(pod.alive() for _, pod in self.pods):
            raise SandboxUnavailable("all of its pods have ended")

    def pause(self) -> None:
        """Lets its pods stand still, in the middle of an import if need be."""
        if not self.still:
            self.still = True
            for _, pod in self.pods:
                pod.pause()

    def resume(self) -> None:
        """Lets them go on."""
        if self.still:
            for _, pod in self.pods:
                pod.resume()
            self.still = False

    def remove(self) -> None:
        """Ends its pods, frozen or not, and removes its folders; what cannot be removed is left to a sweep."""
        try:
            self.stack.close()
        except SandboxUnavailable as error:
            log.warning("a prepared run could not be removed: %s", error)
        except Exception:
            log.exception("removing a prepared run failed")


class WarmPool:
    """Prepares runs in a thread of its own, beside open runs too, but never beside a measurement.

    While somebody measures (`quiet`), what waits is frozen: most pods have imports to do when they have started.
    Whoever moves what waits (prepares, freezes, takes or removes) is alone in that, and holds no lock meanwhile.

    Args:
        clock: tells the age of a prepared run.
        look_s: seconds between two looks at pods that wait.
    """

    def __init__(self, size: int, *, clock: Callable[[], float] = time.monotonic, look_s: float = LOOK_S) -> None:
        if size < 1:
            raise ValueError(f"a pool of {size} runs: expected 1 or more")
        self._size = size
        self._clock = clock
        self._look_s = look_s
        self._changed = threading.Condition()
        self._waiting: list[PreparedRun] = []
        self._measuring = 0
        self._wanted: tuple[SandboxRunner, Recipe] | None = None
        self._wanted_at = 0.0
        self._losses = 0
        self._thread: threading.Thread | None = None
        self._busy = False
        self._closed = False

    @contextlib.contextmanager
    def quiet(self) -> Iterator[None]:
        """Holds preparing up and freezes what waits; what is under way ends first: the start of one pod, say."""
        with self._changed:
            self._measuring += 1
        try:
            with self._alone():
                for prepared in list(self._waiting):
                    self._does(prepared, prepared.pause)
            yield
        finally:
            with self._changed:
                self._measuring -= 1
                self._changed.notify_all()

    def take(self, image_digest: str | None, limits: SpaceLimits) -> PreparedRun | None:
        """A prepared run of this image and these limits, its pods awake; None where there is none.

        There may be fewer pods than it should have.
        """
        with self._alone():
            for prepared in list(self._waiting):
                serves = (prepared.recipe.image_digest, prepared.recipe.limits) == (image_digest, limits)
                if serves and self._fresh(prepared) and self._does(prepared, prepared.wake):
                    with self._changed:
                        self._waiting.remove(prepared)
                        self._changed.notify_all()
                    return prepared
            return None

    def want(self, runner: SandboxRunner, recipe: Recipe) -> None:
        """What runs are prepared from here on; prepared runs of another recipe are removed.

        A recipe that had all of these pods and more was wanted a while ago: then it stays, for it serves both.
        """
        with self._changed:
            if self._closed:
                return
            now = self._clock()
            if self._wanted is None or now - self._wanted_at > WHOLE_S or not self._wanted[1].covers(recipe):
                self._wanted = (runner, recipe)
            if self._wanted[1].specs == recipe.specs:
                self._wanted_at = now
            self._losses = 0
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
        with self._alone():
            for prepared in list(self._waiting):
                self._drop(prepared)

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """Nobody else moves what waits; the lock is free meanwhile, since engines take their time."""
        with self._changed:
            self._changed.wait_for(lambda: not self._busy)
            self._busy = True
        try:
            yield
        finally:
            with self._changed:
                self._busy = False
                self._changed.notify_all()

    def _does(self, prepared: PreparedRun, order: Callable[[], None]) -> bool:
        """Whether its pods did as they were told; a run with one that does not is removed, and nobody else suffers."""
        try:
            order()
        except SandboxUnavailable as error:
            log.warning("a prepared run is given up: %s", error)
        except Exception:
            log.exception("a prepared run is given up")
        else:
            return True
        self._drop(prepared)
        return False

    def _drop(self, prepared: PreparedRun) -> None:
        with self._changed:
            self._waiting.remove(prepared)
        prepared.remove()

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._closed or self._may_work(), self._look_s)
                if self._closed:
                    return
                if self._measuring or self._busy:
                    continue
                wanted = self._wanted
                self._busy = True
            done = False
            try:
                self._step(wanted)
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

    def _step(self, wanted: tuple[SandboxRunner, Recipe] | None) -> None:
        """One thing that is not done yet: a run removed, thawed or opened, or one pod started; else a look at all."""
        old = next((one for one in self._waiting if self._outdated(one, wanted)), None)
        frozen = next((one for one in self._waiting if one.still), None)
        short = next((one for one in self._waiting if _missing(one)), None)
        if old is not None:
            self._drop(old)
        elif frozen is not None:
            self._does(frozen, frozen.resume)
        elif wanted is not None and short is not None:
            spec = _missing(short)[0]
            short.pods.append((spec, short.space.start(_ahead(spec))))
        elif wanted is not None and len(self._waiting) < self._size:
            self._prepare(*wanted)
        else:
            self._look()

    def _prepare(self, runner: SandboxRunner, recipe: Recipe) -> None:
        stack = ExitStack()
        space = stack.enter_context(runner.open_run(secrets.token_hex(16), recipe.limits))
        with self._changed:
            self._waiting.append(PreparedRun(recipe, space, stack, self._clock()))

    def _look(self) -> None:
        """Removes runs with dead pods, so that they are replaced before somebody needs them.

        Raises:
            SandboxUnavailable: this happens again and again.
        """
        lost = 0
        for prepared in list(self._waiting):
            if self._measuring:
                break  # somebody waits for us
            try:
                alive = prepared.alive()
            except SandboxUnavailable as error:
                log.warning("prepared runs cannot be looked at: %s", error)  # nor could they be replaced
                break
            if not alive:
                log.warning("a prepared run is replaced: a pod of it has ended")
                self._drop(prepared)
                lost += 1
        if lost:
            self._losses += 1
            if self._losses >= _MOST_LOSSES:
                raise SandboxUnavailable(f"pods that waited were found dead {self._losses} times since the last run")

    def _may_work(self) -> bool:
        if self._measuring or self._busy:
            return False
        if self._wanted is not None:
            return not self._full()
        return any(one.still or self._outdated(one, None) for one in self._waiting)

    def _full(self) -> bool:
        return (
            self._wanted is not None
            and len(self._waiting) == self._size
            and not any(one.still or _missing(one) or self._outdated(one, self._wanted) for one in self._waiting)
        )

    def _fresh(self, prepared: PreparedRun) -> bool:
        return self._clock() - prepared.born < RENEW_S

    def _outdated(self, prepared: PreparedRun, wanted: tuple[SandboxRunner, Recipe] | None) -> bool:
        recipe = prepared.recipe if wanted is None else wanted[1]
        return not self._fresh(prepared) or prepared.recipe != recipe or prepared.recipe.specs != recipe.specs


def _missing(prepared: PreparedRun) -> list[PodSpec]:
    return [spec for spec in prepared.recipe.specs if all(spec != there for there, _ in prepared.pods)]


def _ahead(spec: PodSpec) -> PodSpec:
    if not spec.imports:
        return spec
    return replace(spec, environment={**spec.environment, "GRADER_AHEAD": ",".join(spec.imports)})
