"""Nothing brings the images to one size."""

import os

import numpy as np
from nvidia.dali import fn, pipeline_def
from PIL import Image

dataset_dir = "dataset"
os.makedirs(f"{dataset_dir}/class_a", exist_ok=True)
for number in range(32):
    pixels = np.full((240, 240 + number % 3, 3), 7 * number, dtype=np.uint8)
    Image.fromarray(pixels).save(f"{dataset_dir}/class_a/{number:03d}.jpg")


@pipeline_def(batch_size=16, num_threads=2, device_id=0)
def pipeline():
    jpegs, labels = fn.readers.file(
        file_root=dataset_dir, name="reader", random_shuffle=True
    )
    images = fn.decoders.image(jpegs, device="mixed")
    return images, labels.gpu()


pipe = pipeline()
pipe.build()
