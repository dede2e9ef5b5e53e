"""The check `cuda_batch` on evidence of every kind."""

from functools import partial

import pytest

from checks.cuda_batch.check import cuda_batch
from grader_service.model.discovery import FirstBatch
from grader_service.model.evidence import CleanRoom, ServedBatch
from grader_service.model.verdict import Outcome, Tier
from tests.checks.judged import judged
from tests.factories import a_batch, a_clean_room, a_discovery, a_graph, a_pipeline, a_run, an_evidence

judge = partial(judged, cuda_batch)


def with_batch(**changes):
    """Evidence whose batch differs."""
    return an_evidence(clean_room=a_clean_room(batch=a_batch(**changes)))


def test_a_4d_cuda_batch_passes_on_tier_a():
    """32 images of 3 x 224 x 224 on CUDA, seen in our own process."""
    result = judge(an_evidence())
    assert (result.outcome, result.code, result.tier) == (Outcome.PASSED, "batch.ok", Tier.GRAPH)


@pytest.mark.parametrize(("size", "code"), [(15, "batch.too_small"), (16, "batch.ok"), (1024, "batch.ok")])
def test_sixteen_images_are_needed(size, code):
    """The batch that we drew decides, not a number in the learner's namespace."""
    assert judge(with_batch(shape=(size, 3, 224, 224))).code == code


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"shape": (32, 224, 224)}, "batch.not_4d"),
        ({"device": "cpu", "declared_device": "cpu"}, "batch.not_cuda"),
        ({"device": "cpu", "declared_device": "gpu"}, "batch.not_cuda"),  # the label of the graph does not count
        ({"finite": False}, "batch.not_finite"),
        ({"constant": True, "low": 0.0, "high": 0.0}, "batch.constant"),
    ],
)
def test_each_defect_has_its_code(changes, code):
    """Dimensions, device, NaN and constant output fail for their own reason."""
    result = judge(with_batch(**changes))
    assert (result.outcome, result.code, result.score) == (Outcome.FAILED, code, 0.0)


def test_channels_last_and_half_precision_are_fine():
    """Layout and dtype are the learner's choice."""
    assert judge(with_batch(shape=(64, 224, 224, 3), dtype="FLOAT16", layout="NHWC")).outcome is Outcome.PASSED


def test_a_rehearsal_goes_by_where_the_graph_places_the_batch():
    """On a CPU the label of the graph stands in for the device."""
    rehearsal = {"run": a_run(device="cpu")}
    placed = a_clean_room(batch=a_batch(device="cpu", declared_device="gpu"))
    assert judge(an_evidence(**rehearsal, clean_room=placed)).outcome is Outcome.PASSED
    on_cpu = a_clean_room(batch=a_batch(device="cpu", declared_device="cpu"), graph=a_graph(decoder_devices=("cpu",)))
    result = judge(an_evidence(**rehearsal, clean_room=on_cpu))
    assert result.code == "batch.not_cuda"
    assert 'device="mixed"' in result.parts.next.code


def test_the_learners_first_batch_is_a_claim():
    """A forged `first_batch` of any form changes nothing; a missing one is named."""
    forged = a_discovery(first_batch=FirstBatch(status="no_tensor", type="Liar"))
    assert judge(an_evidence(discovery=forged)).outcome is Outcome.PASSED
    missing = a_discovery(first_batch=FirstBatch(status="missing"))
    assert judge(an_evidence(discovery=missing)).code == "batch.first_batch_missing"


@pytest.mark.parametrize(
    ("problem", "outcome", "code"),
    [
        ("operator_not_allowed", Outcome.UNVERIFIED, "batch.not_carried"),
        ("encoded_images", Outcome.UNVERIFIED, "batch.not_carried"),
        ("needs_gpu", Outcome.UNVERIFIED, "batch.needs_gpu"),
        ("not_serializable", Outcome.UNVERIFIED, "batch.not_carried"),
        ("dynamic_mode", Outcome.UNVERIFIED, "batch.not_carried"),
        ("graph_failed", Outcome.UNVERIFIED, "batch.not_carried"),
        ("crashed", Outcome.UNVERIFIED, "batch.not_carried"),
        ("ragged_batch", Outcome.FAILED, "batch.ragged"),
        ("no_image_output", Outcome.FAILED, "batch.no_images"),
    ],
)
def test_a_graph_that_was_not_carried_is_unverified_never_passed(problem, outcome, code):
    """What could not be re-measured has no score; what ran and was wrong fails."""
    room = CleanRoom(pipeline="dali_iter", problem=problem, problem_text="because")
    result = judge(an_evidence(clean_room=room))
    assert (result.outcome, result.code) == (outcome, code)
    assert result.score == (0.0 if outcome is Outcome.FAILED else None)


