"""Source text with which submissions of these tests begin: a small data set of JPEGs, and a DALI pipeline over it."""

START = """
import os
import numpy as np
import torch
from PIL import Image
from nvidia.dali import fn, pipeline_def, types
from nvidia.dali.plugin.pytorch import DALIClassificationIterator, DALIGenericIterator, LastBatchPolicy
from torch.utils.data import ConcatDataset, DataLoader, Dataset, Subset
from torchvision.datasets import ImageFolder
from torchvision import transforms

dataset_dir = os.path.abspath("dataset")


def make(folder, first, count, classes=("cats", "dogs")):
    for number in range(first, first + count):
        home = os.path.join(folder, classes[number % len(classes)])
        os.makedirs(home, exist_ok=True)
        pixels = np.random.default_rng(number).integers(0, 255, (8, 12, 3), dtype=np.uint8)
        Image.fromarray(pixels).resize((48, 32)).save(os.path.join(home, f"{number:03d}.jpg"))


make(dataset_dir, 0, 24)
transform = transforms.Compose([transforms.Resize((16, 16)), transforms.ToTensor()])
"""
READER = """
@pipeline_def(batch_size=8, num_threads=1, device_id=0)
def pipeline(reader):
    jpegs, labels = fn.readers.file(name="Reader", **reader)
    images = fn.resize(fn.decoders.image(jpegs, device="mixed"), size=(16, 16))
    return fn.crop_mirror_normalize(images, dtype=types.FLOAT), labels
"""
