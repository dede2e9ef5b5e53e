"""What the throughput check makes of what was delivered: every problem has a code, and no doubt fails anybody."""

from functools import partial

import pytest

from checks.cuda_batch.check import cuda_batch
from checks.throughput_ratio import by_content
from checks.throughput_ratio.check import throughput_ratio
from grader_service.measure.acceptance import Observed, judge
from grader_service.measure.work_parity import standard_work
from grader_service.model.discovery import FirstBatch
from grader_service.model.evidence import CleanRoom, ServedBatch
from grader_service.model.measurement import (
    Arm,
    ContentKind,
    ContentProof,
    Corroboration,
    GpuUse,
    GraphProof,
    TierRefused,
    Window,
)
from tests.checks.judged import judged
from tests.factories import a_block, a_measurement, an_evidence

REFUSED = TierRefused(tier="A", problem="not_serializable", text="It calls Python.")
ROOM = CleanRoom(pipeline="dali_iter", problem="not_serializable", problem_text="It calls Python.")

a_proof = partial(ContentProof, delivered=400, identified=400, distinct=400, audited=64, kind=ContentKind.FULL)


def without_graph(measurement):
    """The check's result on a submission whose graph was refused."""
    return judged(throughput_ratio, an_evidence(clean_room=ROOM, measurement=measurement))


def watched(tier="B", others=0.0, samples=14, **dali):
    """A ratio of two by proved images, and what NVML saw of the GPU in the windows of the arms."""
    uses = (
        GpuUse(arm=Arm.DALI, samples=samples, **dali),
        GpuUse(arm=Arm.DECLARED, samples=20, sm_percent=3.0, jpg_percent=None if "jpg_percent" not in dali else others),
    )
    return a_measurement(tier=tier, refused=(REFUSED,), content=a_proof(), corroboration=Corroboration(uses=uses))


@pytest.mark.parametrize("tier", ["B", "C"])
@pytest.mark.parametrize("use", [{"sm_percent": 2.0, "jpg_percent": 3.0}, {"sm_percent": 30.0}])
def test_proved_images_pass_with_their_tier(tier, use):
    """A ratio of two, nothing wrong with the pixels, and the GPU decoded meanwhile: passed, and the tier is said."""
    result = without_graph(watched(tier, **use))
    assert (result.outcome, result.code, result.tier) == ("passed", "ratio.ok", tier)
    [how] = [one.text for one in result.parts.advice if one.code == "advice.own_code_timed"]
    assert ("built anew" in how) == (tier == "C")


@pytest.mark.parametrize(
    ("measurement", "said"),
    [
        (a_measurement(tier="B", content=a_proof(), device="cpu"), "A rehearsal has no GPU"),
        (a_measurement(tier="B", content=a_proof()), "which is not your fault"),
        (watched(samples=0, sm_percent=None, jpg_percent=None), "which is not your fault"),
        (watched(sm_percent=40.0, jpg_percent=0.0), "the GPU decoded no images (JPEG engine 0 %, SM 40 %)"),
        (watched(sm_percent=2.0, jpg_percent=30.0, others=20.0), "the GPU decoded no images"),
        (watched(sm_percent=4.0), "the GPU decoded no images (SM 4 %)"),
    ],
    ids=["rehearsal", "not_watched", "no_sample", "busy_otherwise", "busy_all_the_time", "no_engine"],
)
def test_a_fast_rate_is_no_pass_where_the_gpu_was_not_seen_to_decode(measurement, said):
    """A DataLoader handed out as a DALI iterator delivers the same images: unverified, and nobody is accused."""
    result = without_graph(measurement)
    assert (result.outcome, result.code, result.tier) == ("unverified", "ratio.not_seen", "B")
    assert said in result.feedback
    assert "2.00 times" in result.feedback


CONTENT = [
    ("replayed", "failed", "ratio.replayed"),
    ("partial_decode", "failed", "ratio.partial_decode"),
    ("rendered", "failed", "ratio.rendered"),
    ("stale", "unverified", "ratio.stale"),
    ("not_identified", "unverified", "ratio.wrong_content"),
    ("colours_changed", "unverified", "ratio.wrong_content"),
    ("no_colour", "unverified", "ratio.wrong_content"),
    ("no_images", "unverified", "ratio.wrong_content"),
    ("not_comparable", "unverified", "ratio.wrong_content"),
    ("small_area", "unverified", "ratio.small_area"),
]
"""Problems of delivered images, with what follows where the learner's own code delivered them."""


