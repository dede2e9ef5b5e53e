"""Parts that submissions of the corpus are made of; joined, they are whole ones."""

import textwrap

DATASET = """
import glob, os, random
import numpy as np
from PIL import Image

dataset_dir = "dataset"
noise = np.random.default_rng(3)
for number in range(100):
    os.makedirs(f"dataset/c{number % 2}", exist_ok=True)
    small = noise.integers(0, 256, (9, 12, 3), dtype=np.uint8)
    Image.fromarray(small).resize((192, 144)).save(f"dataset/c{number % 2}/{number:04d}.jpg")
"""
"""100 different JPEGs, as most learners write them."""

LOADER = """
import torch
from torchvision import datasets, transforms

shape = transforms.Compose([transforms.Resize((96, 96)), transforms.ToTensor()])
loader = torch.utils.data.DataLoader(datasets.ImageFolder(dataset_dir, shape), batch_size=16, num_workers=0)
pytorch_throughput = 100.0
"""

GRAPH = """
from nvidia.dali import fn, pipeline_def, types
from nvidia.dali.plugin.pytorch import DALIGenericIterator


@pipeline_def(batch_size=16, num_threads=2, device_id=0)
def pipeline():
    jpegs, labels = fn.readers.file(file_root=dataset_dir, random_shuffle=True, name="Reader")
    images = fn.decoders.image(jpegs, device="mixed", output_type=types.RGB)
    images = fn.resize(images, size=(96, 96))
    images = fn.crop_mirror_normalize(images, std=[255.0] * 3, output_layout="CHW")
    return images, labels


dali_iter = DALIGenericIterator(pipeline(), ["data", "label"], reader_name="Reader", auto_reset=True)
first_batch = next(iter(dali_iter))[0]["data"]
dali_throughput = 500.0
"""

SLOW_GRAPH = GRAPH.replace(
    "    images = fn.resize(images, size=(96, 96))\n",
    "    images = fn.gaussian_blur(fn.resize(images, size=(288, 288)), sigma=3.0)\n"
    "    images = fn.resize(images, size=(96, 96))\n",
).replace("num_threads=2", "num_threads=1")
"""A graph at a quarter of the baseline's rate: slow enough for any host without a GPU, and soon
measured; a GPU makes light of it."""

REFLECTIONS = """
where_dali_wins = [
    "ResNet-50 on ImageNet with four CPU cores per GPU: JPEG decoding starves the GPU; nvJPEG takes it over.",
    "Video action recognition reads long H.264 clips; decoding frames on NVDEC leaves the CPU free for sampling.",
    "A server that classifies photos of users decodes and resizes on the GPU, so latency stays below 20 ms.",
]
where_dali_loses = [
    "BERT on text that was tokenised before: nothing is left to decode, and a memory-mapped file feeds the GPU.",
    "Tabular data of 40 columns fits into GPU memory once; a loader of any kind only adds copies of small rows.",
]
"""

SLOW = ("ratio.too_low", "ratio.inconclusive", "ratio.host_cannot_show_effect", "ratio.host_unsteady")
"""Right answers for a slow graph: a busy machine may leave it undecided; what matters is that it never passes."""


def joined(*parts: str) -> str:
    """One submission of several parts."""
    return "\n".join(textwrap.dedent(part) for part in parts)
