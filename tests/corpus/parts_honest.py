"""Parts of honest submissions: data sets, loaders, pipelines and reflections as different people write them."""

import tarfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from tests.corpus.case import Content, Honest
from tests.corpus.parts import joined
from tests.ingest import packing

WHOLE = ("baseline", "pipeline", "benchmark", "reflection")
MEASURED = ("baseline", "pipeline", "benchmark")
PIPED = ("pipeline", "benchmark")

GRADIENTS = """
from pathlib import Path

import numpy as np
from PIL import Image

DATA_ROOT = Path("/tmp/lab_jpegs")


def make_dataset(root: Path, n: int = 120, size=(256, 192)) -> Path:
    \"\"\"Gradients plus noise, so that every file is different and has something to decode.\"\"\"
    rng = np.random.default_rng(0)
    xs = np.linspace(0, 1, size[0])[None, :, None]
    ys = np.linspace(0, 1, size[1])[:, None, None]
    for i in range(n):
        a, b = rng.uniform(40, 215, (2, 3))
        picture = a * xs + b * ys * 0.5 + rng.normal(0, 18, (size[1], size[0], 3))
        target = root / f"class_{i % 3}"
        target.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.clip(picture, 0, 255).astype("uint8")).save(target / f"img_{i:05d}.jpg", quality=90)
    return root


dataset_dir = make_dataset(DATA_ROOT)
"""
"""A data set below /tmp, given as a `Path`."""

ROOM = """
import os
import numpy
import PIL.Image

dataset_dir = os.path.join(os.getcwd(), "data", "train")
if not os.path.isdir(dataset_dir):
    for first, label in ((0, "cat"), (1000, "dog")):
        os.makedirs(os.path.join(dataset_dir, label))
        for k in range(64):
            seed = numpy.random.RandomState(first + k)
            arr = seed.randint(0, 255, size=(160, 200, 3), dtype=numpy.uint8)
            PIL.Image.fromarray(arr).save(os.path.join(dataset_dir, label, "%s.%d.jpg" % (label, k)), "JPEG")
"""
"""Plain noise in two folders, at an absolute path."""

TORCH = """
import time
import torch
import torchvision.transforms as T
from torch.utils.data import DataLoader
from torchvision.datasets import ImageFolder

BATCH = 16
tf = T.Compose([
    T.RandomResizedCrop(96),
    T.RandomHorizontalFlip(),
    T.ToTensor(),
    T.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]),
])
train_loader = DataLoader(ImageFolder(dataset_dir, tf), batch_size=BATCH, shuffle=True, num_workers=2, pin_memory=True)


def bench_torch(loader):
    n, start = 0, time.perf_counter()
    for x, y in loader:
        x = x.to("cuda", non_blocking=True)
        n += x.size(0)
    torch.cuda.synchronize()
    return n / (time.perf_counter() - start)


pytorch_throughput = bench_torch(train_loader)
print(f"PyTorch: {pytorch_throughput:.1f} img/s")
"""
"""The baseline with the augmentations of ImageNet, timed once."""

DALI = """
import nvidia.dali.fn as fn
import nvidia.dali.types as types
from nvidia.dali import pipeline_def
from nvidia.dali.plugin.pytorch import DALIClassificationIterator, DALIGenericIterator, LastBatchPolicy


def normalise(images, **more):
    return fn.crop_mirror_normalize(
        images, dtype=types.FLOAT, output_layout="CHW",
        mean=[0.485 * 255, 0.456 * 255, 0.406 * 255], std=[0.229 * 255, 0.224 * 255, 0.225 * 255], **more,
    )
"""
"""Imports and the last operator."""

CROPS = """
@pipeline_def(batch_size=16, num_threads=2, device_id=0, seed=12)
def train_pipe():
    jpegs, labels = fn.readers.file(file_root=str(dataset_dir), random_shuffle=True, name="Reader")
    images = fn.decoders.image(jpegs, device="mixed", output_type=types.RGB)
    images = fn.random_resized_crop(images, size=(96, 96))
    return normalise(images, mirror=fn.random.coin_flip(probability=0.5)), labels.gpu()
"""
"""The pipeline of the lab's page."""

