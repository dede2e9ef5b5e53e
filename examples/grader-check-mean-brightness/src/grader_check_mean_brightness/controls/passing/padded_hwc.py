"""Images keep their proportions and get black borders; HWC."""

import os

import numpy as np
from nvidia.dali import fn, pipeline_def, types
from nvidia.dali.plugin.pytorch import DALIGenericIterator
from PIL import Image

MEAN = [0.485 * 255, 0.456 * 255, 0.406 * 255]
STD = [0.229 * 255, 0.224 * 255, 0.225 * 255]

dataset_dir = "dataset"
os.makedirs(f"{dataset_dir}/class_a", exist_ok=True)
for number in range(32):
    pixels = np.full((96, 128, 3), 7 * number, dtype=np.uint8)
    Image.fromarray(pixels).save(f"{dataset_dir}/class_a/{number:03d}.jpg")


@pipeline_def(batch_size=16, num_threads=2, device_id=0)
def pipeline():
    jpegs, labels = fn.readers.file(file_root=dataset_dir, name="reader", random_shuffle=True)
    images = fn.decoders.image(jpegs, device="mixed")
    images = fn.resize(images, size=(64, 64), mode="not_larger")
    images = fn.crop_mirror_normalize(
        images,
        dtype=types.FLOAT,
        output_layout="HWC",
        mean=MEAN,
        std=STD,
        crop=(64, 64),
        out_of_bounds_policy="pad",
    )
    return images, labels.gpu()


dali_iter = DALIGenericIterator([pipeline()], ["images", "labels"], reader_name="reader")
first_batch = next(iter(dali_iter))[0]["images"]
