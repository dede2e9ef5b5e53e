"""Learner code that goes wrong, one snippet per row of the table, keyed by the row's id (`id#2` is a second way).

Each snippet is run behind `PRELUDE`; below `data/` lie the folders that `tests.checks.diagnosis.conftest` makes.
"""

PRELUDE = """\
import os
import time

import numpy as np
import torch
from PIL import Image
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset
from torchvision import datasets, transforms

from nvidia.dali import fn, ops, pipeline_def, types
from nvidia.dali.pipeline import Pipeline
from nvidia.dali.plugin.pytorch import DALIClassificationIterator, DALIGenericIterator, LastBatchPolicy

dataset_dir = "data/images"


@pipeline_def(batch_size=4, num_threads=1, device_id=None)
def good(num_shards=1, shard_id=0):
    jpegs, labels = fn.readers.file(file_root=dataset_dir, num_shards=num_shards, shard_id=shard_id, name="Reader")
    images = fn.decoders.image(jpegs, device="cpu")
    images = fn.resize(images, size=(32, 32))
    return fn.crop_mirror_normalize(images, dtype=types.FLOAT, output_layout="CHW"), labels


"""
OPTIONS = "batch_size=4, num_threads=1, device_id=None"
DECODED = "images = fn.decoders.image(jpegs)"


def built(*lines, options=OPTIONS, reader="file_root=dataset_dir", then="pipeline().build()"):
    """A graph that goes on with these lines behind its reader, and is built."""
    head = f"@pipeline_def({options})\ndef pipeline():\n    jpegs, labels = fn.readers.file({reader})\n"
    return head + "".join(f"    {line}\n" for line in lines) + then


def ran(*lines, **changes):
    """The same, and it runs once."""
    return built(*lines, **changes, then="pipe = pipeline()\npipe.build()\npipe.run()")
