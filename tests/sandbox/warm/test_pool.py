"""The pool over pods that only note what is done with them: stillness, age, death, and who waits for whom."""

import contextlib
import threading
import time
from types import SimpleNamespace

import pytest

from grader_service.errors import SandboxUnavailable
from grader_service.settings import Settings
from sandbox.api import PodRole
from sandbox.kubernetes import runner as kubernetes_runner
from sandbox.warm.pool import RENEW_S, WHOLE_S
from tests.hand_clock import HandClock
from tests.sandbox.owner import LIMITS, OTHER_LIMITS, drill
from tests.sandbox.prepared_runs import prepared
from tests.waiting import wait_for

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

    def start_clock(self):
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

    def open_run(self, run_id, limits):
        del run_id, limits
        return Space(self)


class Space:
    """What such a runner opens."""

    paths = submission_dir = shards_dir = None

    def __init__(self, engine):
        self._engine = engine
        self._pods = []

    def __enter__(self):
        return self

    def start(self, spec):
        self._engine.answer("start")
        self._pods.append(Pod(self._engine, spec))
        self._engine.pods.append(self._pods[-1])
        return self._pods[-1]

    def __exit__(self, *error):
        for pod in self._pods:
            pod.gone = True
        self._engine.answer("remove")


@pytest.fixture
def in_memory():
    return Engine()


@pytest.fixture
def clock():
    return HandClock()


def full(in_memory, size=1, **settings):
    """A warm runner and its pool, over runs of one pod each that are prepared."""
    return prepared(in_memory, drill(), size=size, **settings)


def beside(work):
    """Begins it in another thread."""
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


def ends(thread):
    thread.join(SOON_S / 2)
    return not thread.is_alive()


