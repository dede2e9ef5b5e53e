"""Fails `shard_coverage`: `shard_id` is left out, so that both ranks read shard 0."""

from pathlib import Path

import numpy as np
from nvidia.dali import fn, pipeline_def
from nvidia.dali.plugin.base_iterator import LastBatchPolicy
from nvidia.dali.plugin.pytorch import DALIClassificationIterator
from PIL import Image

dataset_dir = Path("photos")
rng = np.random.default_rng(1)
for number in range(104):
    folder = dataset_dir / f"class_{number % 2}"
    folder.mkdir(parents=True, exist_ok=True)
    pixels = rng.integers(0, 256, (6, 8, 3), dtype=np.uint8) // 2 + 100 * (number % 2)
    Image.fromarray(pixels.astype(np.uint8)).resize((160, 120), Image.BICUBIC).save(folder / f"{number:03d}.jpg")


@pipeline_def(batch_size=16, num_threads=2, device_id=0, seed=5)
def pipeline(root, shuffle, shard_id=0, num_shards=1):
    jpegs, labels = fn.readers.file(
        file_root=root,
        random_shuffle=shuffle,
        shard_id=shard_id,
        num_shards=num_shards,
        pad_last_batch=True,
        name="Reader",
    )
    images = fn.decoders.image(jpegs, device="mixed")
    return fn.resize(images, size=(112, 112)), labels.gpu()


def iterator(pipe):
    return DALIClassificationIterator(
        pipe, reader_name="Reader", last_batch_policy=LastBatchPolicy.PARTIAL, auto_reset=True
    )


train_iter = iterator(pipeline(str(dataset_dir), shuffle=True))
validation_iter = iterator(pipeline(str(dataset_dir), shuffle=False))
sharded = [pipeline(str(dataset_dir), shuffle=True, num_shards=2) for _rank in range(2)]
