"""Warm runners for tests: their pools, what they started, and a witness of what was prepared."""

import contextlib
import secrets

import psutil

from sandbox.api import Ending, PodRole
from sandbox.warm.pool import WarmPool
from sandbox.warm.runner import WarmRunner
from tests.sandbox.owner import LIMITS, ask

FULL_S = 60.0
IMPORTS_S = 180.0
"""Three large libraries on a busy machine."""


@contextlib.contextmanager
def pooled(runner, size=1, **settings):
    """A warm runner over this one, and its pool."""
    pool = WarmPool(size, **settings)
    try:
        yield WarmRunner(runner, pool), pool
    finally:
        pool.close()


@contextlib.contextmanager
def prepared(runner, *specs, size=1, **settings):
    """The same, after one run that started these pods and when as many runs are prepared as there should be."""
    with pooled(runner, size, **settings) as (warm, pool):
        # Containers and volumes are named after their run, and tests of other files use the same engine.
        with warm.open_run(f"teacher-{secrets.token_hex(4)}", LIMITS) as space:
            for spec in specs:
                space.start(spec)
        assert pool.waits(FULL_S)
        yield warm, pool


class Counting:
    """A runner that keeps the pods it was asked for."""

    def __init__(self, runner):
        self.runner = runner
        self.facts = runner.facts
        self.pods = []

    def open_run(self, run_id, limits):
        space = self.runner.open_run(run_id, limits)
        start = space.start

        def counted(spec):
            self.pods.append(start(spec))
            return self.pods[-1]

        space.start = counted
        return space

    def sweep(self):
        return self.runner.sweep()


class OnlyPrepared:
    """A warm runner each of whose spaces must be one that waited, and so must the first pod of each kind in it.

    A second one of the same kind starts cold: one of each is prepared.
    """

    def __init__(self, warm, pool, counting):
        self.warm = warm
        self.pool = pool
        self.counting = counting
        self.claimed = 0

    def open_run(self, run_id, limits):
        assert self.pool.waits(FULL_S)
        waited = list(self.counting.pods)
        space = self.warm.open_run(run_id, limits)
        assert space._prepared is not None, "the space was made for this run"
        start, kinds = space.start, []

        def watched(spec):
            pod = start(spec)
            if spec not in kinds:
                kinds.append(spec)
                assert any(pod is one for one in waited), "the pod was started for this run"
                assert pod.spec.role is not PodRole.LEARNER or loaded(pod) == list(pod.spec.imports)
                self.claimed += 1
            return pod

        space.start = watched
        return space

    def sweep(self):
        return self.warm.sweep()


def shown_by_prepared(runner, behaviour):
    """Holds for cold pods, which teach the pool what to prepare, and then for pods that waited."""
    counting = Counting(runner)
    with pooled(counting) as (warm, pool):
        behaviour.check(warm)
        second = OnlyPrepared(warm, pool, counting)
        behaviour.check(second)
        assert second.claimed
    assert runner.sweep() == 0


def loaded(pod):
    """Those of them that a pod has imported: it answers when it is done with that."""
    assert pod.send({"kind": "loaded", "names": list(pod.spec.imports)}) is None
    answer = pod.receive(IMPORTS_S)
    assert not isinstance(answer, Ending), pod.end()
    return answer.body["value"]


def guests(pod):
    """Those of a process pod, without its supervisor."""
    return psutil.Process(pod._handle._supervisor.pid).children(recursive=True)


def is_warm(pod):
    """Whether the pod was started ahead: only such a learner's pod has modules named to it."""
    return "GRADER_AHEAD" in ask(pod, kind="facts").body["environment"]
