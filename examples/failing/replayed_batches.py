"""Fails `throughput_ratio`: the iterator decodes four batches and delivers them again and again."""

import itertools
import time
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch.utils.data import DataLoader
from torchvision import datasets, transforms

from nvidia.dali import fn, pipeline_def, types
from nvidia.dali.plugin.pytorch import DALIGenericIterator

dataset_dir = Path("dataset")


def make_images(count):
    rng = np.random.default_rng(3)
    for i in range(count):
        folder = dataset_dir / f"class_{i % 2}"
        folder.mkdir(parents=True, exist_ok=True)
        coarse = rng.integers(0, 256, (48, 64, 3), dtype=np.uint8)
        Image.fromarray(coarse).resize((500, 375), Image.BICUBIC).save(folder / f"{i:04d}.jpg", quality=90)


make_images(160)


def throughput(batches, size):
    images, start = 0, time.perf_counter()
    for batch in batches:
        images += size(batch)
    torch.cuda.synchronize()
    return images / (time.perf_counter() - start)


loader = DataLoader(
    datasets.ImageFolder(
        dataset_dir,
        transforms.Compose(
            [transforms.RandomResizedCrop(224), transforms.RandomHorizontalFlip(), transforms.ToTensor()]
        ),
    ),
    batch_size=32,
    num_workers=2,
    persistent_workers=True,
)
pytorch_throughput = throughput(loader, lambda batch: batch[0].cuda(non_blocking=True).shape[0])


def build_dali_iterator(dataset_dir, batch_size):
    files = sorted(str(path) for path in Path(dataset_dir).rglob("*.jpg"))
    shuffled = np.random.default_rng(0)

    def encoded_batch():
        return [np.fromfile(file, dtype=np.uint8) for file in shuffled.choice(files, batch_size)]

    @pipeline_def(batch_size=batch_size, num_threads=4, device_id=0)
    def pipeline():
        jpegs = fn.external_source(source=encoded_batch, dtype=types.UINT8)
        images = fn.decoders.image(jpegs, device="mixed", output_type=types.RGB)
        images = fn.resize(images, size=(224, 224))
        return fn.crop_mirror_normalize(images, std=[255.0] * 3, output_layout="CHW")

    decoded = DALIGenericIterator(pipeline(), ["data"])
    kept = [next(decoded)[0]["data"].clone() for _ in range(4)]
    return ([{"data": batch}] for batch in itertools.cycle(kept))


dali_iter = build_dali_iterator(dataset_dir, 32)
first_batch = next(dali_iter)[0]["data"]
dali_throughput = throughput(itertools.islice(dali_iter, 50), lambda batch: batch[0]["data"].shape[0])

where_dali_wins = [
    "ImageNet training with few CPU cores per GPU: JPEG decoding in the workers starves the card.",
    "Video clips decoded on NVDEC, so that frames never pass through the CPU.",
    "Several GPUs on one host whose loader workers compete for the same cores.",
]
where_dali_loses = [
    "BERT on pre-tokenised text: there is nothing to decode, so the loader was never the bottleneck.",
    "CIFAR-10, whose tiny images fit into memory and need no decoding at all.",
]
