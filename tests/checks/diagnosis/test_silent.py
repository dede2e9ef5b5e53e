"""Mistakes that raise nothing: each is seen where its fact is, and not without it."""

from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checks.diagnosis import silent_mistakes
from checks.diagnosis.rows import silent_rows
from checks.diagnosis.silent import endless_iterator
from checks.observations.context import context_of
from checks.throughput_ratio.causes import Cause, likely_causes
from grader_service.model.discovery import FirstBatch
from grader_service.model.evidence import ImageSize
from grader_service.model.feedback import MAX_SENTENCE
from tests.checks.test_throughput_causes import claims as claims_of
from tests.factories import (
    a_batch,
    a_clean_room,
    a_discovery,
    a_loader,
    a_measurement,
    a_pipeline,
    a_run,
    a_scan,
    an_evidence,
)

PHOTO = ImageSize(width=500, height=375, size_bytes=60_000)
ICON = ImageSize(width=48, height=32, size_bytes=900)

loader = partial(a_loader, dataset_length=640)
first = partial(FirstBatch, status="present", shape=(32, 3, 224, 224), device="cuda:0")
discovered = partial(a_discovery, loaders=(loader(),), pipelines=(a_pipeline(reader_name="Reader"),))


def evidence(*, scan=None, measurement=None, room=None, run=None, **discovery):
    """A run about which there is nothing to say, but for the changes."""
    return an_evidence(
        discovery=discovered(**discovery),
        scan=a_scan(**({"distinct": 640} | (scan or {}))),
        measurement=measurement or a_measurement(),
        clean_room=a_clean_room(batch=a_batch(**(room or {}))),
        run=a_run(host={"cpus_per_arm": 8}, **(run or {})),
    )


def claims(**claimed):
    """Claims beside a measurement of 500 and 1,000 images/s."""
    return a_measurement(claims=claims_of(**claimed))


def transforms(*names):
    return (loader(transform="Compose(\n" + "".join(f"    {name}(size=8)\n" for name in names) + ")"),)


DATA = "/workspace/data"


def reading(*folders):
    """Pipelines that read these folders below `dataset_dir`."""
    return tuple(a_pipeline(reader_name="Reader", reader_root=f"{DATA}/{folder}") for folder in folders)


