"""Fails `output_contract`: decoded as BGR, as OpenCV would, where the model wants RGB."""

from pathlib import Path

import numpy as np
from nvidia.dali import fn, pipeline_def, types
from nvidia.dali.plugin.pytorch import DALIClassificationIterator
from PIL import Image

dataset_dir = Path("photos")
rng = np.random.default_rng(1)
for number in range(16):
    folder = dataset_dir / f"class_{number % 2}"
    folder.mkdir(parents=True, exist_ok=True)
    pixels = rng.integers(0, 256, (6, 8, 3), dtype=np.uint8) // 2 + 100 * (number % 2)
    Image.fromarray(pixels.astype(np.uint8)).resize((160, 120), Image.BICUBIC).save(folder / f"{number:03d}.jpg")

MEAN = [0.485 * 255, 0.456 * 255, 0.406 * 255]
STD = [0.229 * 255, 0.224 * 255, 0.225 * 255]


@pipeline_def(batch_size=16, num_threads=2, device_id=0, seed=5)
def training(root):
    jpegs, labels = fn.readers.file(file_root=root, random_shuffle=True, name="Reader")
    images = fn.decoders.image_random_crop(jpegs, device="mixed", output_type=types.BGR)
    images = fn.resize(images, size=(112, 112))
    images = fn.crop_mirror_normalize(images, dtype=types.FLOAT, output_layout="CHW", mean=MEAN, std=STD)
    return images, labels.gpu()


train_iter = DALIClassificationIterator(training(str(dataset_dir)), reader_name="Reader")
