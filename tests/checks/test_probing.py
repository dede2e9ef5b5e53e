"""What a probe could not observe becomes a result with a reason; nothing that a learner's process says raises."""

import pytest

from checks.api import CheckResult
from checks.probing import read_probe
from grader_service.model.base import Wire
from grader_service.model.evidence import ProbeRecord, ProbeSite
from tests.factories import a_discovery, an_evidence


class Seen(Wire):
    """What the probe of these tests returns."""

    count: int


def a_record(**changes) -> ProbeRecord:
    values = {
        "id": "looks",
        "version": "1.0.0",
        "site": ProbeSite.GRAPH,
        "sha256": "0" * 64,
        "status": "ok",
        "observations": None if "status" in changes else {"count": 3},
    }
    return ProbeRecord(**(values | changes))


def read(*records: ProbeRecord, **changes):
    return read_probe(an_evidence(probes=records, **changes), "look", "looks", Seen)


def test_observations_come_as_the_model_of_the_check():
    """Validated, in the check's own type."""
    assert read(a_record()) == Seen(count=3)


@pytest.mark.parametrize(
    ("record", "outcome", "code"),
    [
        (a_record(status="no_graph", text="python_function"), "unverified", "look.not_carried"),
        (a_record(status="graph_failed", text="crop too large"), "unverified", "look.graph_failed"),
        (a_record(status="raised", text="KeyError: 1"), "error", "look.probe_failed"),
        (a_record(status="unreadable", text="a set"), "error", "look.probe_failed"),
        (a_record(status="timed_out", text="12 s"), "unverified", "look.timed_out"),
        (a_record(status="pod_ended", text="oom"), "unverified", "look.pod_ended"),
        (a_record(observations={"count": "many"}), "error", "look.probe_failed"),
        (a_record(site=ProbeSite.LEARNER, observations={"count": "many"}), "unverified", "look.unreadable"),
        (a_record(site=ProbeSite.LEARNER, status="raised", text="x"), "unverified", "look.probe_failed"),
        (a_record(id="other"), "error", "look.not_observed"),
    ],
)
def test_what_is_missing_has_a_reason(record, outcome, code):
    """A fault of ours is an error, a doubt is unverified, and nothing has failed that was not seen."""
    result = read(record)
    assert isinstance(result, CheckResult)
    assert (result.outcome, result.code) == (outcome, code)


def test_without_a_pipeline_that_is_the_answer():
    """A graph cannot be missing where none was built."""
    result = read(a_record(status="no_graph"), discovery=a_discovery(pipelines=()))
    assert (result.outcome, result.code) == ("failed", "look.no_pipeline")