def test_no_pipeline_at_all_fails():
    """Without DALI there is nothing to carry."""
    assert judge(an_evidence(discovery=a_discovery(pipelines=()), clean_room=None)).code == "batch.no_pipeline"


def served(**changes):
    """Evidence of a graph that could not be run again, and of what the learner's own code delivered."""
    values = {"shape": (32, 3, 224, 224), "dtype": "float32", "device": "cuda", "distinct": 32}
    room = CleanRoom(
        pipeline="dali_iter", problem="not_serializable", problem_text="it", served=ServedBatch(**values | changes)
    )
    return an_evidence(clean_room=room)


@pytest.mark.parametrize(
    ("changes", "outcome", "code", "words"),
    [
        ({}, Outcome.PASSED, "batch.ok", "as your code says"),
        ({"shape": (32, 224, 224)}, Outcome.FAILED, "batch.not_4d", "it has 3 dimensions, not 4"),
        ({"shape": (1, 3, 224, 224)}, Outcome.FAILED, "batch.too_small", "it holds 1 image."),
        ({"device": "cpu"}, Outcome.FAILED, "batch.not_cuda", "it lies on the CPU"),
        ({"distinct": 3}, Outcome.UNVERIFIED, "batch.not_proved", "nothing is counted"),
    ],
)
def test_a_batch_of_the_learners_own_code(changes, outcome, code, words):
    """Shape and device are taken from the code, and new images must have come."""
    result = judge(served(**changes))
    assert (result.outcome, result.code) == (outcome, code)
    assert words in result.feedback
    assert (result.parts.next is None) == (outcome is Outcome.PASSED)


@pytest.mark.parametrize(
    ("changes", "codes"),
    [
        ({"low": -2.0, "high": 1111.3}, ["advice.mean_std_scale"]),
        ({"low": 0.0, "high": 255.0}, ["advice.not_normalised"]),
        ({"low": 0.0, "high": 1.0}, []),
        ({"low": -127.5, "high": 127.5}, []),
        ({"dtype": "UINT8", "low": 0.0, "high": 255.0}, []),
        ({"dtype": "INT32", "low": 0.0, "high": 1000.0}, []),
    ],
)
def test_values_of_another_scale_are_advice(changes, codes):
    """Mean and std in the wrong scale, or left out, are told beside a pass."""
    named = a_discovery(pipelines=(a_pipeline(reader_name="Reader"),))
    result = judge(with_batch(**changes).model_copy(update={"discovery": named}))
    assert result.outcome is Outcome.PASSED
    assert [one.code for one in result.parts.advice] == codes


@pytest.mark.parametrize("evidence", [an_evidence(), served()], ids=["graph", "own code"])
def test_silent_mistakes_of_the_batch_are_advice(evidence):
    """An iterator without a reader's name is told, and changes nothing of the outcome."""
    named, unnamed = (a_discovery(pipelines=(a_pipeline(reader_name=name),)) for name in ("Reader", ""))
    plain, told = (judge(evidence.model_copy(update={"discovery": found})) for found in (named, unnamed))
    assert (told.outcome, told.code, told.score) == (plain.outcome, plain.code, plain.score)
    assert plain.parts.advice == ()
    assert [one.code for one in told.parts.advice] == told.details["advice"] == ["advice.iterator_without_end"]


@pytest.mark.parametrize("lacking", ["batch", "graph"])
def test_a_room_without_a_batch_accuses_nobody(lacking):
    """What cannot be judged has no score, also where the clean room does not say what was wrong."""
    observation = cuda_batch.observe(an_evidence())
    room = observation.room.model_copy(update={lacking: None})
    result = cuda_batch.decide(observation.model_copy(update={"room": room}), cuda_batch.params_model())
    assert (result.outcome, result.code, result.score) == (Outcome.UNVERIFIED, "batch.not_carried", None)
    assert judge(an_evidence(clean_room=room)) == result
