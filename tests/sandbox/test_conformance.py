"""Both runners show every behaviour of `tests.sandbox.conformance`; the process runner those that need no walls."""

import secrets
import threading
import time

import pytest

from tests.sandbox.conformance import BEHAVIOURS, NEEDS_ISOLATION
from tests.sandbox.owner import LIMITS, ask, drill
from tests.store.threads import at_once

NAMED = {behaviour.name: behaviour for behaviour in BEHAVIOURS}


def behaviours(*names):
    """For a test of each of these behaviours."""
    return pytest.mark.parametrize("behaviour", [NAMED[name] for name in names], ids=names)


EVERY = behaviours(*NAMED)
WITHOUT_WALLS = behaviours(*(name for name in NAMED if name not in NEEDS_ISOLATION))


@WITHOUT_WALLS
@pytest.mark.parametrize("fixture", ["process_runner", "forked_runner"])
@pytest.mark.integration
def test_process_runner(request, fixture, behaviour):
    """The process runner does what every runner must do, and so does the one that tests fork pods with."""
    behaviour.check(request.getfixturevalue(fixture))


@EVERY
def test_docker_runner(docker_runner, behaviour):
    """The Docker runner does all of it, walls included."""
    behaviour.check(docker_runner)


@EVERY
def test_broker_runner(broker_runner, behaviour):
    """A runner whose pods the broker starts does all of it, too."""
    behaviour.check(broker_runner)


@EVERY
@pytest.mark.slow
def test_docker_runner_with_crun(crun_runner, behaviour):
    """And so it does with a second OCI runtime."""
    behaviour.check(crun_runner)
    assert crun_runner.facts.oci_runtime == "crun"


def test_runs_beside_each_other(runner):
    """Three at once, while somebody sweeps all the time: each sees its own files only, and has its own end."""
    stop = threading.Event()

    def sweep():
        while not stop.wait(0.01):
            runner.sweep()

    def own_file(number):
        with runner.open_run(f"beside-{number}-{secrets.token_hex(4)}", LIMITS) as space:
            pod = space.start(drill())
            path = f"{space.paths.workspace}/mine"
            ask(pod, kind="write", path=path, size=number)
            time.sleep(0.2)
            return ask(pod, kind="size", path=path).body["value"]

    sweeper = threading.Thread(target=sweep)
    sweeper.start()
    try:
        assert at_once(3, own_file) == [0, 1, 2]
    finally:
        stop.set()
        sweeper.join()


def test_the_process_runner_says_that_it_has_no_walls(process_runner):
    """Nobody can mistake it for isolation."""
    assert process_runner.facts.isolated is False
