"""What a probe could not observe becomes a result with a reason; nothing that a learner's process says raises."""

import pytest

from checks.api import Result
from checks.probing import no_such_graph, read_probe
from grader_service.model.base import Wire
from grader_service.model.discovery import PathClaim
from grader_service.model.evidence import ProbeRecord, ProbeSite
from tests.factories import a_discovery, an_evidence

STOPPED = """Error in GPU operator `nvidia.dali.fn.crop`,
which was used in the pipeline definition with the following traceback:

  File "submission.py", line 22, in train_pipeline
    images = fn.crop(images, crop=(5000, 5000))

encountered:

[/opt/dali/dali/operators/generic/slice/out_of_bounds_policy.h:141] Assert on "min_start >= 0" failed: Slice can't be \
placed out of bounds with current policy. Got: input_shape={64, 64, 3}, slice_shape={5000, 5000}, out of bounds

C++ context: [frame 1]
"""


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


def read(*records: ProbeRecord, site=None, **changes):
    """What the check hears, which asks for the site at which the probe ran unless told otherwise."""
    wanted = site or (records[0].site if records else ProbeSite.GRAPH)
    return read_probe(an_evidence(probes=records, **changes), "looks", Seen, wanted)


def test_observations_come_as_the_model_of_the_check():
    """Validated, in the check's own type."""
    assert read(a_record()) == Seen(count=3)


@pytest.mark.parametrize(
    ("record", "outcome", "code"),
    [
        (a_record(status="no_graph", text="python_function"), "unverified", "not_carried"),
        (a_record(status="graph_failed", text="crop too large"), "unverified", "graph_failed"),
        (a_record(status="raised", text="KeyError: 1"), "error", "probe_failed"),
        (a_record(status="unreadable", text="a set"), "error", "probe_failed"),
        (a_record(status="timed_out", text="12 s"), "unverified", "timed_out"),
        (a_record(status="pod_ended", text="oom"), "unverified", "pod_ended"),
        (a_record(observations={"count": "many"}), "error", "probe_failed"),
        (a_record(site=ProbeSite.LEARNER, observations={"count": "many"}), "unverified", "unreadable"),
        (a_record(site=ProbeSite.LEARNER, status="raised", text="x"), "unverified", "probe_failed"),
        (a_record(id="other"), "error", "not_observed"),
    ],
)
def test_what_is_missing_has_a_reason(record, outcome, code):
    """A fault of ours is an error, a doubt is unverified, and nothing has failed that was not seen."""
    result = read(record)
    assert isinstance(result, Result)
    assert (result.outcome, result.code) == (outcome, code)
    assert "nothing is counted" in result.feedback
    assert result.parts.next is not None


def test_a_claim_is_not_taken_for_a_fact():
    """What ran in the learner's process says nothing where a graph was asked for."""
    result = read(a_record(site=ProbeSite.LEARNER), site=ProbeSite.GRAPH)
    assert (result.outcome, result.code) == ("error", "not_observed")


@pytest.mark.parametrize("status", ["no_graph", "graph_failed", "raised", "unreadable", "timed_out", "pod_ended"])
def test_what_was_said_at_length_is_cut(status):
    """No more than 60 words come to the learner, the rest stands in the details."""
    said = "word " * 400
    result = read(a_record(site=ProbeSite.LEARNER, status=status, text=said))
    assert len(result.feedback.split()) <= 60
    assert result.details["text"] == said


def test_a_graph_that_stopped_is_told_with_its_operator_its_reason_and_its_line():
    """DALI's report is unwrapped: its own file and condition say nothing to a learner."""
    result = read(a_record(status="graph_failed", text=STOPPED))
    assert result.parts.seen.startswith("`fn.crop`: Slice can't be placed out of bounds with current policy.")
    assert (result.parts.next.place.file, result.parts.next.place.line) == ("submission.py", 22)


def test_code_that_left_nothing_was_not_looked_at_by_its_own_fault():
    """No probe is sent there, which is no error of ours."""
    left = {"loaders": (), "pipelines": (), "dataset_dir": PathClaim(status="missing")}
    results = [read(discovery=a_discovery(ran="raised", needs_gpu=needs, **left)) for needs in ("", "a kernel")]
    assert [(one.outcome, one.code, one.score) for one in results] == [
        ("skipped", "run.not_reached", 0.0),
        ("skipped", "run.not_reached", None),
    ]


def test_a_pipeline_that_the_lab_names_is_named():
    """What to write is a line with that name."""
    result = no_such_graph("train_iter")
    assert (result.outcome, result.code) == ("unverified", "no_such_graph")
    assert "`train_iter`" in result.parts.outcome
    assert result.parts.next.code.startswith("train_iter = ")


def test_without_a_pipeline_that_is_the_answer():
    """A graph cannot be missing where none was built."""
    result = read(a_record(status="no_graph"), discovery=a_discovery(pipelines=()))
    assert (result.outcome, result.code) == ("failed", "no_pipeline")
