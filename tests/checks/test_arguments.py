"""What stands in place of an argument that is not there, and what results are worth by what came."""

from typing import Annotated

import pytest
from pydantic import Field

from checks.api import (
    CleanRoom,
    Dataset,
    Graph,
    GraphProbe,
    Loaders,
    Measurement,
    Observation,
    Result,
    check,
    failed,
    passed,
    probe,
)
from checks.function import FunctionCheck
from grader_service.model.discovery import PathClaim
from grader_service.model.evidence import ServedBatch
from grader_service.model.verdict import NOT_REACHED, Outcome, Tier
from tests.checks.judged import judged
from tests.checks.test_probing import a_record
from tests.factories import a_clean_room, a_discovery, a_measurement, an_evidence


class Seen(Observation):
    count: Annotated[int, Field(ge=0, le=100)]


@probe(version="1.0.0")
def looks(context: GraphProbe) -> Seen:
    return Seen(count=len(context.graphs))


@check(version="1.0.0")
def images(dataset: Dataset) -> Result:
    """There are images."""
    return passed(f"{dataset.distinct}")


@check(version="1.0.0")
def rates(measurement: Measurement) -> Result:
    """There are rates."""
    return passed(f"{len(measurement.arms)}")


@check(version="1.0.0")
def rooms(room: CleanRoom) -> Result:
    """There is a room."""
    return passed(room.pipeline)


@check(version="1.0.0")
def maybe_graph(graph: Graph | None) -> Result:
    """There may be a graph."""
    return passed(str(graph is None))


@check(version="1.0.0")
def maybe_seen(seen: Seen | None) -> Result:
    """A learner fails without what the probe saw."""
    return failed("none", "Nothing was seen.") if seen is None else passed("Seen.")


@check(version="1.0.0")
def maybe_images(dataset: Dataset | None) -> Result:
    """There may be images."""
    return passed(str(dataset is None))


@check(version="1.0.0")
def maybe_rates(measurement: Measurement | None) -> Result:
    """There may be rates."""
    return passed(str(measurement is None))


NO_ROOM = a_clean_room(graph=None, batch=None, problem="not_serializable", problem_text="It calls Python.")
STOPPED = {"ran": "raised", "needs_gpu": "Found no NVIDIA driver"}
WITHOUT = {
    "nothing was built": (images, {"discovery": a_discovery(dataset_dir=PathClaim(status="missing"))}, "failed"),
    "no path": (
        images,
        {"discovery": a_discovery(dataset_dir=PathClaim(status="unreadable", shown="3"))},
        "unverified",
    ),
    "no pipeline": (rates, {"discovery": a_discovery(pipelines=())}, "failed"),
    "no graph": (rates, {"clean_room": NO_ROOM}, "unverified"),
    "our fault": (rates, {}, "error"),
}
CODES = {
    "nothing was built": "images.dataset_dir_missing",
    "no path": "images.not_scanned",
    "no pipeline": "rates.no_pipeline",
    "no graph": "rates.not_carried",
    "our fault": "rates.not_measured",
}


@pytest.mark.parametrize("case", WITHOUT)
def test_code_that_ran_to_its_end_is_told_what_lacks(case):
    """`Not reached` and 0 points are for code that stopped; the codes are declared."""
    one, changes, outcome = WITHOUT[case]
    result = judged(one, an_evidence(**{"scan": None, "measurement": None, **changes}))
    assert (result.outcome, result.code) == (outcome, CODES[case])
    assert result.score == (0.0 if outcome == "failed" else None)
    assert result.parts.next is not None
    assert result.code in one.codes


@pytest.mark.parametrize("one", [images, rates, rooms], ids=lambda one: one.id)
@pytest.mark.parametrize("pipelines", [(), a_discovery().pipelines], ids=["none", "one"])
@pytest.mark.parametrize(("changes", "score"), [(STOPPED, None), ({"ran": "raised"}, 0.0)], ids=["no GPU", "raised"])
def test_code_that_stopped_earns_nothing_unless_only_a_gpu_was_missing(one, pipelines, changes, score):
    """A rehearsal leaves it open."""
    discovery = a_discovery(pipelines=pipelines, **changes)
    result = judged(one, an_evidence(discovery=discovery, scan=None, clean_room=None, measurement=None))
    assert (result.outcome, result.code, result.score) == ("skipped", NOT_REACHED, score)


@pytest.mark.parametrize(
    "records",
    [[a_record(status="raised")], [a_record(status="unreadable")], [a_record(observations={"count": "many"})], []],
    ids=["raised", "unreadable", "another form", "not observed"],
)
def test_an_error_of_ours_is_no_failure_of_the_learner(records):
    """`| None` stands for what the learner's run lacks."""
    result = judged(maybe_seen, an_evidence(probes=tuple(records)))
    assert (result.outcome, result.score) == (Outcome.ERROR, None)
    assert result.code in maybe_seen.codes


def test_what_the_run_lacks_is_none():
    """The check is asked, and declares no code that only stood in its place."""
    assert judged(maybe_seen, an_evidence(probes=(a_record(status="graph_failed"),))).code == "maybe_seen.none"
    assert set(maybe_seen.codes) == {f"maybe_seen.{last}" for last in ("none", "ok", "probe_failed", "not_observed")}
    for one in (maybe_images, maybe_rates):
        assert judged(one, an_evidence(scan=None, measurement=None)).parts.outcome == "True"
        assert set(one.codes) == {f"{one.id}.ok"}


def a_served(tier):
    """What the learner's own code delivered."""
    return ServedBatch(shape=(32, 3, 224, 224), dtype="float32", device="cuda", tier=tier, distinct=32)


@pytest.mark.parametrize(
    ("one", "changes", "tier"),
    [
        (maybe_graph, {}, Tier.GRAPH),
        (maybe_graph, {"clean_room": NO_ROOM}, Tier.CLAIMS),
        (maybe_seen, {"probes": (a_record(status="no_graph"),)}, Tier.CLAIMS),
        (maybe_rates, {"measurement": None}, Tier.CLAIMS),
        (rooms, {}, Tier.GRAPH),
        (rooms, {"clean_room": NO_ROOM}, Tier.CLAIMS),
        (rooms, {"clean_room": NO_ROOM.model_copy(update={"served": a_served("B")})}, Tier.PROOF),
        (rooms, {"clean_room": NO_ROOM.model_copy(update={"served": a_served("C")})}, Tier.COLD_PROOF),
        (rates, {}, Tier.GRAPH),
        (rates, {"measurement": a_measurement(tier="C")}, Tier.COLD_PROOF),
        (images, {}, None),
    ],
)
def test_a_result_is_worth_what_came(one, changes, tier):
    """Not what its argument may be at best."""
    assert judged(one, an_evidence(**changes)).tier is tier


@pytest.mark.parametrize(("tier", "worth"), [(Tier.GRAPH, Tier.GRAPH), (None, None)])
def test_a_tier_that_a_check_names_stands(tier, worth):
    """Whatever came."""

    @check(version="1.0.0", tier=tier)
    def named(loaders: Loaders, graph: Graph | None) -> Result:
        """Says what it is worth."""
        return passed(f"{len(loaders)} {graph is None}")

    assert isinstance(named, FunctionCheck)
    assert judged(named, an_evidence(clean_room=NO_ROOM)).tier is worth