@pytest.mark.parametrize(("problem", "outcome", "code"), CONTENT)
def test_a_content_problem_never_passes(problem, outcome, code):
    """However high the ratio is; what is only doubtful is unverified, and both say what to do."""
    result = without_graph(a_measurement(tier="B", refused=(REFUSED,), content=a_proof(problem=problem)))
    assert (result.outcome, result.code) == (outcome, code)
    assert "build_dali_iterator" in result.feedback
    assert result.details["content"]["problem"] == problem


def tried_out(measurement, problem=None, note=""):
    """The check's result on a graph of which this was seen."""
    seen = GraphProof(samples=48, alike=48, own=48, standard_area=0.43, standard_low=0.89, problem=problem, note=note)
    return judged(throughput_ratio, an_evidence(measurement=measurement.model_copy(update={"graph": seen})))


@pytest.mark.parametrize(
    ("problem", "outcome", "code"),
    [
        ("independent", "failed", "ratio.independent"),
        ("unlike", "failed", "ratio.unlike"),
        ("unclear", "inconclusive", "ratio.unclear"),
        ("lesser", "inconclusive", "ratio.small_area"),
        ("not_examined", "inconclusive", "ratio.not_examined"),
    ],
)
def test_a_graph_that_was_not_timed_says_why(problem, outcome, code):
    """Only what leaves no doubt fails; what was seen is said, and what to change."""
    not_timed = a_measurement(blocks=(), decision=None, arms=(), images=0)
    result = tried_out(not_timed, problem=problem, note="Of 48 images 3 were seen.")
    assert (result.outcome, result.code, result.tier) == (outcome, code, "A")
    assert "Of 48 images 3 were seen." in result.feedback
    assert result.details["graph"]["problem"] == problem
    assert "build_dali_iterator" not in result.feedback


def test_every_problem_of_a_graph_has_a_result():
    """`acceptance` names no problem that the check cannot word, and the check words none that is not named."""
    area, low = standard_work([(500, 375)])
    usual = {"samples": 100, "doubt": "", "alike": 100, "own": 100, "seconds": 0.0, "windows": 1000}
    seen = (
        {"doubt": "x"}, {"stayed": 100, "own": 0}, {"alike": 0}, {"own": 70},
        {"area": 0.5 * area}, {"area": area, "low": 0.5 * low},
    )  # fmt: skip
    named = {judge(Observed(**(usual | changes)), [(500, 375)]).problem for changes in seen}
    assert named == {*by_content._NOT_FROM_FILES, *by_content._IN_DOUBT}


def test_a_graph_without_a_problem_is_judged_by_its_ratio():
    """What it was seen to do is in the record, and the outcome is that of the ratio."""
    assert tried_out(a_measurement()).code == "ratio.ok"
    assert tried_out(a_measurement((0.5, 0.51, 0.49, 0.5))).code == "ratio.too_low"


def test_images_that_were_not_counted_fail_nobody():
    """When the ratio is too low only because queued images count nothing, the outcome is inconclusive."""
    low = (1.0, 1.01, 0.99, 1.0)
    queued = a_proof(distinct=300, stale=100)
    result = without_graph(a_measurement(low, tier="B", refused=(REFUSED,), content=queued))
    assert (result.outcome, result.code) == ("inconclusive", "ratio.inconclusive")
    assert "initial_fill" in result.feedback
    result = without_graph(a_measurement(low, tier="B", refused=(REFUSED,), content=a_proof()))
    assert (result.outcome, result.code) == ("failed", "ratio.too_low")


@pytest.mark.parametrize(
    ("dali", "reference", "outcome"),
    [(540.0, 500.0, "failed"), (560.0, 680.0, "inconclusive"), (560.0, 1200.0, "failed")],
    ids=["learners_own", "faster", "much_faster"],
)
def test_what_a_reference_may_leave_out_fails_nobody(dali, reference, outcome):
    """Too low only against more than 0.7 of a reference that decodes and resizes: inconclusive, and never a pass."""
    rates = {Arm.DALI: dali, Arm.LEARNER: 500.0, Arm.FAIR: reference}
    windows = tuple(Window(arm=arm, images=int(100 * rate), seconds=100.0) for arm, rate in rates.items())
    ratio = dali / max(500.0, 0.91 * reference)
    # The fair reference rests in every second block.
    blocks = tuple(a_block(i, ratio).model_copy(update={"windows": windows[: 3 - i % 2]}) for i in range(4))
    result = without_graph(a_measurement((ratio,) * 4, tier="B", refused=(REFUSED,), content=a_proof(), blocks=blocks))
    assert result.outcome == outcome
    assert ("it only decodes and resizes" in result.feedback) == (outcome == "inconclusive")


