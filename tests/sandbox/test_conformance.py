"""Both runners show every behaviour of `sandbox.conformance`; the process runner those that need no walls."""

import pytest

from sandbox.conformance import BEHAVIOURS, NEEDS_ISOLATION


@pytest.mark.parametrize(
    "behaviour",
    [behaviour for behaviour in BEHAVIOURS if behaviour.name not in NEEDS_ISOLATION],
    ids=lambda behaviour: behaviour.name,
)
@pytest.mark.parametrize("fixture", ["process_runner", "forked_runner"])
@pytest.mark.integration
def test_process_runner(request, fixture, behaviour):
    """The process runner does what every runner must do, and so does the one that tests fork pods with."""
    behaviour.check(request.getfixturevalue(fixture))


@pytest.mark.integration
@pytest.mark.parametrize("behaviour", BEHAVIOURS, ids=lambda behaviour: behaviour.name)
def test_docker_runner(docker_runner, behaviour):
    """The Docker runner does all of it, walls included."""
    behaviour.check(docker_runner)


def test_the_process_runner_says_that_it_has_no_walls(process_runner):
    """Nobody can mistake it for isolation."""
    assert process_runner.facts.isolated is False
