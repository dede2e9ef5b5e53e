"""What the throughput check makes of measurements by content: every problem has a code, and no doubt fails anybody."""

import pytest

from checks.cuda_batch.check import CHECK as BATCH
from checks.throughput_ratio.check import CHECK, Params
from grader_service.model.evidence import CleanRoom, FirstBatch, ServedBatch
from grader_service.model.measurement import ContentKind, ContentProof, TierRefused
from tests.factories import a_measurement, an_evidence

REFUSED = TierRefused(tier="A", problem="not_serializable", text="It calls Python.")
ROOM = CleanRoom(pipeline="dali_iter", problem="not_serializable", problem_text="It calls Python.")


def a_proof(**changes):
    values = {"delivered": 400, "identified": 400, "distinct": 400, "audited": 64, "kind": ContentKind.FULL}
    return ContentProof(**(values | changes))


def judged(measurement):
    """The check's result on a submission whose graph was refused."""
    seen = CHECK.observe(an_evidence(clean_room=ROOM, measurement=measurement))
    return CHECK.judge(seen, Params()) if not hasattr(seen, "outcome") else seen


@pytest.mark.parametrize("tier", ["B", "C"])
def test_proved_images_pass_with_their_tier(tier):
    """A ratio of two, and nothing wrong with the pixels: passed, and the tier is said."""
    result = judged(a_measurement(tier=tier, refused=(REFUSED,), content=a_proof()))
    assert (result.outcome, result.code, result.tier) == ("passed", "ratio.ok", tier)
    assert f"Tier {tier}" in result.feedback


@pytest.mark.parametrize(
    ("problem", "outcome", "code"),
    [
        ("replayed", "failed", "ratio.replayed"),
        ("repeated_images", "failed", "ratio.replayed"),
        ("partial_decode", "failed", "ratio.partial_decode"),
        ("rendered", "failed", "ratio.rendered"),
        ("stale", "unverified", "ratio.stale"),
        ("not_identified", "unverified", "ratio.wrong_content"),
        ("colours_changed", "unverified", "ratio.wrong_content"),
        ("no_colour", "unverified", "ratio.wrong_content"),
        ("no_images", "unverified", "ratio.wrong_content"),
        ("not_comparable", "unverified", "ratio.wrong_content"),
        ("small_area", "unverified", "ratio.small_area"),
    ],
)
def test_a_content_problem_never_passes(problem, outcome, code):
    """However high the ratio is; what is only doubtful is unverified, and both say what to do."""
    result = judged(a_measurement(tier="B", refused=(REFUSED,), content=a_proof(problem=problem)))
    assert (result.outcome, result.code) == (outcome, code)
    assert "build_dali_iterator" in result.feedback
    assert result.details["content"]["problem"] == problem


@pytest.mark.parametrize(
    ("problem", "outcome", "code"),
    [
        ("repeated_images", "failed", "ratio.replayed"),
        ("partial_decode", "failed", "ratio.partial_decode"),
        ("rendered", "failed", "ratio.rendered"),
        ("small_area", "failed", "ratio.small_area"),
        ("colours_changed", "unverified", "ratio.wrong_content"),
        ("not_identified", "unverified", "ratio.wrong_content"),
        ("no_images", "unverified", "ratio.wrong_content"),
    ],
)
def test_what_a_graph_delivered_is_looked_at_too(problem, outcome, code):
    """Tier A: a graph that delivers less than it reads does not pass, however fast it is."""
    evidence = an_evidence(measurement=a_measurement(content=a_proof(problem=problem)))
    result = CHECK.judge(CHECK.observe(evidence), Params())
    assert (result.outcome, result.code, result.tier) == (outcome, code, "A")
    assert "build_dali_iterator" not in result.feedback


