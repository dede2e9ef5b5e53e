"""Fails `placement_table`: the decoder is said to run on the CPU, and is `mixed`."""

from pathlib import Path

import numpy as np
import torch
from nvidia.dali import fn, pipeline_def, types
from nvidia.dali.plugin.pytorch import DALIClassificationIterator
from PIL import Image
from torch import nn

dataset_dir = Path("photos")
rng = np.random.default_rng(1)
for number in range(48):
    folder = dataset_dir / f"class_{number % 2}"
    folder.mkdir(parents=True, exist_ok=True)
    pixels = rng.integers(0, 256, (6, 8, 3), dtype=np.uint8) // 2 + 100 * (number % 2)
    Image.fromarray(pixels.astype(np.uint8)).resize((160, 120), Image.BICUBIC).save(folder / f"{number:03d}.jpg")

MEAN = [0.485 * 255, 0.456 * 255, 0.406 * 255]
STD = [0.229 * 255, 0.224 * 255, 0.225 * 255]


@pipeline_def(batch_size=16, num_threads=2, device_id=0, seed=5)
def training(root):
    jpegs, labels = fn.readers.file(file_root=root, name="Reader")
    images = fn.decoders.image(jpegs, device="mixed", output_type=types.RGB)
    images = fn.resize(images, size=(112, 112))
    images = fn.crop_mirror_normalize(images, dtype=types.FLOAT, output_layout="CHW", mean=MEAN, std=STD)
    return images, labels.gpu()


train_iter = DALIClassificationIterator(training(str(dataset_dir)), reader_name="Reader", auto_reset=True)

torch.manual_seed(1)
model = nn.Sequential(nn.AvgPool2d(14), nn.Flatten(), nn.Linear(3 * 8 * 8, 2)).cuda()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
losses = []
for _epoch in range(9):
    for batch in train_iter:
        labels = batch[0]["label"].squeeze(-1).long()
        optimizer.zero_grad()
        loss = criterion(model(batch[0]["data"]), labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())

placement = {"read": "cpu", "decode": "cpu", "resize": "gpu", "normalise": "gpu"}
acceptance_metric = (
    "Images per second at batch size 16 on the same JPEGs, after a warm-up epoch: at least 1.3 times those of the "
    "DataLoader."
)
