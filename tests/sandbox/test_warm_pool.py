"""The pool over pods that only note what is done with them: stillness, age, death, and who waits for whom."""

import contextlib
import threading
import time
from types import SimpleNamespace

import pytest

from grader_service.errors import SandboxUnavailable
from grader_service.settings import Settings
from sandbox import kubernetes_runner
from sandbox.api import SpaceLimits
from sandbox.warm_pool import RENEW_S, WarmPool
from tests.hand_clock import HandClock
from tests.sandbox.owner import LIMITS, drill
from tests.sandbox.prepared_runs import prepared

OTHER = SpaceLimits(workspace_mib=32, workspace_inodes=500, shm_mib=16)
SOON_S = 10.0


class Pod:
    """Does as it is told, unless its engine refuses."""

    def __init__(self, engine, spec):
        self.engine = engine
        self.spec = spec
        self.orders = []
        self.living = True
        self.frozen = False
        self.gone = False

    def alive(self):
        self.engine.asked += 1
        self.engine.answer("alive")
        return self.living

    def claim(self):
        return self.living

    def pause(self):
        self.engine.answer("pause")
        self.orders.append("pause")
        self.frozen = True

    def resume(self):
        self.engine.answer("resume")
        self.orders.append("resume")
        self.frozen = False


class Engine:
    """A runner of such pods."""

    facts = SimpleNamespace(image_digest="sha256:1")

    def __init__(self):
        self.pods = []
        self.asked = 0
        self.refused = {}
        self.held = {}

    @property
    def there(self):
        return [pod for pod in self.pods if not pod.gone]

    def refuse(self, verb, error=None):
        self.refused[verb] = error or SandboxUnavailable(f"{verb}: the engine is away")

    @contextlib.contextmanager
    def hold(self, verb):
        """Orders of this kind hang; yields what says that one does. They are done afterwards."""
        reached, released = threading.Event(), threading.Event()
        self.held[verb] = (reached, released)
        try:
            yield reached
        finally:
            del self.held[verb]
            released.set()

    def answer(self, verb):
        if verb in self.held:
            reached, released = self.held[verb]
            reached.set()
            assert released.wait(SOON_S)
        if verb in self.refused:
            raise self.refused[verb]

    @contextlib.contextmanager
    def _space(self):
        mine = []

        def start(spec):
            self.answer("start")
            mine.append(Pod(self, spec))
            self.pods.append(mine[-1])
            return mine[-1]

        try:
            yield SimpleNamespace(paths=None, submission_dir=None, shards_dir=None, start=start)
        finally:
            for pod in mine:
                pod.gone = True
            self.answer("remove")

    def open_run(self, run_id, limits):
        del run_id, limits
        stack = contextlib.ExitStack()
        space = stack.enter_context(self._space())
        return Space(stack, space)


class Space:
    """What such a runner opens."""

    def __init__(self, stack, space):
        self._stack = stack
        self.__dict__.update(vars(space))

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self._stack.__exit__(*error)


@pytest.fixture
def engine():
    return Engine()


@pytest.fixture
def clock():
    return HandClock()


def full(engine, size=1, **settings):
    """A warm runner and its pool, over runs of one pod each that are prepared."""
    return prepared(engine, drill(), size=size, **settings)


def eventually(condition):
    deadline = time.monotonic() + SOON_S
    while not condition():
        assert time.monotonic() < deadline, "it did not come true"
        time.sleep(0.01)


def beside(work):
    """Begins it in another thread."""
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


def ends(thread):
    thread.join(SOON_S / 2)
    return not thread.is_alive()