class TestStillness:
    """While somebody measures, nothing that waits runs."""

    def test_all_but_the_run_that_measures(self, in_memory):
        """Its own pods are never frozen, not even for a moment; the others are, until it has measured."""
        with full(in_memory, size=3) as (warm, pool):
            with warm.open_run("run", LIMITS) as space:
                pod = space.start(drill())
                assert pool.waits(SOON_S), "the next run is prepared beside this one"
                with space.quiet():
                    assert [one.frozen for one in in_memory.there if one is not pod] == [True] * 3
                assert pool.waits(SOON_S)
                assert not any(one.frozen for one in in_memory.there)
            assert pod.orders == []

    def test_a_run_that_finds_nothing_of_its_own(self, in_memory):
        """Another lab's limits: what waits for the last lab goes when this run has ended."""
        with full(in_memory) as (warm, pool):
            (old,) = in_memory.there
            with warm.open_run("run", OTHER_LIMITS) as space:
                own = space.start(drill())
                with space.quiet():
                    assert not own.frozen
                    assert old.frozen
            assert pool.waits(SOON_S)
            assert old.gone
            assert not any(one.frozen for one in in_memory.there)

    def test_quiet_without_a_run(self, in_memory):
        """Who measures for itself has no company either."""
        with full(in_memory, size=2) as (_, pool):
            with pool.quiet():
                assert all(one.frozen for one in in_memory.there)
            assert pool.waits(SOON_S)
            assert not any(one.frozen for one in in_memory.there)

    def test_the_last_of_several_thaws(self, in_memory):
        """What is frozen stays so until nobody measures; a run that opens meanwhile gets a pod that was."""
        with full(in_memory, size=2) as (warm, pool):
            with pool.quiet():
                with pool.quiet():
                    pass
                with warm.open_run("run", LIMITS) as space:
                    pod = space.start(drill())
                    assert pod.orders == ["pause", "resume"]
                    (left,) = (one for one in in_memory.there if one is not pod)
                    assert not pool.waits(0.2)
                    assert left.frozen
            assert pool.waits(SOON_S)
            assert left.orders == ["pause", "resume"]

    def test_a_start_that_is_under_way(self, in_memory):
        """It ends first, and its pod is frozen like the others."""
        with full(in_memory, size=2) as (warm, pool):
            with in_memory.hold("start") as starts:
                with warm.open_run("one", LIMITS) as space:
                    space.start(drill())
                assert starts.wait(SOON_S)
                opened = threading.Event()
                frozen = []

                def measure():
                    with pool.quiet():
                        opened.set()
                        frozen.extend(one.frozen for one in in_memory.there)

                measuring = beside(measure)
                assert not opened.wait(0.2)
            assert ends(measuring)
            assert frozen == [True, True]

    @pytest.mark.parametrize("error", [None, ValueError("not ours")])
    @pytest.mark.parametrize("verbs", [("pause",), ("pause", "remove")], ids=["not frozen", "nor removed"])
    def test_a_pod_that_cannot_be_frozen(self, in_memory, verbs, error):
        """Its prepared run goes before anything is timed, which is not harmed; what stays is left to a sweep."""
        with full(in_memory, size=2) as (_, pool):
            waited = in_memory.there
            for verb in verbs:
                in_memory.refuse(verb, error)
            with pool.quiet():
                assert all(one.gone for one in waited)
                in_memory.refused.clear()
            assert pool.waits(SOON_S)
            assert len(in_memory.there) == 2

    def test_a_pod_that_cannot_be_thawed_for_its_run(self, in_memory):
        """The run starts cold."""
        with full(in_memory) as (warm, pool), pool.quiet():
            (frozen,) = in_memory.there
            in_memory.refuse("resume")
            with warm.open_run("run", LIMITS) as space:
                assert "GRADER_AHEAD" not in space.start(drill()).spec.environment
                assert frozen.gone

    def test_a_pod_that_cannot_be_thawed_afterwards(self, in_memory):
        """It is replaced."""
        with full(in_memory) as (_, pool):
            (old,) = in_memory.there
            with pool.quiet():
                in_memory.refuse("resume")
            assert pool.waits(SOON_S)
            assert old.gone
            assert len(in_memory.there) == 1

    def test_an_engine_that_hangs_holds_up_only_who_needs_it(self, in_memory):
        """Who measures, and runs that open; runs that end, recipes and whoever asks need not wait for it."""
        with full(in_memory, size=3) as (warm, pool):
            run = warm.open_run("one", LIMITS)
            assert pool.waits(SOON_S)
            with in_memory.hold("pause") as freezes:
                measuring = beside(lambda: pool.quiet().__enter__())
                assert freezes.wait(SOON_S)
                assert ends(beside(lambda: pool.want(*pool._wanted)))
                assert ends(beside(lambda: pool.waits(0.0)))
                assert ends(beside(lambda: run.__exit__(None, None, None)))
                opening = beside(lambda: warm.open_run("two", LIMITS))
                opening.join(0.2)
                assert opening.is_alive()
                assert measuring.is_alive()
            assert ends(opening)
            assert ends(measuring)

    def test_closing_while_a_run_is_open(self, in_memory):
        """Frozen pods go; the run that was served goes on."""
        with full(in_memory, size=2) as (warm, pool), warm.open_run("run", LIMITS) as space, space.quiet():
            pool.close()
            assert in_memory.there == [space.start(drill())]


class TestRecipe:
    """What is prepared is what runs need, those that need the most."""

    def test_a_run_with_fewer_pods_leaves_it(self, in_memory, clock):
        """For a while: its own pod was there, and the next one may need all of them."""
        large = [drill(), drill(PodRole.SCANNER)]
        with prepared(in_memory, *large, clock=clock) as (warm, pool):
            for age_s, left in ((0.0, 2), (WHOLE_S, 2), (1.0, 1)):
                clock.now += age_s
                with warm.open_run("run", LIMITS) as space:
                    assert "GRADER_AHEAD" in space.start(drill()).spec.environment
                assert pool.waits(SOON_S)
                assert len(in_memory.there) == left

    def test_a_run_with_another_pod_changes_it(self, in_memory):
        """What it had instead is prepared from there on."""
        with prepared(in_memory, drill(), drill(PodRole.SCANNER)) as (warm, pool):
            with warm.open_run("run", LIMITS) as space:
                space.start(drill(memory_mib=300))
            assert pool.waits(SOON_S)
            assert [pod.spec.memory_mib for pod in in_memory.there] == [300]


