"""The builder of evidence: everything that it gives is valid, and a change never reaches another builder."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from checks.authoring.cases import paths, with_value, without
from checks.authoring.evidence import EvidenceBuilder
from checks.registry import Registry
from grader_service.model.evidence import Evidence, PodRole, ProbeSite
from grader_service.model.verdict import Outcome
from tests.checks.judged import JSON

WHOLE = EvidenceBuilder().as_json()
PLACES = [".".join(map(str, path)) for path in paths(WHOLE)]


def test_it_is_a_run_that_went_well():
    """The four checks of the first lab pass on it, in an official run and in a rehearsal."""
    registry = Registry()
    for evidence in (EvidenceBuilder().build(), EvidenceBuilder().rehearsal().build()):
        for check_id in ("jpeg_dataset", "cuda_batch", "throughput_ratio", "reflections"):
            check = registry.load(check_id).check
            observed = check.observe(evidence)
            assert check.judge(observed, check.params_model()).outcome is Outcome.PASSED, check_id


@given(place=st.sampled_from(PLACES), value=JSON)
def test_a_replaced_part_is_there_or_refused(place, value):
    """Any JSON at any place is refused by the model or round-trips, and the first builder is as before."""
    builder = EvidenceBuilder()
    changed = builder.part(place, value)
    assert builder.as_json() == WHOLE
    try:
        evidence = changed.build()
    except ValidationError:
        return
    assert Evidence.model_validate_json(evidence.model_dump_json()) == evidence


@given(place=st.sampled_from(PLACES))
def test_what_is_taken_away_is_gone(place):
    """`without` takes exactly one place away."""
    left = EvidenceBuilder().without(place).as_json()
    assert left != WHOLE
    assert EvidenceBuilder().as_json() == WHOLE


@given(path=st.lists(st.sampled_from(["discovery", "loaders", "0", "9", "name", "x", "run"]), min_size=2, max_size=4))
def test_a_place_that_is_not_there_is_named(path):
    """The message says which part of the path is not there, and what is."""
    place = ".".join(path)
    wanted = EvidenceBuilder()
    held = wanted.as_json()
    for name in path[:-1]:
        held = held.get(name) if isinstance(held, dict) else held[0] if name == "0" and isinstance(held, list) else None
    if isinstance(held, dict) or (isinstance(held, list) and path[-1] == "0"):
        assert wanted.part(place, 1).as_json() != wanted.as_json()
    else:
        with pytest.raises(KeyError, match=place.replace(".", r"\.")):
            wanted.part(place, 1)


def test_probes_are_put_in_once():
    """A second call for a probe replaces the first; site, status and text are those that were given."""
    builder = EvidenceBuilder().probe("a", {"x": 1}).probe("b", status="timed_out", site="learner", text="too slow")
    evidence = builder.probe("a", {"x": (1, 2)}).build()
    assert [record.id for record in evidence.probes] == ["b", "a"]
    assert evidence.probe("a").observations == {"x": [1, 2]}
    other = evidence.probe("b")
    assert (other.site, other.status, other.text, other.observations) == (
        ProbeSite.LEARNER, "timed_out", "too slow", None,
    )  # fmt: skip


@pytest.mark.parametrize("ending", ["exited", "timed_out", "out_of_memory", "protocol_violation"])
def test_a_pod_that_ended_left_nothing(ending):
    """Only what the host saw is there, in a rehearsal as well."""
    for builder in (EvidenceBuilder().ended(ending), EvidenceBuilder().ended(ending).rehearsal()):
        evidence = builder.build()
        assert evidence.run.ending_of(PodRole.LEARNER).ending == ending
        assert (evidence.discovery, evidence.scan, evidence.clean_room, evidence.measurement) == (None,) * 4


def test_models_are_taken_as_parts():
    """A part may be given as a model."""
    evidence = EvidenceBuilder().build()
    scan = evidence.scan.model_copy(update={"distinct": 7})
    assert EvidenceBuilder().part("scan", scan).build().scan == scan


@given(whole=st.dictionaries(st.text(max_size=3), JSON, min_size=1, max_size=3), data=st.data())
def test_changes_in_json_touch_one_place(whole, data):
    """Setting a place back gives the same value again, and the original is never changed."""
    before = json.dumps(whole)
    path = data.draw(st.sampled_from(list(paths(whole))))
    held = whole
    for name in path:
        held = held[name]
    assert with_value(with_value(whole, path, "changed"), path, held) == whole
    assert without(whole, path) != whole
    assert json.dumps(whole) == before