def test_building_anew_fails_nobody():
    """In tier C every window pays for building the iterator: too low a ratio is inconclusive, with what to change."""
    low = (0.5, 0.51, 0.49, 0.5)
    result = without_graph(a_measurement(low, tier="C", refused=(REFUSED,), content=a_proof()))
    assert (result.outcome, result.code, result.tier) == ("inconclusive", "ratio.inconclusive", "C")
    assert "open each file when its image is due" in result.feedback


def test_an_interval_above_the_threshold_is_not_said_to_straddle_it():
    """What points above and cannot carry a grade is told so, and never passes."""
    result = without_graph(a_measurement((3.0, 1.3), tier="B", refused=(REFUSED,), content=a_proof()))
    assert (result.outcome, result.code) == ("inconclusive", "ratio.inconclusive")
    assert "on both sides of the 1.1 that is needed" in result.feedback
    result = without_graph(a_measurement((2.3, 2.1), tier="B", refused=(REFUSED,), content=a_proof()))
    assert (result.outcome, result.code) == ("inconclusive", "ratio.inconclusive")
    assert "the blocks lie above it, but too unsure" in result.feedback


def test_what_was_tried_is_said():
    """Without blocks the result is that of the graph, with what was tried beside it."""
    tried = (REFUSED, TierRefused(tier="B", problem="factory_failed", text="`build_dali_iterator` raised KeyError."))
    result = without_graph(a_measurement(tier="B", refused=tried, blocks=(), decision=None))
    assert (result.outcome, result.code, result.tier) == ("unverified", "ratio.not_carried", "D")
    assert "raised KeyError" in result.feedback
    assert result.details["tried"][1]["tier"] == "B"


def test_a_factory_that_does_not_work_is_told_first():
    """By the check of the batch and that of the ratio alike; the fault is the learner's to see in the first line."""
    problem = "`build_dali_iterator` did not work on other images: TypeError: build_dali_iterator() takes 1 argument"
    room = ROOM.model_copy(update={"factory_problem": problem})
    evidence = an_evidence(clean_room=room, measurement=a_measurement(tier="B", blocks=(), decision=None))
    for check in (cuda_batch, throughput_ratio):
        told = judged(check, evidence).parts
        assert "neither your DALI pipeline" in told.outcome
        assert (told.seen, told.next.code) == (problem, "def build_dali_iterator(dataset_dir, batch_size):")


def test_another_way_is_shown_to_who_came_to_the_end():
    """Who has to mend an exception first reads of nothing else."""
    tried = (REFUSED, TierRefused(tier="B", problem="no_factory", text="No function."))
    whole = an_evidence(clean_room=ROOM, measurement=a_measurement(tier="B", refused=tried, blocks=(), decision=None))
    cut = whole.model_copy(update={"discovery": whole.discovery.model_copy(update={"ran": "raised"})})
    assert "Another way is" in judged(throughput_ratio, whole).feedback
    assert "Another way is" not in judged(throughput_ratio, cut).feedback


def served(**changes):
    """The result of `cuda_batch` on a batch that learner code served."""
    values = {"shape": (32, 3, 224, 224), "dtype": "float32", "device": "cuda", "distinct": 32}
    room = ROOM.model_copy(update={"served": ServedBatch(**(values | changes))})
    return judged(cuda_batch, an_evidence(clean_room=room, measurement=None))


@pytest.mark.parametrize(
    ("changes", "outcome", "code", "tier"),
    [
        ({}, "passed", "batch.ok", "B"),
        ({"shape": (8, 3, 224, 224)}, "failed", "batch.too_small", "B"),
        ({"device": "cpu"}, "failed", "batch.not_cuda", "B"),
        ({"tier": "C"}, "passed", "batch.ok", "C"),
        ({"distinct": 3}, "unverified", "batch.not_proved", "D"),
    ],
)
def test_a_served_batch_is_judged_softly(changes, outcome, code, tier):
    """Shape and device are claims, new images are facts, and a pass says its tier."""
    result = served(**changes)
    assert (result.outcome, result.code, result.tier) == (outcome, code, tier)


def test_a_first_batch_is_still_wanted():
    """A submission without `first_batch` fails its step, whatever its factory delivers."""
    room = ROOM.model_copy(update={"served": ServedBatch(shape=(32, 3, 8, 8), dtype="u", device="cuda", distinct=32)})
    evidence = an_evidence(clean_room=room, measurement=None)
    discovery = evidence.discovery.model_copy(update={"first_batch": FirstBatch(status="missing")})
    result = cuda_batch.answer(evidence.model_copy(update={"discovery": discovery}), cuda_batch.params_model()).result
    assert result.code == "batch.first_batch_missing"
