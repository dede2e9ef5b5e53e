"""Parts that submissions of the corpus are made of; joined, they are whole ones."""

import textwrap
from collections.abc import Callable, Mapping
from functools import partial

from tests.ingest.packing import zip_bytes

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

TRANSFORMS = """
import torch
from torchvision import datasets, transforms

shape = transforms.Compose([transforms.Resize((96, 96)), transforms.ToTensor()])
"""
"""What a loader needs."""

LOADER = f"""{TRANSFORMS}\
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


def slowed(side: int, sigma: float) -> str:
    """The graph on one thread, which blurs images of this side before it makes them small."""
    small = "    images = fn.resize(images, size=(96, 96))\n"
    large = f"    images = fn.gaussian_blur(fn.resize(images, size=({side}, {side})), sigma={sigma})\n"
    return GRAPH.replace(small, large + small).replace("num_threads=2", "num_threads=1")


SLOW_GRAPH = slowed(288, 3.0)
"""A graph at a quarter of the baseline's rate: slow enough for any host without a GPU, and soon
measured; a GPU makes light of it."""

WINS = (
    "ResNet-50 on ImageNet with four CPU cores per GPU: JPEG decoding starves the GPU; nvJPEG takes it over.",
    "Video action recognition reads long H.264 clips; decoding frames on NVDEC leaves the CPU free for sampling.",
    "A server that classifies photos of users decodes and resizes on the GPU, so latency stays below 20 ms.",
)
LOSES = (
    "BERT on text that was tokenised before: nothing is left to decode, and a memory-mapped file feeds the GPU.",
    "Tabular data of 40 columns fits into GPU memory once; a loader of any kind only adds copies of small rows.",
)
"""Both pass as they are: what a cheat adds or replaces is what fails."""

_LINES = [
    *("where_dali_wins = [", *(f'    "{text}",' for text in WINS), "]"),
    *("where_dali_loses = [", *(f'    "{text}",' for text in LOSES), "]"),
]
REFLECTIONS = "\n".join(["", *_LINES, ""])

SLOW = ("ratio.too_low", "ratio.inconclusive", "ratio.host_cannot_show_effect", "ratio.host_unsteady")
"""Right answers for a slow graph: a busy machine may leave it undecided; what matters is that it never passes."""


def joined(*parts: str) -> str:
    """One submission of several parts."""
    return "\n".join(textwrap.dedent(part) for part in parts)


def zipped(files: Mapping[str, str | bytes]) -> Callable[[], bytes]:
    """A zip archive; a name that ends in a slash is a folder."""
    members = [(name, joined(content) if isinstance(content, str) else content) for name, content in files.items()]
    return partial(zip_bytes, members)
