"""DALI lab: compare a torchvision DataLoader with a DALI pipeline."""

import random
import time
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch.utils.data import DataLoader
from torchvision import datasets, transforms

from nvidia.dali import fn, pipeline_def, types
from nvidia.dali.plugin.pytorch import DALIGenericIterator

BATCH_SIZE = 32
IMAGE_SIZE = 224
MEAN = [0.485, 0.456, 0.406]
STD = [0.229, 0.224, 0.225]


def make_dataset(root: Path, per_class: int = 128) -> Path:
    """Write noisy JPEGs for two classes; coarse noise, enlarged, compresses like a photo."""
    rng = np.random.default_rng(42)
    for label in ("cat", "dog"):
        folder = root / label
        folder.mkdir(parents=True, exist_ok=True)
        for index in range(per_class):
            coarse = rng.integers(0, 256, (30, 40, 3), dtype=np.uint8)
            image = Image.fromarray(coarse).resize((320, 240), Image.BICUBIC)
            image.save(folder / f"{index:04d}.jpg", quality=90)
    return root


dataset_dir = make_dataset(Path("data"))

# ---------------------------------------------------------------- Step 1: baseline

train_transform = transforms.Compose(
    [
        transforms.RandomResizedCrop(IMAGE_SIZE),
        transforms.RandomHorizontalFlip(),
        transforms.ToTensor(),
        transforms.Normalize(MEAN, STD),
    ]
)
train_loader = DataLoader(
    datasets.ImageFolder(dataset_dir, transform=train_transform),
    batch_size=BATCH_SIZE,
    shuffle=True,
    num_workers=2,
    pin_memory=True,
    persistent_workers=True,
)


def measure_pytorch(loader: DataLoader) -> float:
    """Images per second over one epoch, batches copied to the GPU."""
    images = 0
    start = time.perf_counter()
    for batch, _ in loader:
        batch = batch.to("cuda", non_blocking=True)
        images += batch.shape[0]
    torch.cuda.synchronize()
    return images / (time.perf_counter() - start)


measure_pytorch(train_loader)  # warm-up, starts the workers
pytorch_throughput = measure_pytorch(train_loader)
print(f"PyTorch: {pytorch_throughput:.0f} images/s")

# ---------------------------------------------------------------- Step 2: DALI pipeline


class EncodedFiles:
    """Batches of JPEG files as they are on the disk, in a new order in every epoch."""

    def __init__(self, root: Path, batch_size: int) -> None:
        self.files = sorted(root.rglob("*.jpg"))
        self.batch_size = batch_size

    def __iter__(self):
        random.shuffle(self.files)
        self.position = 0
        return self

    def __next__(self):
        files = self.files[self.position : self.position + self.batch_size]
        if len(files) < self.batch_size:
            raise StopIteration
        self.position += self.batch_size
        jpegs = [np.fromfile(file, dtype=np.uint8) for file in files]
        labels = [np.array([file.parent.name == "dog"], dtype=np.int32) for file in files]
        return jpegs, labels


@pipeline_def(batch_size=BATCH_SIZE, num_threads=4, device_id=0)
def train_pipeline(source):
    jpegs, labels = fn.external_source(
        source=source, num_outputs=2, dtype=[types.UINT8, types.INT32], cycle="raise"
    )
    images = fn.decoders.image(jpegs, device="mixed", output_type=types.RGB)
    images = fn.random_resized_crop(images, size=(IMAGE_SIZE, IMAGE_SIZE))
    images = fn.crop_mirror_normalize(
        images,
        dtype=types.FLOAT,
        output_layout="CHW",
        mirror=fn.random.coin_flip(probability=0.5),
        mean=[m * 255 for m in MEAN],
        std=[s * 255 for s in STD],
    )
    return images, labels.gpu()


dali_iter = DALIGenericIterator(
    train_pipeline(EncodedFiles(dataset_dir, BATCH_SIZE)),
    ["data", "label"],
    auto_reset=True,
)
first_batch = next(dali_iter)[0]["data"]
print("first batch:", tuple(first_batch.shape), first_batch.device)

# ---------------------------------------------------------------- Step 3: benchmark


def measure_dali(iterator) -> float:
    """The same for DALI, whose batches are on the GPU already."""
    images = 0
    start = time.perf_counter()
    for batch in iterator:
        images += batch[0]["data"].shape[0]
    torch.cuda.synchronize()
    return images / (time.perf_counter() - start)


measure_dali(dali_iter)  # warm-up
dali_throughput = measure_dali(dali_iter)
print(f"DALI: {dali_throughput:.0f} images/s")

# ---------------------------------------------------------------- Step 4: reflection

where_dali_wins = [
    "Chest X-rays stored as 10 megapixel JPEGs: on our workstation with six cores the decode takes longer than the forward pass of EfficientNet.",
    "Endoscopy videos, where hundreds of compressed frames per clip must be decoded and resized before sampling.",
    "Histology tiles with rotation, elastic deformation and colour augmentation, which keep all CPU workers busy while the GPU idles.",
]
where_dali_loses = [
    "Predicting readmission from tabular patient records: a few numeric columns in a parquet file that fits in RAM.",
    "Clinical notes that were tokenised beforehand; the language model is compute bound and the loader delivers small integer arrays.",
]
