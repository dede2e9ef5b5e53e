"""The smallest submission that passes a step: JPEGs and a loader. `make up` posts it, to see a verdict come out."""

from pathlib import Path

import numpy as np
from PIL import Image
from torch.utils.data import DataLoader
from torchvision.datasets import ImageFolder
from torchvision.transforms import ToTensor

dataset_dir = Path("dataset")
(dataset_dir / "noise").mkdir(parents=True)
for number in range(100):
    pixels = np.random.default_rng(number).integers(0, 256, (48, 64, 3), np.uint8)
    Image.fromarray(pixels).save(dataset_dir / "noise" / f"{number}.jpg")

loader = DataLoader(ImageFolder(str(dataset_dir), ToTensor()), batch_size=16)
pytorch_throughput = 1.0  # images/s; recorded, and used for nothing
