# -*- coding: utf-8 -*-
# Abgabe DALI-Labor, Gruppe 4
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
train_loader = DataLoader(datasets.ImageFolder(dataset_dir, transformation), batch_size=BATCH, shuffle=True,
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


pytorch_throughput = messen(train_loader, lambda b: b[0].cuda(non_blocking=True).shape[0])
print("PyTorch:", round(pytorch_throughput), "Bilder/s")



# Schritt 2: DALI
@pipeline_def(batch_size=BATCH, num_threads=2, device_id=0)
def leitung():
    jpegs, klassen = fn.readers.file(file_root=dataset_dir, random_shuffle=True, name="Leser")
    bilder = fn.decoders.image(jpegs, device="mixed", output_type=types.RGB)
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


dali_iter = DALIGenericIterator(leitung(), ["data", "label"], reader_name="Leser", auto_reset=True)
first_batch = next(dali_iter)[0]["data"]


# Schritt 3: Vergleich
dali_throughput = messen(dali_iter, lambda b: b[0]["data"].shape[0])
print("DALI:", round(dali_throughput), "Bilder/s")


# Schritt 4: Wann lohnt es sich?
where_dali_wins = [
    "Chest X-rays stored as 10 megapixel JPEGs: on our workstation with six cores the decode takes longer than the forward pass of EfficientNet.",
    "Endoscopy videos, where hundreds of compressed frames per clip must be decoded and resized before sampling.",
    "Histology tiles with rotation, elastic deformation and colour augmentation, which keep all CPU workers busy while the GPU idles.",
]
where_dali_loses = [
    "Predicting readmission from tabular patient records: a few numeric columns in a parquet file that fits in RAM.",
    "Clinical notes that were tokenised beforehand; the language model is compute bound and the loader delivers small integer arrays.",
]
