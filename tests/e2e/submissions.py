"""Parts of submissions whose graph cannot be carried; joined, they are whole ones."""

COMMON = """
import glob, os, random
import numpy as np
from PIL import Image

dataset_dir = "dataset"
noise = np.random.default_rng(3)
for number in range(100):
    os.makedirs(f"dataset/c{number % 2}", exist_ok=True)
    small = noise.integers(0, 256, (9, 12, 3), dtype=np.uint8)
    Image.fromarray(small).resize((192, 144)).save(f"dataset/c{number % 2}/{number:04d}.jpg")


def files(folder):
    return sorted(glob.glob(f"{folder}/**/*.jpg", recursive=True))


pytorch_throughput, dali_throughput = 100.0, 500.0
"""

END = """
dali_iter = build_dali_iterator(dataset_dir, 16)
first_batch = next(iter(dali_iter))
"""

GRAPH = """
import torch
from nvidia.dali import fn, pipeline_def, types
from nvidia.dali.plugin.pytorch import DALIGenericIterator
"""

EXTERNAL = '''
class Feeder:
    """Encoded files of one epoch, in an order of its own."""

    def __init__(self, folder, batch):
        self.paths, self.batch = files(folder), batch
        self.jpegs = {path: READ(path) for path in self.paths}

    def __iter__(self):
        self.place = 0
        random.shuffle(self.paths)
        return self

    def __next__(self):
        part = self.paths[self.place : self.place + self.batch]
        if len(part) < self.batch:
            raise StopIteration
        self.place += self.batch
        return [OPEN(self.jpegs[path]) for path in part]


@pipeline_def(num_threads=2, device_id=0)
def pipeline(feeder):
    jpegs = fn.external_source(source=feeder, cycle="raise", dtype=types.UINT8)
    images = fn.decoders.image(jpegs, device="mixed")
    return fn.crop_mirror_normalize(images, mean=[124.0, 116.0, 104.0], std=[58.0, 57.0, 57.0], output_layout="CHW")


def build_dali_iterator(folder, batch_size):
    return DALIGenericIterator(pipeline(Feeder(folder, batch_size), batch_size=batch_size), ["data"], auto_reset=True)
'''


def external(read="path", opened="np.fromfile({}, dtype=np.uint8)"):
    """The external source that reads each file when it is needed, or as told."""
    kept = EXTERNAL.replace("READ(path)", read).replace("OPEN(self.jpegs[path])", opened.format("self.jpegs[path]"))
    return GRAPH + kept
