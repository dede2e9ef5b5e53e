"""One submission, run for real in the process sandbox, judged by all checks on graphs at once."""

import pytest

from grader_service.model.evidence import Need
from tests.checks.claims.jpegs import START
from tests.checks.whole_run import run_and_judge

SUBMISSION = """
from nvidia.dali.auto_aug import trivial_augment

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
def test_all_checks_pass_a_whole_submission(forked_runner, tmp_path):
    """Written for a GPU, rehearsed on the CPU: every probe observes, every check passes by facts of the graph."""
    path = tmp_path / "submission.py"
    path.write_text(START + SUBMISSION)
    evidence, results = run_and_judge(path, EXPECTED, [Need.DISCOVERY], forked_runner)
    records = {record.id: (record.status, record.text[:500]) for record in evidence.probes}
    assert set(records.values()) == {("ok", "")}, records
    codes = {name: result.code.rpartition(".")[2] for name, result in results.items()}
    assert codes == dict.fromkeys(EXPECTED, "ok"), {name: result.feedback for name, result in results.items()}
