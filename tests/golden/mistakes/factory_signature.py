#!/usr/bin/env python3
# DALI lab submission. Structure: config -> data -> loaders -> benchmark -> notes.
import dataclasses
import logging
import pathlib
import statistics
import time

import numpy as np
import torch
import torch.utils.data as data
import torchvision.transforms.v2 as v2
from PIL import Image

from nvidia.dali import fn, pipeline_def, types
from nvidia.dali.plugin.pytorch import DALIGenericIterator

logging.basicConfig(level=logging.INFO, format="%(levelname)s %(message)s")
log = logging.getLogger("lab")


@dataclasses.dataclass(frozen=True)
class Config:
    root: pathlib.Path = pathlib.Path("lab_data/jpegs")
    images: int = 192
    width: int = 320
    height: int = 240
    crop: int = 224
    batch_size: int = 24
    workers: int = 2
    epochs: int = 2


CFG = Config()
MEAN = torch.tensor([0.485, 0.456, 0.406])
STD = torch.tensor([0.229, 0.224, 0.225])


def write_images(cfg: Config) -> None:
    gen = np.random.default_rng(2024)
    for n in range(cfg.images):
        target = cfg.root / ("even" if n % 2 == 0 else "odd")
        target.mkdir(parents=True, exist_ok=True)
        noise = gen.integers(0, 256, (cfg.height // 8, cfg.width // 8, 3), dtype=np.uint8)
        picture = Image.fromarray(noise).resize((cfg.width, cfg.height), Image.Resampling.BICUBIC)
        picture.save(target / f"{n:05d}.jpg", quality=92)


write_images(CFG)
dataset_dir = str(CFG.root)
log.info("%d images below %s", CFG.images, dataset_dir)



class JpegFolder(data.Dataset):
    """Files below a folder, the class is the name of their folder."""

    def __init__(self, root: str, transform) -> None:
        self.files = sorted(pathlib.Path(root).rglob("*.jpg"))
        self.classes = sorted({file.parent.name for file in self.files})
        self.transform = transform

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int):
        file = self.files[index]
        with Image.open(file) as image:
            return self.transform(image.convert("RGB")), self.classes.index(file.parent.name)


def build_pytorch_loader(dataset_dir: str, batch_size: int) -> data.DataLoader:
    transform = v2.Compose(
        [
            v2.RandomResizedCrop(CFG.crop, antialias=True),
            v2.RandomHorizontalFlip(),
            v2.ToImage(),
            v2.ToDtype(torch.float32, scale=True),
            v2.Normalize(MEAN.tolist(), STD.tolist()),
        ]
    )
    return data.DataLoader(
        JpegFolder(dataset_dir, transform),
        batch_size=batch_size,
        shuffle=True,
        num_workers=CFG.workers,
        pin_memory=True,
        persistent_workers=True,
    )


def rates(batches, images_of, epochs: int) -> list[float]:
    found = []
    for _ in range(epochs + 1):
        count, start = 0, time.perf_counter()
        for batch in batches:
            count += images_of(batch).shape[0]
        torch.cuda.synchronize()
        found.append(count / (time.perf_counter() - start))
    return found[1:]  # the first epoch is the warm-up


baseline = build_pytorch_loader(dataset_dir, CFG.batch_size)
pytorch_throughput = statistics.median(rates(baseline, lambda b: b[0].cuda(non_blocking=True), CFG.epochs))
log.info("pytorch: %.1f images/s", pytorch_throughput)



class FileSource:
    """One encoded file and its class for each sample that DALI asks for."""

    def __init__(self, root: str, batch_size: int) -> None:
        self.files = sorted(pathlib.Path(root).rglob("*.jpg"))
        self.full_batches = len(self.files) // batch_size

    def __call__(self, info):
        if info.iteration >= self.full_batches:
            raise StopIteration
        file = self.files[info.idx_in_epoch]
        return np.fromfile(file, dtype=np.uint8), np.array([file.parent.name == "odd"], dtype=np.int32)


@pipeline_def(num_threads=CFG.workers, device_id=0)
def training(source):
    encoded, target = fn.external_source(
        source=source, num_outputs=2, batch=False, dtype=[types.UINT8, types.INT32]
    )
    image = fn.decoders.image(encoded, device="mixed", output_type=types.RGB)
    image = fn.random_resized_crop(image, size=(CFG.crop, CFG.crop))
    image = fn.crop_mirror_normalize(
        image,
        mirror=fn.random.coin_flip(probability=0.5),
        mean=(MEAN * 255).tolist(),
        std=(STD * 255).tolist(),
        dtype=types.FLOAT,
        output_layout="CHW",
    )
    return image, target.gpu()


def build_dali_iterator(batch_size: int) -> DALIGenericIterator:
    source = FileSource(dataset_dir, batch_size)
    return DALIGenericIterator(training(source, batch_size=batch_size), ["image", "target"], auto_reset=True)


train_iter = build_dali_iterator(CFG.batch_size)
first_batch = next(train_iter)[0]["image"]
log.info("first batch %s on %s", list(first_batch.shape), first_batch.device)

dali_throughput = statistics.median(rates(train_iter, lambda b: b[0]["image"], CFG.epochs))
log.info("dali: %.1f images/s", dali_throughput)


where_dali_wins = [
    "Pose estimation from broadcast video: decoding 1080p H.264 on 8 cores limits us to 200 frames/s, the GPU could process 900.",
    "Ball detection on 4K frames saved as JPEG, since nvJPEG decodes them and the resize to 640 px happens on the card.",
    "Two GPUs in a desktop with a 6-core CPU: the DataLoader workers are at 100% and both cards wait.",
]
where_dali_loses = [
    "Match prediction from player statistics in a CSV, because these are numbers and no compressed images.",
    "Training on keypoints that were extracted earlier: each sample is 17 x 2 floats, loading them is trivial.",
]
