"""Attempts travel from the store to the test and into the evidence; only what was put to the test is one."""

import pytest

from grader_service.model.evidence import Evidence
from grader_service.run.execution import RunOutcome
from grader_service.service import runner
from grader_service.service.pipeline import StageEnd
from grader_service.store import results
from tests.factories import a_block, a_measurement, a_run, an_evidence

pytestmark = pytest.mark.integration


@pytest.fixture
def asked(monkeypatch):
    """Attempts that runs were asked for; the measurement in `found` stands for what they find."""
    found = {"measurement": a_measurement(), "attempts": []}

    def execute(_artifact, _lab, plan, *_, run_id, **__):
        attempt = plan.attempt
        found["attempts"].append(attempt)
        measurement = found["measurement"]
        if measurement is not None:
            measurement = measurement.model_copy(update={"attempt": attempt})
        return RunOutcome(an_evidence(run=a_run(run_id=run_id), measurement=measurement), {})

    monkeypatch.setattr(runner, "execute", execute)
    return found


def test_each_measured_submission_is_one_more(local, asked):
    """Also when they were all handed in before the first was run, and before any was judged."""
    submissions = [local.submit(learner="ann") for _ in range(3)]
    assert local.run_all(local.deps()) == [StageEnd.STORED] * 3
    assert asked["attempts"] == [1, 2, 3]
    stored = results.load_evidence(local.store, local.run(submissions[2]).run_id)
    assert stored.kind == "measured"
    assert Evidence.model_validate_json(stored.document).measurement.attempt == 3
    assert local.judge() is not None


def crashed(*blocks, **changes):
    """A measurement whose pipeline ended after these blocks."""
    return a_measurement(blocks=blocks, decision=None, problem="it crashed", **changes)


@pytest.mark.parametrize(
    ("measurement", "attempts"),
    [
        pytest.param(None, [1, 1], id="not measured"),
        pytest.param(crashed(), [1, 1], id="no block"),
        pytest.param(
            a_measurement((2.0, 2.1), decision=None, unsteady="throttled"), [1, 1], id="contaminated by the host"
        ),
        pytest.param(crashed(a_block(0, 2.0)), [1, 2], id="stopped after one"),
        pytest.param(crashed(a_block(0, 2.0), a_block(1, 2.1)), [1, 2], id="stopped after two"),
        pytest.param(crashed(screened=(a_block(0, 2.0),)), [1, 2], id="stopped beside a kept reference"),
    ],
)
def test_what_was_put_to_the_test_is_an_attempt_and_nothing_else(local, asked, measurement, attempts):
    """Free is what was not measured, or what the host did not let be.

    A graph that ends when it likes has seen its own rate, so it gets no free tries after a bad block.
    """
    asked["measurement"] = measurement
    for _ in range(2):
        local.submit(learner="ann")
    local.run_all(local.deps())
    assert asked["attempts"] == attempts
