"""Against the advice of `legacy_pipeline`: a class with `define_graph`, as DALI was written before version 1.0."""

from pathlib import Path

import numpy as np
from nvidia.dali import ops, types
from nvidia.dali.pipeline import Pipeline
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


class TrainingPipeline(Pipeline):
    def __init__(self, root, batch_size, num_threads, device_id):
        super().__init__(batch_size, num_threads, device_id, seed=5)
        self.read = ops.readers.File(file_root=root, random_shuffle=True, name="Reader")
        self.decode = ops.decoders.ImageRandomCrop(device="mixed", output_type=types.RGB)
        self.resize = ops.Resize(device="gpu", size=(112, 112))
        self.normalise = ops.CropMirrorNormalize(
            device="gpu", dtype=types.FLOAT, output_layout="CHW", mean=MEAN, std=STD
        )

    def define_graph(self):
        jpegs, labels = self.read()
        images = self.normalise(self.resize(self.decode(jpegs)))
        return images, labels.gpu()


train_iter = DALIClassificationIterator(TrainingPipeline(str(dataset_dir), 16, 2, 0), reader_name="Reader")
