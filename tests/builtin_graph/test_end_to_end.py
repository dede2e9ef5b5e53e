"""One submission, run for real in the process sandbox, judged by all checks on graphs at once."""

from pathlib import Path

import pytest

from checks.probe_files import ProbeFiles
from checks.registry import Registry
from grader_service.grading.progress import Silent
from grader_service.grading.run import execute
from grader_service.ingest.artifact import measure
from grader_service.judging import judge
from grader_service.labs.specs import lab_text, read_lab
from grader_service.model.evidence import Need
from grader_service.model.lab import LabCheck, LabStep
from grader_service.probe_plan import wanted_probes

PROBES = Path(__file__).parents[2] / "checks" / "probes"
SUBMISSION = """
import os
import numpy as np
from PIL import Image
from nvidia.dali import fn, pipeline_def, types
from nvidia.dali.auto_aug import trivial_augment
from nvidia.dali.plugin.pytorch import DALIClassificationIterator, LastBatchPolicy

dataset_dir = "dataset"
for number in range(24):
    os.makedirs(f"dataset/c{number % 2}", exist_ok=True)
    picture = np.full((60, 80, 3), 10 * number, dtype=np.uint8)
    Image.fromarray(picture).save(f"dataset/c{number % 2}/{number}.jpg")

MEAN = [0.485 * 255, 0.456 * 255, 0.406 * 255]
STD = [0.229 * 255, 0.224 * 255, 0.225 * 255]


@pipeline_def(num_threads=2, device_id=0, enable_conditionals=True)
def training(rank, world):
    jpegs, labels = fn.readers.file(file_root=dataset_dir, random_shuffle=True, name="Reader", shard_id=rank,
                                    num_shards=world, pad_last_batch=True)
    images = fn.decoders.image_random_crop(jpegs, device="mixed", output_type=types.RGB)
    images = fn.resize(images, size=[64, 64])
    images = trivial_augment.trivial_augment_wide(images)
    mirror = fn.random.coin_flip(probability=0.5)
    images = fn.crop_mirror_normalize(images, mean=MEAN, std=STD, mirror=mirror, output_layout="CHW")
    return images, labels.gpu()


@pipeline_def(num_threads=2, device_id=0)
def validation():
    jpegs, labels = fn.readers.file(file_root=dataset_dir, name="Reader", pad_last_batch=True)
    images = fn.decoders.image(jpegs, device="mixed", output_type=types.RGB)
    images = fn.resize(images, resize_shorter=256)
    images = fn.crop_mirror_normalize(images, crop=(224, 224), mean=MEAN, std=STD, output_layout="CHW")
    return images, labels.gpu()


def loop(pipe):
    return DALIClassificationIterator(pipe, reader_name="Reader", last_batch_policy=LastBatchPolicy.PARTIAL,
                                      auto_reset=True)


train_ranks = [loop(training(rank, 2, batch_size=16)) for rank in range(2)]
val_iter = loop(validation(batch_size=16))
first_batch = next(iter(train_ranks[0]))[0]["data"]
"""
EXPECTED = {
    "output_contract": {},
    "normalisation": {},
    "torchvision_agreement": {},
    "epoch_coverage": {},
    "shuffle_determinism": {"validation": "required"},
    "shard_coverage": {},
    "random_augmentation": {"kinds": ["crop", "flip", "colour"], "validation": "required"},
    "label_match": {"device": "gpu"},
    "auto_augment": {"policy": "trivial_augment"},
}


@pytest.mark.slow
@pytest.mark.integration
def test_all_checks_pass_a_whole_submission(forked_runner, tmp_path):
    """Written for a GPU, rehearsed on the CPU: every probe observes, every check passes by facts of the graph."""
    path = tmp_path / "submission.py"
    path.write_text(SUBMISSION)
    checks = tuple(LabCheck(id=name, points=1, params=params) for name, params in EXPECTED.items())
    step = LabStep(id="graphs", title="Graphs", checks=checks)
    registry = Registry()
    probes = wanted_probes([step], registry, ProbeFiles(folders=[PROBES]))
    outcome = execute(
        measure(path), read_lab(lab_text("dali-pipelines"), "dali-pipelines"), [Need.DISCOVERY], forked_runner, "cpu",
        Silent(), run_id="e" * 32, probes=probes,
    )  # fmt: skip
    records = {record.id: (record.status, record.text[:500]) for record in outcome.evidence.probes}
    assert set(records.values()) == {("ok", "")}, records
    judged = {one.check.id: one.result for one in judge(outcome.evidence, [step], registry)}
    assert {name: result.code.rpartition(".")[2] for name, result in judged.items()} == dict.fromkeys(EXPECTED, "ok"), {
        name: result.feedback for name, result in judged.items()
    }