TIMED = """
def bench_dali(loader):
    for _ in loader:  # warm-up
        pass
    seen, start = 0, time.perf_counter()
    for batch in loader:
        seen += batch[0]["data"].shape[0]
    torch.cuda.synchronize()
    return seen / (time.perf_counter() - start)


dali_throughput = bench_dali(dali_loader)
print(f"DALI: {dali_throughput:.1f} img/s, {dali_throughput / pytorch_throughput:.2f}x")
"""
"""Times `dali_loader`."""

ITERATOR = """
dali_loader = DALIClassificationIterator(train_pipe(), reader_name="Reader", auto_reset=True)
first_batch = next(dali_loader)[0]["data"]
assert first_batch.is_cuda and first_batch.dim() == 4
"""

CROPPED = joined(DALI, CROPS)
IN_ROOM = joined(ROOM, TORCH, CROPPED)
ON_GRADIENTS = joined(GRADIENTS, TORCH, CROPPED)
"""All but what iterates over the pipeline."""
DALI_LAB = joined(CROPPED, ITERATOR, TIMED)
"""The lab's own pipeline, iterated and timed."""

REFLECTED = """
where_dali_wins = [
    "ImageNet-style training from JPEG folders on an 8-core cloud VM with an A100: the CPU cannot decode fast enough, "
    "so moving the JPEG decoding to the GPU keeps the GPU busy.",
    "Heavy augmentation (RandAugment, colour jitter, blur) of large photos for a small network such as MobileNet, "
    "where the augmentation on the CPU takes longer than the training step itself.",
    "Video classification: frames of H.264 clips are decoded by NVDEC and never cross the PCIe bus as raw pixels.",
]
where_dali_loses = [
    "Fine-tuning BERT on sentences that are already tokenised: the inputs are tiny integer arrays, there is no image "
    "to decode, so the loader is not the bottleneck.",
    "Tabular data (a CSV with 30 numeric columns) that fits in RAM: reading is trivial, DALI has nothing to speed up.",
]
"""
"""Honest reasons, one of several sets in the corpus."""

SEEN = """
where_dali_wins = (
    "Medical X-ray screening with 12-megapixel JPEGs: decoding one file costs the CPU 80 ms, the GPU a fraction of it",
    "Self-driving perception: six camera streams per car have to be decoded and resized at the same time, more than "
    "the host's cores can do while the GPU waits",
    "Several GPUs in one server share few CPU cores, so each DataLoader is starved when it decodes photos in software",
)
where_dali_loses = (
    "Language models on pre-tokenised text read small integers from a memory map and the GPU is busy with attention",
    "CIFAR-10 kept as one uint8 tensor in GPU memory: no decoding is left, an index is faster than any pipeline",
)
"""
"""Tuples without full stops."""


def honest(
    id_: str, title: str, content: Content, *parts: str, steps: tuple[str, ...] = WHOLE, **more: object
) -> Honest:
    """A file as it is, or one Python file of these parts, to be graded in every step unless it is told otherwise."""
    whole = joined(content, *parts) if isinstance(content, str) else content
    return Honest(id_, title, content=whole, steps=steps, **more)


def notebook(*cells: str | tuple[str, str], **metadata: object) -> Callable[[], bytes]:
    """A notebook as Jupyter stores it; a cell that is not code is a pair of its type and text."""
    made = []
    for number, cell in enumerate(cells):
        kind, text = ("code", cell) if isinstance(cell, str) else cell
        source = joined(text).strip("\n").splitlines(keepends=True)
        other = {"cell_type": kind, "id": f"c{number}", "metadata": {}, "source": source}
        made.append(packing.code_cell(source, number) if kind == "code" else other)
    kernel = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    return partial(packing.notebook, *made, metadata=kernel | metadata)


def tarred(files: Mapping[str, str | bytes], folders: Sequence[str] = ()) -> Callable[[], bytes]:
    """A tar.gz as `tar czf` packs a folder."""
    members = [(packing.tar_member(name, tarfile.DIRTYPE), b"") for name in folders]
    members += [(name, joined(text).encode() if isinstance(text, str) else text) for name, text in files.items()]
    return partial(packing.tar_bytes, members, packed=True)