class TestStillness:
    """While a run is open, nothing that waits runs."""

    def test_all_but_the_run_that_opens(self, engine):
        """Its own pods are never frozen, not even for a moment; the others are, until it is gone."""
        with full(engine, size=3) as (warm, pool):
            with warm.open_run("run", LIMITS) as space:
                pod = space.start(drill())
                assert pod.orders == []
                assert sorted(one.frozen for one in engine.there) == [False, True, True]
            assert pool.waits(SOON_S)
            assert not any(one.frozen for one in engine.there)

    def test_a_run_that_finds_nothing_of_its_own(self, engine):
        """Another lab's limits: what waits for the last lab stands still, and goes when this run has ended."""
        with full(engine) as (warm, pool):
            (old,) = engine.there
            with warm.open_run("run", OTHER) as space:
                assert not space.start(drill()).frozen
                assert old.frozen
            assert pool.waits(SOON_S)
            assert old.gone
            assert not any(one.frozen for one in engine.there)

    def test_quiet_without_a_run(self, engine):
        """Who measures for itself has no company either."""
        with full(engine, size=2) as (_, pool):
            with pool.quiet():
                assert all(one.frozen for one in engine.there)
            assert pool.waits(SOON_S)
            assert not any(one.frozen for one in engine.there)

    def test_the_last_of_several_runs_thaws(self, engine):
        """What is frozen stays so until no run is open; the second one to open is served by a pod that was frozen."""
        with full(engine, size=3) as (warm, pool):
            first = warm.open_run("one", LIMITS)
            second = warm.open_run("two", LIMITS)
            with second:
                with first:
                    pass
                pod = second.start(drill())
                assert pod.orders == ["pause", "resume"]
                (left,) = (one for one in engine.there if one is not pod)
                assert not pool.waits(0.2)
                assert left.frozen
            assert pool.waits(SOON_S)
            assert left.orders == ["pause", "resume"]

    def test_a_start_that_is_under_way(self, engine):
        """It ends first, and its pod is frozen like the others."""
        with full(engine, size=2) as (warm, pool):
            with engine.hold("start") as starts:
                with warm.open_run("one", LIMITS) as space:
                    space.start(drill())
                assert starts.wait(SOON_S)
                opened = threading.Event()
                frozen = []

                def measure():
                    with pool.quiet():
                        opened.set()
                        frozen.extend(one.frozen for one in engine.there)

                measuring = beside(measure)
                assert not opened.wait(0.2)
            assert ends(measuring)
            assert frozen == [True, True]

    @pytest.mark.parametrize("error", [None, ValueError("not ours")])
    def test_a_pod_that_cannot_be_frozen(self, engine, error):
        """Its prepared run goes, before the other run begins, which is not harmed."""
        with full(engine, size=2) as (warm, pool):
            waited = engine.there
            engine.refuse("pause", error)
            with warm.open_run("run", LIMITS) as space:
                assert space.start(drill()) in waited
                assert sum(one.gone for one in waited) == 1
            engine.refused.clear()
            assert pool.waits(SOON_S)
            assert len(engine.there) == 2

    @pytest.mark.parametrize("error", [None, ValueError("not ours")])
    def test_nor_removed(self, engine, error):
        """That is left to a sweep."""
        with full(engine, size=2) as (warm, _):
            engine.refuse("pause", error)
            engine.refuse("remove", error)
            with warm.open_run("run", LIMITS) as space:
                assert space.start(drill()) in engine.there
                engine.refused.clear()

    def test_a_pod_that_cannot_be_thawed_for_its_run(self, engine):
        """The run starts cold."""
        with full(engine, size=2) as (warm, _), warm.open_run("one", LIMITS):
            (frozen,) = (one for one in engine.there if one.frozen)
            engine.refuse("resume")
            with warm.open_run("two", LIMITS) as space:
                assert "GRADER_AHEAD" not in space.start(drill()).spec.environment
                assert frozen.gone

    def test_a_pod_that_cannot_be_thawed_afterwards(self, engine):
        """It is replaced."""
        with full(engine) as (_, pool):
            (old,) = engine.there
            with pool.quiet():
                engine.refuse("resume")
            assert pool.waits(SOON_S)
            assert old.gone
            assert len(engine.there) == 1

    def test_an_engine_that_hangs_holds_up_only_runs_that_open(self, engine):
        """Runs that end, recipes and whoever asks need not wait for it."""
        with full(engine, size=3) as (warm, pool):
            with engine.hold("pause") as freezes:
                opening = beside(lambda: warm.open_run("one", LIMITS).__exit__(None, None, None))
                assert freezes.wait(SOON_S)
                assert ends(beside(lambda: pool.want(*pool._wanted)))
                assert ends(beside(lambda: pool.waits(0.0)))
                assert opening.is_alive()
            assert ends(opening)
            run = warm.open_run("two", LIMITS)
            with engine.hold("resume") as thaws:
                assert ends(beside(lambda: run.__exit__(None, None, None)))
                assert thaws.wait(SOON_S)
                opening = beside(lambda: warm.open_run("three", LIMITS).__exit__(None, None, None))
                opening.join(0.2)
                assert opening.is_alive()
            assert ends(opening)

    def test_closing_while_a_run_is_open(self, engine):
        """Frozen pods go; the run that was served goes on."""
        with full(engine, size=2) as (warm, pool), warm.open_run("run", LIMITS) as space:
            pool.close()
            assert engine.there == [space.start(drill())]


