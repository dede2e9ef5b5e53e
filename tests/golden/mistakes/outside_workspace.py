"""DALI lab: compare a torchvision DataLoader with a DALI pipeline."""

import time
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch.utils.data import DataLoader
from torchvision import datasets, transforms

from nvidia.dali import fn, pipeline_def, types
from nvidia.dali.plugin.pytorch import DALIGenericIterator, LastBatchPolicy

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


# /var/tmp has more room than the home folder
dataset_dir = make_dataset(Path("/var/tmp/lab_photos"))

# ---------------------------------------------------------------- Step 1: baseline

train_transform = transforms.Compose(
    [
        transforms.RandomResizedCrop(IMAGE_SIZE),
        transforms.RandomHorizontalFlip(),
        transforms.ToTensor(),
        transforms.Normalize(MEAN, STD),
    ]
)
loader = DataLoader(
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


measure_pytorch(loader)  # warm-up, starts the workers
pytorch_throughput = measure_pytorch(loader)
print(f"PyTorch: {pytorch_throughput:.0f} images/s")

# ---------------------------------------------------------------- Step 2: DALI pipeline


@pipeline_def(batch_size=BATCH_SIZE, num_threads=4, device_id=0)
def train_pipeline(root: str):
    jpegs, labels = fn.readers.file(file_root=root, random_shuffle=True, name="Reader")
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
    train_pipeline(str(dataset_dir)),
    ["data", "label"],
    reader_name="Reader",
    last_batch_policy=LastBatchPolicy.PARTIAL,
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
    "Pose estimation from broadcast video: decoding 1080p H.264 on 8 cores limits us to 200 frames/s, the GPU could process 900.",
    "Ball detection on 4K frames saved as JPEG, since nvJPEG decodes them and the resize to 640 px happens on the card.",
    "Two GPUs in a desktop with a 6-core CPU: the DataLoader workers are at 100% and both cards wait.",
]
where_dali_loses = [
    "Match prediction from player statistics in a CSV, because these are numbers and no compressed images.",
    "Training on keypoints that were extracted earlier: each sample is 17 x 2 floats, loading them is trivial.",
]