class TestAge:
    """What has waited for long serves nobody."""

    def test_old_runs_are_renewed(self, in_memory, clock):
        """Each is removed and prepared anew, while nothing else happens."""
        with full(in_memory, size=2, clock=clock, look_s=0.05) as (_, pool):
            old = in_memory.there
            clock.now += RENEW_S - 1
            time.sleep(0.2)
            assert in_memory.there == old
            clock.now += 1
            wait_for(lambda: all(pod.gone for pod in old) and pool.waits(0.0), SOON_S, 0.01)
            assert len(in_memory.there) == 2

    def test_an_old_run_is_not_taken(self, in_memory, clock):
        """It aged while something was measured, when nothing is renewed: the run starts cold, and the old one goes."""
        with full(in_memory, clock=clock) as (warm, pool):
            (old,) = in_memory.there
            with pool.quiet():
                clock.now += RENEW_S
                with warm.open_run("run", LIMITS) as space:
                    assert "GRADER_AHEAD" not in space.start(drill()).spec.environment
            assert pool.waits(SOON_S)
            assert old.gone

    def test_it_goes_also_where_nothing_is_prepared_any_more(self, in_memory, clock):
        """An engine that failed: what is left of better days is no use after a while."""
        with full(in_memory, size=2, clock=clock, look_s=0.05) as (warm, pool):
            in_memory.refuse("start")
            with warm.open_run("run", LIMITS) as space:
                space.start(drill())
            assert not pool.waits(0.5)
            assert len(in_memory.there) == 1
            clock.now += RENEW_S
            wait_for(lambda: not in_memory.there, SOON_S, 0.01)

    def test_what_is_taken_outlives_the_longest_run(self):
        """Whatever the clock of the cluster says."""
        longest = Settings.model_fields["run_limit_s"].default + 2 * Settings.model_fields["lease_s"].default
        assert RENEW_S + longest < kubernetes_runner._POD_LIMIT_S


class TestDeath:
    """Pods that ended while they waited are found before somebody needs them; an engine that fails is left alone."""

    def test_an_engine_that_fails_while_preparing(self, in_memory):
        """Nobody hears of it but the log: the next run starts cold, and with it preparing begins again."""
        with full(in_memory) as (warm, pool):
            in_memory.refuse("start")
            with warm.open_run("one", LIMITS) as space:
                space.start(drill())
            wait_for(lambda: pool._wanted is None, SOON_S, 0.01)
            in_memory.refused.clear()
            assert not pool.waits(0.2)
            with warm.open_run("two", LIMITS) as space:
                assert "GRADER_AHEAD" not in space.start(drill()).spec.environment
            assert pool.waits(SOON_S)

    def test_a_run_with_a_dead_pod_is_replaced(self, in_memory):
        """An idle pool looks now and then."""
        with full(in_memory, size=2, look_s=0.05) as (warm, pool):
            dead, healthy = in_memory.there
            dead.living = False
            wait_for(lambda: dead.gone and pool.waits(0.0), SOON_S, 0.01)
            assert not healthy.gone
            with warm.open_run("run", LIMITS) as space:
                assert "GRADER_AHEAD" in space.start(drill()).spec.environment

    def test_nobody_looks_beside_a_measurement(self, in_memory):
        """Even asking takes an engine's time."""
        with full(in_memory, look_s=0.05) as (_, pool):
            wait_for(lambda: in_memory.asked, SOON_S, 0.01)
            with pool.quiet():
                asked = in_memory.asked
                time.sleep(0.3)
                assert in_memory.asked == asked

    def test_an_engine_that_does_not_answer_the_look(self, in_memory):
        """It says nothing about the pods: they wait on, and are looked at again."""
        with full(in_memory, look_s=0.05) as (_, pool):
            in_memory.refuse("alive")
            (pod,) = in_memory.there
            asked = in_memory.asked
            wait_for(lambda: in_memory.asked > asked + 2, SOON_S, 0.01)
            assert pool.waits(0.0)
            in_memory.refused.clear()
            pod.living = False
            wait_for(lambda: pod.gone and pool.waits(0.0), SOON_S, 0.01)

    def test_pods_that_never_live_long(self, in_memory):
        """They are given up after some rounds, or an idle host would start them for ever; another run begins anew."""
        with full(in_memory, look_s=0.05) as (warm, pool):

            def doom():
                for pod in in_memory.there:
                    pod.living = False
                return not in_memory.there and not pool.waits(0.2)

            wait_for(doom, SOON_S, 0.01)
            assert len(in_memory.pods) < 8
            with warm.open_run("run", LIMITS) as space:
                space.start(drill())
            assert pool.waits(SOON_S)
