"""Fails `normalisation`: mean and std are written for images of 0 to 1, and DALI's are 0 to 255."""

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


@pipeline_def(batch_size=16, num_threads=2, device_id=0, seed=5)
def training(root):
    jpegs, labels = fn.readers.file(file_root=root, random_shuffle=True, name="Reader")
    images = fn.decoders.image_random_crop(jpegs, device="mixed", output_type=types.RGB)
    images = fn.resize(images, size=(112, 112))
    images = fn.crop_mirror_normalize(
        images, dtype=types.FLOAT, output_layout="CHW", mean=[0.485, 0.456, 0.406], std=[0.229, 0.224, 0.225]
    )
    return images, labels.gpu()


train_iter = DALIClassificationIterator(training(str(dataset_dir)), reader_name="Reader")