# Per row: evidence that has the fact, then evidence that is like it and has not; a clean run has none of them.
CASES = {
    "iterator_without_end": (
        evidence(pipelines=(a_pipeline(),)),
        [evidence(pipelines=(a_pipeline(iterator_type=""),))],
    ),
    "pipeline_without_iterator": (
        evidence(pipelines=(a_pipeline(iterator_type=""),)),
        [
            evidence(pipelines=()),
            evidence(pipelines=(a_pipeline(iterator_type=""),), ran="raised"),
            evidence(pipelines=(a_pipeline(iterator_type=""),), factories=("build_dali_iterator",)),
        ],
    ),
    "many_pipelines": (
        evidence(pipelines=(a_pipeline(reader_name="Reader"),) * 4),
        [evidence(pipelines=(a_pipeline(reader_name="Reader"),) * 3)],
    ),
    "batch_sizes_of_both_sides": (
        evidence(loaders=(loader(batch_size=64),)),
        [evidence(loaders=(loader(batch_size=64), loader()))],
    ),
    "drop_last_on_one_side": (
        evidence(loaders=(a_loader(dataset_length=650, drop_last=True),)),
        [
            evidence(loaders=(loader(drop_last=True),)),
            evidence(loaders=(a_loader(dataset_length=650),)),
            evidence(
                loaders=(a_loader(dataset_length=650, drop_last=True),),
                pipelines=(a_pipeline(reader_name="Reader", last_batch="DROP"),),
            ),
        ],
    ),
    "no_pinned_memory": (
        evidence(loaders=(loader(pin_memory=False),)),
        [evidence(loaders=(loader(pin_memory=False),), run={"device": "cpu"})],
    ),
    "one_batch_per_worker": (
        evidence(loaders=(loader(prefetch_factor=1),)),
        [evidence(loaders=(loader(prefetch_factor=1, num_workers=0),))],
    ),
    "loader_without_batches": (evidence(loaders=(loader(batch_size=None),)), [evidence(loaders=())]),
    "more_workers_than_cores": (
        evidence(loaders=(loader(num_workers=9),)),
        [evidence(loaders=(loader(num_workers=8),))],
    ),
    "different_data": (
        evidence(loaders=(a_loader(dataset_length=500),)),
        [
            evidence(loaders=(a_loader(dataset_length=500),), scan={"stopped_early": "enough"}),
            evidence(loaders=(a_loader(dataset_length=500, dataset_type="TensorDataset"),)),
            evidence(loaders=(a_loader(dataset_length=700),), scan={"rejected": {"copy": 60}}),
            evidence(loaders=(a_loader(dataset_length=500),), pipelines=reading("train")),
            evidence(loaders=(a_loader(dataset_length=500, dataset_root=f"{DATA}/train"),), pipelines=reading("train")),
            evidence(loaders=(a_loader(dataset_length=500, dataset_root=f"{DATA}/train"),)),
        ],
    ),
    "different_folders": (
        evidence(loaders=(loader(dataset_root=f"{DATA}/train"),), pipelines=reading("val")),
        [
            evidence(loaders=(loader(dataset_root=f"{DATA}/train"),), pipelines=reading("train")),
            evidence(loaders=(loader(dataset_root=f"{DATA}/train"),), pipelines=reading("val", "train")),
            evidence(loaders=(loader(dataset_root=DATA),), pipelines=reading("train")),
            evidence(loaders=(loader(),), pipelines=reading("val")),
            evidence(loaders=(loader(dataset_root=f"{DATA}/train"),)),
        ],
    ),
    "augmentation_at_full_size": (
        evidence(loaders=transforms("ColorJitter", "RandomResizedCrop", "ToTensor")),
        [
            evidence(loaders=transforms("RandomResizedCrop", "ColorJitter", "ToTensor")),
            evidence(loaders=transforms("ColorJitter", "ToTensor")),
        ],
    ),
    "loader_resizes_twice": (
        evidence(loaders=transforms("Resize", "RandomResizedCrop", "ToTensor")),
        [evidence(loaders=transforms("RandomResizedCrop", "ToTensor")), evidence(loaders=transforms("Resize"))],
    ),
    "normalised_on_one_side": (
        evidence(loaders=transforms("RandomResizedCrop", "ToTensor")),
        [
            evidence(loaders=transforms("RandomResizedCrop", "ToTensor", "Normalize")),
            evidence(loaders=transforms("RandomResizedCrop", "ToTensor"), room={"low": 0.0, "high": 1.0}),
        ],
    ),
    "first_batch_on_cpu": (
        evidence(first_batch=first(device="cpu")),
        [evidence(first_batch=first(device="cpu"), run={"device": "cpu"})],
    ),
    "first_batch_is_labels": (
        evidence(first_batch=first(shape=(32, 1))),
        [evidence(first_batch=first(shape=(32, 10)))],
    ),
    "first_batch_channels_last": (
        evidence(first_batch=first(shape=(32, 224, 224, 3))),
        [evidence(first_batch=first(shape=(32, 3, 224, 3)))],
    ),
    "first_batch_of_bytes": (
        evidence(first_batch=first(dtype="torch.uint8")),
        [evidence(first_batch=first(dtype="torch.float16"))],
    ),
    "first_batch_from_elsewhere": (
        evidence(first_batch=first(shape=(16, 3, 224, 224))),
        [evidence(first_batch=first(shape=(16, 1)))],
    ),
    "batches_counted": (
        evidence(measurement=claims(dali=31.0)),
        [evidence(measurement=claims(dali=90.0)), evidence(measurement=claims(dali=31.0), pipelines=())],
    ),
    "seconds_not_rate": (
        evidence(measurement=claims(pytorch=1.25)),
        [evidence(measurement=claims(pytorch=4.0)), evidence(measurement=claims(pytorch=None))],
    ),
    "rate_per_millisecond": (
        evidence(measurement=claims(dali=1.1), scan={"distinct": 6400}),
        [evidence(measurement=claims(dali=110.0), scan={"distinct": 6400})],
    ),
    "clock_around_nothing": (
        evidence(measurement=claims(dali=90_000.0)),
        [evidence(measurement=claims(dali=9_000.0)), evidence(measurement=claims(dali=-5.0))],
    ),
    "one_figure_twice": (
        evidence(measurement=claims(pytorch=700.0, dali=700.0)),
        [evidence(measurement=claims(pytorch=None, dali=None))],
    ),
    "tiny_epoch": (
        evidence(scan={"distinct": 100}, loaders=()),
        [evidence(scan={"distinct": 100}, loaders=(), pipelines=())],
    ),
    "tiny_images": (
        evidence(scan={"sizes": (ICON, ICON, PHOTO)}),
        [evidence(scan={"sizes": (ICON, PHOTO, PHOTO)}), evidence(scan={"sizes": ()})],
    ),
    "broken_files_below": (
        evidence(scan={"rejected": {"truncated": 2, "copy": 3}}),
        [evidence(scan={"rejected": {"copy": 3}}), evidence(scan={"problem": "missing", "rejected": {"empty": 1}})],
    ),
}  # fmt: skip


