"""Fails `throughput_ratio`: one CPU thread decodes, enlarges and blurs, and only the result goes to the GPU."""

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


make_images(112)


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
    batch_size=16,
    num_workers=2,
    persistent_workers=True,
)
throughput(loader, lambda batch: batch[0].cuda(non_blocking=True).shape[0])
pytorch_throughput = throughput(loader, lambda batch: batch[0].cuda(non_blocking=True).shape[0])


@pipeline_def(batch_size=16, num_threads=1, device_id=0)
def pipeline():
    jpegs, labels = fn.readers.file(file_root=str(dataset_dir), random_shuffle=True, name="Reader")
    images = fn.decoders.image(jpegs, device="cpu", output_type=types.RGB)
    images = fn.resize(images, size=(448, 448))
    images = fn.gaussian_blur(images, sigma=2.0)
    images = fn.resize(images, size=(224, 224))
    images = fn.crop_mirror_normalize(images, std=[255.0] * 3, output_layout="CHW")
    return images.gpu(), labels


dali_iter = DALIGenericIterator(pipeline(), ["data", "label"], reader_name="Reader", auto_reset=True)
first_batch = next(dali_iter)[0]["data"]
throughput(dali_iter, lambda batch: batch[0]["data"].shape[0])
dali_throughput = throughput(dali_iter, lambda batch: batch[0]["data"].shape[0])

where_dali_wins = [
    "ImageNet training with few CPU cores per GPU: JPEG decoding in the workers starves the card.",
    "Video clips decoded on NVDEC, so that frames never pass through the CPU.",
    "Several GPUs on one host whose loader workers compete for the same cores.",
]
where_dali_loses = [
    "BERT on pre-tokenised text: there is nothing to decode, so the loader was never the bottleneck.",
    "CIFAR-10, whose tiny images fit into memory and need no decoding at all.",
]
