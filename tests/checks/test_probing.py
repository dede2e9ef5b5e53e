"""What a probe could not observe becomes a result with a reason; nothing that a learner's process says raises."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checks.api import CheckResult
from checks.probing import read_probe
from grader_service.model.base import Wire
from grader_service.model.evidence import ProbeRecord, ProbeSite
from tests.factories import a_discovery, an_evidence

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**9), 10**9)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


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
        "observations": {"count": 3},
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
        (a_record(status="no_graph", text="python_function", observations=None), "unverified", "look.not_carried"),
        (a_record(status="graph_failed", text="crop too large", observations=None), "unverified", "look.graph_failed"),
        (a_record(status="raised", text="KeyError: 1", observations=None), "error", "look.probe_failed"),
        (a_record(status="unreadable", text="a set", observations=None), "error", "look.probe_failed"),
        (a_record(status="timed_out", text="12 s", observations=None), "unverified", "look.timed_out"),
        (a_record(status="pod_ended", text="oom", observations=None), "unverified", "look.pod_ended"),
        (a_record(observations={"count": "many"}), "error", "look.probe_failed"),
        (a_record(site=ProbeSite.LEARNER, observations={"count": "many"}), "unverified", "look.unreadable"),
        (
            a_record(site=ProbeSite.LEARNER, status="raised", text="x", observations=None),
            "unverified",
            "look.probe_failed",
        ),
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
    result = read(a_record(status="no_graph", observations=None), discovery=a_discovery(pipelines=()))
    assert (result.outcome, result.code) == ("failed", "look.no_pipeline")


def test_a_pod_that_said_nothing_is_the_answer():
    """The reasons of `checks.stopped` come first."""
    assert read(a_record(), discovery=None).outcome == "failed"


@given(observations=st.dictionaries(st.text(max_size=8), JSON, max_size=5), site=st.sampled_from(ProbeSite))
def test_any_observation_is_read_or_answered(observations, site):
    """Hostile or not."""
    found = read(a_record(site=site, observations=observations))
    assert isinstance(found, (Seen, CheckResult))