def ids(found):
    return [diagnosis.id for diagnosis in found]


def test_every_silent_row_has_its_case():
    """No row is without a condition, and no condition without a row."""
    assert set(CASES) == set(silent_rows())


@pytest.mark.parametrize("row", CASES)
def test_a_mistake_is_seen_where_its_fact_is(row):
    """Its texts are filled in, and are as short as feedback needs them."""
    [found] = [found for found in silent_mistakes(CASES[row][0]) if found.id == row]
    assert len(f"{found.cause} {found.remedy}") <= MAX_SENTENCE
    assert "``" not in f"{found.cause} {found.remedy}"
    assert "  " not in f"{found.cause} {found.remedy}"


@pytest.mark.parametrize(("row", "other"), [(row, other) for row, (_, others) in CASES.items() for other in others])
def test_a_mistake_is_not_seen_without_its_fact(row, other):
    """The same run with the fact changed does not have this mistake."""
    assert row not in ids(silent_mistakes(other))


def test_a_clean_run_has_no_mistake():
    """Nothing is said about what is right."""
    assert silent_mistakes(evidence()) == ()


def test_values_are_quoted():
    """Numbers and names come from the evidence."""
    texts = [
        f"{diagnosis.cause} {diagnosis.remedy}" for diagnosis in silent_mistakes(CASES["drop_last_on_one_side"][0])
    ]
    assert any("10 of 650 images" in text for text in texts)
    [endless] = silent_mistakes(CASES["iterator_without_end"][0])
    assert "len(dali_iter) is 0" in endless.cause
    [folders] = silent_mistakes(CASES["different_folders"][0])
    assert f"reads {DATA}/train, and the DALI pipeline reads {DATA}/val." in folders.cause
    [counted] = silent_mistakes(CASES["batches_counted"][0])
    assert "`dali_throughput` is 31, and 31 batches of 32" in counted.cause


def test_a_run_without_words_has_no_mistakes():
    """Where the learner's pod said nothing, nothing is known."""
    assert silent_mistakes(an_evidence(discovery=None)) == ()
    bare = an_evidence(discovery=a_discovery(loaders=(), pipelines=()), scan=None, clean_room=None, measurement=None)
    assert silent_mistakes(bare) == ()


def test_all_of_the_folder_that_dali_reads_is_counted():
    """A pipeline that reads `dataset_dir` itself leaves a smaller loader without an excuse."""
    whole = (a_pipeline(reader_name="Reader", reader_root=DATA),)
    for root in ("", DATA, f"{DATA}/train"):
        said = evidence(loaders=(a_loader(dataset_length=500, dataset_root=root),), pipelines=whole)
        assert "different_data" in ids(silent_mistakes(said))


def test_a_bare_pipeline_is_no_endless_iterator():
    """Nor does a run that was stopped in one name it as the cause."""
    assert endless_iterator(a_discovery(pipelines=(a_pipeline(iterator_type=""),))) is None


@pytest.mark.parametrize("row", CASES)
def test_the_causes_of_a_rate_are_not_repeated(row):
    """What the check of the ratio says under a code of its own is not said again here."""
    given_evidence = CASES[row][0]
    measurement = given_evidence.measurement
    causes = likely_causes(measurement, measurement.decision, context_of(given_evidence))
    assert all(isinstance(cause, Cause) for cause in causes)
    assert not {cause.code for cause in causes} & set(silent_rows())


@given(
    name=st.text(max_size=200),
    kind=st.sampled_from(["DALIGenericIterator", ""]),
    transform=st.text(max_size=300) | st.lists(st.sampled_from(["Resize(", "ColorJitter(", "x", "\n"])).map("".join),
    shape=st.lists(st.integers(0, 2**40), max_size=6).map(tuple),
    rates=st.tuples(*[st.floats(allow_nan=False, allow_infinity=False) | st.none()] * 2),
    length=st.integers(0, 2**53) | st.none(),
)
def test_any_evidence_is_looked_at_safely(name, kind, transform, shape, rates, length):
    """Claims and names of every kind give short texts, never an error."""
    said = evidence(
        pipelines=(a_pipeline(name=name, iterator_type=kind),),
        loaders=(a_loader(transform=transform, dataset_length=length, dataset_type=name),),
        first_batch=first(shape=shape),
        measurement=a_measurement(claims=claims_of(*rates)),
    )
    for found in silent_mistakes(said):
        assert len(f"{found.cause} {found.remedy}") <= MAX_SENTENCE
        assert "\n" not in f"{found.cause} {found.remedy}"