class TestAge:
    """What has waited for long serves nobody."""

    def test_old_runs_are_renewed(self, engine, clock):
        """Each is removed and prepared anew, while nothing else happens."""
        with full(engine, size=2, clock=clock, look_s=0.05) as (_, pool):
            old = engine.there
            clock.now += RENEW_S - 1
            time.sleep(0.2)
            assert engine.there == old
            clock.now += 1
            eventually(lambda: all(pod.gone for pod in old) and pool.waits(0.0))
            assert len(engine.there) == 2

    def test_an_old_run_is_not_taken(self, engine, clock):
        """Nobody had the time to renew it: the run starts cold, and the old one stands still until it goes."""
        with full(engine, clock=clock) as (warm, pool):
            (old,) = engine.there
            clock.now += RENEW_S
            with warm.open_run("run", LIMITS) as space:
                assert "GRADER_AHEAD" not in space.start(drill()).spec.environment
                assert old.frozen
            assert pool.waits(SOON_S)
            assert old.gone

    def test_it_goes_also_where_nothing_is_prepared_any_more(self, engine, clock):
        """An engine that failed: what is left of better days is no use after a while."""
        with full(engine, size=2, clock=clock, look_s=0.05) as (warm, pool):
            engine.refuse("start")
            with warm.open_run("run", LIMITS) as space:
                space.start(drill())
            assert not pool.waits(0.5)
            assert len(engine.there) == 1
            clock.now += RENEW_S
            eventually(lambda: not engine.there)

    def test_what_is_taken_outlives_the_longest_run(self):
        """Whatever the clock of the cluster says."""
        longest = Settings.model_fields["run_limit_s"].default + 2 * Settings.model_fields["lease_s"].default
        assert RENEW_S + longest < kubernetes_runner._POD_LIMIT_S


class TestDeath:
    """Pods that ended while they waited are found before somebody needs them."""

    def test_a_run_with_a_dead_pod_is_replaced(self, engine):
        """An idle pool looks now and then."""
        with full(engine, size=2, look_s=0.05) as (warm, pool):
            dead, healthy = engine.there
            dead.living = False
            eventually(lambda: dead.gone and pool.waits(0.0))
            assert not healthy.gone
            with warm.open_run("run", LIMITS) as space:
                assert "GRADER_AHEAD" in space.start(drill()).spec.environment

    def test_nobody_looks_beside_a_run(self, engine):
        """Even asking takes an engine's time."""
        with full(engine, look_s=0.05) as (_, pool):
            eventually(lambda: engine.asked)
            with pool.quiet():
                asked = engine.asked
                time.sleep(0.3)
                assert engine.asked == asked

    def test_an_engine_that_does_not_answer_the_look(self, engine):
        """It says nothing about the pods: they wait on, and are looked at again."""
        with full(engine, look_s=0.05) as (_, pool):
            engine.refuse("alive")
            (pod,) = engine.there
            asked = engine.asked
            eventually(lambda: engine.asked > asked + 2)
            assert pool.waits(0.0)
            engine.refused.clear()
            pod.living = False
            eventually(lambda: pod.gone and pool.waits(0.0))

    def test_pods_that_never_live_long(self, engine):
        """They are given up after some rounds, or an idle host would start them for ever; another run begins anew."""
        with full(engine, look_s=0.05) as (warm, pool):

            def doom():
                for pod in engine.there:
                    pod.living = False
                return not engine.there and not pool.waits(0.2)

            eventually(doom)
            assert len(engine.pods) < 8
            with warm.open_run("run", LIMITS) as space:
                space.start(drill())
            assert pool.waits(SOON_S)


def test_the_pool_of_a_worker_looks_every_half_minute():
    """Seldom enough to cost nothing, often enough for a restart of the engine to go unnoticed."""
    assert WarmPool(1)._look_s == 30.0
