"""DALI lab: compare a torchvision DataLoader with a DALI pipeline."""

import time
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch.utils.data import DataLoader
from torchvision import datasets, transforms

import nvidia.dali.experimental.dynamic as ndd

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

# ---------------------------------------------------------------- Step 2: DALI in dynamic mode

reader = ndd.readers.File(file_root=str(dataset_dir), random_shuffle=True)


def epoch(batch_size: int = BATCH_SIZE):
    for jpegs, labels in reader.next_epoch(batch_size=batch_size):
        images = ndd.decoders.image(jpegs, device="gpu")
        images = ndd.resize(images, size=(IMAGE_SIZE, IMAGE_SIZE))
        images = ndd.crop_mirror_normalize(
            images, mean=[m * 255 for m in MEAN], std=[s * 255 for s in STD], output_layout="CHW"
        )
        yield images.torch(), labels


first_batch, first_labels = next(epoch())
print("first batch:", tuple(first_batch.shape), first_batch.device)

# ---------------------------------------------------------------- Step 3: benchmark


def measure_dali() -> float:
    images = 0
    start = time.perf_counter()
    for batch, _ in epoch():
        images += batch.shape[0]
    torch.cuda.synchronize()
    return images / (time.perf_counter() - start)


measure_dali()  # warm-up
dali_throughput = measure_dali()
print(f"DALI: {dali_throughput:.0f} images/s")

# ---------------------------------------------------------------- Step 4: reflection

where_dali_wins = [
    "Self driving data: six cameras at 30 fps as JPEG, far more images per second than the host CPU can decode during training.",
    "Object detection on drone photos of 20 megapixels, because resize and crop on the GPU are much cheaper than in PIL.",
    "Multi-GPU training with DDP where each rank's DataLoader workers compete for the same 16 cores and the GPUs sit at 50% utilisation.",
]
where_dali_loses = [
    "Reinforcement learning from a simulator that hands over small state vectors: there are no files and no JPEGs to decode.",
    "Point clouds kept as float arrays in memory, since DALI has no decoding to accelerate there and the network dominates the step time.",
]
