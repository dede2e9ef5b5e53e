# -*- coding: utf-8 -*-
# Abgabe zum DALI-Labor: Bilder erzeugen, DataLoader messen, DALI messen, Antworten.
import os
import time

import numpy as np
import torch
from PIL import Image
from torch.utils.data import DataLoader
from torchvision import datasets, transforms

from nvidia.dali import fn, pipeline_def, types
from nvidia.dali.plugin.pytorch import DALIGenericIterator

ANZAHL = 144
BATCH = 16
dataset_dir = "bilder"


def bilder_erzeugen(ordner):
    """Rauschbilder in zwei Klassen."""
    zufall = np.random.default_rng(7)
    for nummer in range(ANZAHL):
        klasse = "hund" if nummer % 2 else "katze"
        os.makedirs(os.path.join(ordner, klasse), exist_ok=True)
        grob = zufall.integers(0, 256, (20, 28, 3), dtype=np.uint8)
        bild = Image.fromarray(grob).resize((320, 240), Image.BICUBIC)
        bild.save(os.path.join(ordner, klasse, f"bild_{nummer}.jpg"), quality=90)


bilder_erzeugen(dataset_dir)


# Schritt 1: PyTorch
transformation = transforms.Compose([
    transforms.RandomResizedCrop(224),
    transforms.RandomHorizontalFlip(),
    transforms.ToTensor(),
    transforms.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]),
])
lader = DataLoader(datasets.ImageFolder(dataset_dir, transformation), batch_size=BATCH, shuffle=True,
                   num_workers=2, pin_memory=True, persistent_workers=True)


def messen(quelle, anzahl_von):
    """Bilder pro Sekunde; die erste Epoche ist zum Aufwärmen."""
    for durchgang in range(2):
        bilder = 0
        anfang = time.perf_counter()
        for batch in quelle:
            bilder += anzahl_von(batch)
        torch.cuda.synchronize()
        dauer = time.perf_counter() - anfang
    return bilder / dauer


pytorch_throughput = messen(lader, lambda b: b[0].cuda(non_blocking=True).shape[0])
print("PyTorch:", round(pytorch_throughput), "Bilder/s")



# Schritt 2: DALI
@pipeline_def(batch_size=BATCH, num_threads=2, device_id=0)
def pipeline():
    jpegs, klassen = fn.readers.file(file_root=dataset_dir, random_shuffle=True, name="Leser")
    bilder = fn.decoders.image(jpegs, device="cpu", output_type=types.RGB)
    bilder = fn.random_resized_crop(bilder, size=(224, 224))
    bilder = fn.crop_mirror_normalize(
        bilder,
        dtype=types.FLOAT,
        output_layout="CHW",
        mean=[0.485 * 255, 0.456 * 255, 0.406 * 255],
        std=[0.229 * 255, 0.224 * 255, 0.225 * 255],
        mirror=fn.random.coin_flip(),
    )
    return bilder, klassen


dali_iter = DALIGenericIterator(pipeline(), ["data", "label"], reader_name="Leser", auto_reset=True)
first_batch = next(dali_iter)[0]["data"]


# Schritt 3: Vergleich
dali_throughput = messen(dali_iter, lambda b: b[0]["data"].shape[0])
print("DALI:", round(dali_throughput), "Bilder/s")


# Schritt 4: Wann lohnt es sich?
where_dali_wins = [
    "Training ResNet-50 on ImageNet with 8 CPU cores and one A100: the workers cannot decode JPEGs as fast as the GPU trains, so nvJPEG removes the bottleneck.",
    "Four GPUs in one server that share 32 cores: every DataLoader fights for the same cores, while DALI lets each card decode its own images.",
    "Video action recognition from H.264 clips: NVDEC decodes the frames on the GPU and the CPU only has to hand over compressed packets.",
]
where_dali_loses = [
    "Fine-tuning BERT on text that is already tokenised: a batch is a few kilobytes of integers and there is nothing to decode.",
    "A very large ViT where the GPU is busy 98% of the time with an ordinary DataLoader: the model is the bottleneck, so faster input changes nothing.",
]