def test_images_that_were_not_counted_fail_nobody():
    """When the ratio is too low only because queued images count nothing, the outcome is inconclusive."""
    low = (1.0, 1.01, 0.99, 1.0)
    queued = a_proof(distinct=300, stale=100)
    result = judged(a_measurement(low, tier="B", refused=(REFUSED,), content=queued))
    assert (result.outcome, result.code) == ("inconclusive", "ratio.inconclusive")
    assert "initial_fill" in result.feedback
    result = judged(a_measurement(low, tier="B", refused=(REFUSED,), content=a_proof()))
    assert (result.outcome, result.code) == ("failed", "ratio.too_low")


def test_building_anew_fails_nobody():
    """In tier C every window pays for building the iterator: too low a ratio is inconclusive, with what to change."""
    low = (0.5, 0.51, 0.49, 0.5)
    result = judged(a_measurement(low, tier="C", refused=(REFUSED,), content=a_proof()))
    assert (result.outcome, result.code, result.tier) == ("inconclusive", "ratio.inconclusive", "C")
    assert "open each file when its image is due" in result.feedback


def test_an_interval_above_the_threshold_is_not_said_to_straddle_it():
    """What points above and cannot carry a grade is told so, and never passes."""
    result = judged(a_measurement((3.0, 1.3), tier="B", refused=(REFUSED,), content=a_proof()))
    assert (result.outcome, result.code) == ("inconclusive", "ratio.inconclusive")
    assert "neither shows nor rules out" in result.feedback
    result = judged(a_measurement((2.3, 2.1), tier="B", refused=(REFUSED,), content=a_proof()))
    assert (result.outcome, result.code) == ("inconclusive", "ratio.inconclusive")
    assert "points above 1.1" in result.feedback
    assert "your DALI code" in result.feedback


def test_what_was_tried_is_said():
    """Without blocks the result is that of the graph, with what was tried beside it."""
    tried = (REFUSED, TierRefused(tier="B", problem="factory_failed", text="`build_dali_iterator` raised KeyError."))
    nothing = a_measurement(tier="B", refused=tried).model_copy(update={"blocks": (), "decision": None})
    result = judged(nothing)
    assert (result.outcome, result.code, result.tier) == ("unverified", "ratio.not_carried", "D")
    assert "raised KeyError" in result.feedback
    assert result.details["tried"][1]["tier"] == "B"


def served(**changes):
    """The result of `cuda_batch` on a batch that learner code served."""
    values = {"shape": (32, 3, 224, 224), "dtype": "float32", "device": "cuda", "distinct": 32}
    room = ROOM.model_copy(update={"served": ServedBatch(**(values | changes))})
    seen = BATCH.observe(an_evidence(clean_room=room, measurement=None))
    return BATCH.judge(seen, BATCH.params_model())


@pytest.mark.parametrize(
    ("changes", "outcome", "code", "tier"),
    [
        ({}, "passed", "batch.ok", "B"),
        ({"shape": (8, 3, 224, 224)}, "failed", "batch.too_small", "B"),
        ({"device": "cpu"}, "failed", "batch.not_cuda", "B"),
        ({"distinct": 3}, "unverified", "batch.not_proved", "D"),
    ],
)
def test_a_served_batch_is_judged_softly(changes, outcome, code, tier):
    """Shape and device are claims, new images are facts, and a pass says tier B."""
    result = served(**changes)
    assert (result.outcome, result.code, result.tier) == (outcome, code, tier)


def test_a_first_batch_is_still_wanted():
    """A submission without `first_batch` fails its step, whatever its factory delivers."""
    room = ROOM.model_copy(update={"served": ServedBatch(shape=(32, 3, 8, 8), dtype="u", device="cuda", distinct=32)})
    evidence = an_evidence(clean_room=room, measurement=None)
    discovery = evidence.discovery.model_copy(update={"first_batch": FirstBatch(status="missing")})
    result = BATCH.observe(evidence.model_copy(update={"discovery": discovery}))
    assert result.code == "batch.first_batch_missing"
