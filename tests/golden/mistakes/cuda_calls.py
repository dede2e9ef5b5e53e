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


def torch_rate(loader: DataLoader) -> float:
    """Images per second over one epoch, batches copied to the GPU."""
    images = 0
    start = time.perf_counter()
    for batch, _ in loader:
        batch = batch.to("cuda", non_blocking=True)
        images += batch.shape[0]
    torch.cuda.synchronize()
    return images / (time.perf_counter() - start)


torch_rate(train_loader)  # warm-up, starts the workers
pytorch_throughput = torch_rate(train_loader)
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

# undo the normalisation once, to look at real pixel values
scale = torch.cuda.FloatTensor([s * 255 for s in STD]).view(1, 3, 1, 1)
shift = torch.cuda.FloatTensor([m * 255 for m in MEAN]).view(1, 3, 1, 1)
pixels = first_batch * scale + shift
print("pixels from", pixels.min().item(), "to", pixels.max().item())

# ---------------------------------------------------------------- Step 3: benchmark


def dali_rate(iterator) -> float:
    """The same for DALI, whose batches are on the GPU already."""
    images = 0
    start = time.perf_counter()
    for batch in iterator:
        images += batch[0]["data"].shape[0]
    torch.cuda.synchronize()
    return images / (time.perf_counter() - start)


dali_rate(dali_iter)  # warm-up
dali_throughput = dali_rate(dali_iter)
print(f"DALI: {dali_throughput:.0f} images/s")

# ---------------------------------------------------------------- Step 4: reflection

where_dali_wins = [
    "Galaxy classification from 424x424 JPEG cutouts, ten million of them, on a node with 6 cores per GPU: decoding is what the GPUs wait for.",
    "Meteor cameras that record H.264 all night; decoding the clips on the GPU leaves the CPU free for the tracker.",
    "Augmenting with rotations and crops of large sky photos, which is expensive in PIL and cheap on the GPU.",
]
where_dali_loses = [
    "Spectra stored as arrays of 4000 floats: no decoding, the DataLoader only copies memory.",
    "A simulation based model whose samples are generated on the GPU anyway, so there are no files to load at all.",
]
