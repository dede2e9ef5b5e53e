"""What `first_batch` may be, and how numbers and names may be given: K39, K41, K42, K46 to K48."""

from tests.corpus.parts import DATASET, GRAPH, LOADER, REFLECTIONS, joined, zipped
from tests.corpus.parts_honest import (
    CROPPED,
    IN_ROOM,
    MEASURED,
    ON_GRADIENTS,
    REFLECTED,
    ROOM,
    SEEN,
    TIMED,
    honest,
)

ITER = """
import torch
dali_iter = DALIGenericIterator([train_pipe()], ["data", "label"], reader_name="Reader", auto_reset=True)
dali_throughput = 800.0
"""

FORMS = {
    "list-of-dicts": ("as the iterator gives it", "first_batch = next(dali_iter)"),
    "dict": ("a dict", "first_batch = next(iter(dali_iter))[0]"),
    "pair": (
        "a pair of images and labels",
        "out = next(dali_iter)[0]\nfirst_batch = (out['data'], out['label'].squeeze().long())",
    ),
    "namedtuple": (
        "a namedtuple",
        """
from collections import namedtuple

Batch = namedtuple("Batch", "images targets")
for out in dali_iter:
    first_batch = Batch(out[0]["data"], out[0]["label"])
    break
""",
    ),
    "capsule": (
        "a DLPack capsule",
        "from torch.utils.dlpack import to_dlpack\nfirst_batch = to_dlpack(next(dali_iter)[0]['data'])",
    ),
    "cupy": (
        "an array of cupy, or of numpy where cupy is not installed",
        """
try:
    import cupy as xp
    as_array = xp.from_dlpack
except ImportError:
    as_array = lambda tensor: tensor.cpu().numpy()
first_batch = as_array(next(dali_iter)[0]["data"])
""",
    ),
    "data-class": (
        "a dataclass that has the tensor in a field",
        """
import dataclasses


@dataclasses.dataclass
class Batch:
    image: torch.Tensor
    label: torch.Tensor


first_batch = Batch(next(dali_iter)[0]["data"], None)
""",
    ),
}

LISTS = """
import torch
from torch.utils.dlpack import from_dlpack

pipe = train_pipe(batch_size=24)
first_batch, labels = pipe.run()  # a TensorListGPU
dense = first_batch.as_tensor()
print(dense.shape(), dense.dtype, first_batch.layout())
tensor = from_dlpack(dense)
assert tensor.shape == (24, 3, 96, 96)
assert tensor.device.type == "cuda", tensor.device
dali_throughput = 100
"""

STRIDES = """
dali_loader = DALIClassificationIterator(train_pipe(), reader_name="Reader", auto_reset=True)
first_batch = next(dali_loader)[0]["data"].contiguous(memory_format=torch.channels_last)
assert not first_batch.is_contiguous() and first_batch.is_contiguous(memory_format=torch.channels_last)
turned = first_batch.flip(3).transpose(2, 3)
assert first_batch.is_cuda and turned.is_cuda
"""

SLICED = """
dali_loader = DALIClassificationIterator(train_pipe(batch_size=32), reader_name="Reader", auto_reset=True)
first_batch = next(dali_loader)[0]["data"][::2]
"""

MAIN = """
import argparse
import sys

from nvidia.dali.plugin.pytorch import DALIGenericIterator


def parse():
    p = argparse.ArgumentParser()
    p.add_argument("--batch-size", type=int, default=16)
    p.add_argument("--workers", type=int, default=2)
    return p.parse_args()


def main():
    global dataset_dir, loader, pytorch_throughput, dali_iter, first_batch, dali_throughput
    global where_dali_wins, where_dali_loses
    args = parse()
    dataset_dir = data.write("jpegs", 110)
    loader = data.torch_loader(dataset_dir, args.batch_size, args.workers)
    pytorch_throughput = timing.rate(loader, lambda b: b[0].cuda(), rounds=1)
    dali_iter = pipelines.iterator(dataset_dir, args.batch_size)
    first_batch = next(dali_iter)[0]["data"]
    dali_throughput = timing.rate(dali_iter, lambda b: b[0]["data"], rounds=2)
    where_dali_wins, where_dali_loses = notes.WINS, notes.LOSES
    return 0


if __name__ == "__main__":
    from lab import data, notes, pipelines, timing

    sys.exit(main())
"""

PROJECT = {
    "submission.py": MAIN,
    "README.md": "# DALI lab\nRun `python submission.py`.\n",
    "lab/__init__.py": "",
    "lab/data.py": """
import os
import numpy as np
import torch
from PIL import Image
from torchvision import datasets, transforms


def write(folder, count):
    rng = np.random.default_rng(77)
    for i in range(count):
        os.makedirs(f"{folder}/{i % 2}", exist_ok=True)
        Image.fromarray(rng.integers(0, 256, (18, 24, 3), dtype=np.uint8)).resize((192, 144)).save(
            f"{folder}/{i % 2}/{i}.jpg")
    return os.path.abspath(folder)


def torch_loader(folder, batch_size, workers):
    steps = transforms.Compose([transforms.Resize((96, 96)), transforms.ToTensor()])
    return torch.utils.data.DataLoader(datasets.ImageFolder(folder, steps), batch_size, True, num_workers=workers)
""",
    "lab/pipelines.py": """
from nvidia.dali import fn, pipeline_def
from nvidia.dali.plugin.pytorch import DALIGenericIterator


@pipeline_def(num_threads=2, device_id=0)
def decode(folder):
    jpegs, labels = fn.readers.file(file_root=folder, name="Reader", random_shuffle=True)
    images = fn.resize(fn.decoders.image(jpegs, device="mixed"), size=(96, 96))
    return fn.crop_mirror_normalize(images, std=[255.0] * 3, output_layout="CHW"), labels


def iterator(folder, batch_size):
    return DALIGenericIterator(decode(folder, batch_size=batch_size), ["data", "label"], reader_name="Reader",
                               auto_reset=True)
""",
    "lab/timing.py": """
import time
import torch


def rate(loader, images_of, rounds):
    count, start = 0, time.perf_counter()
    for _ in range(rounds):
        for batch in loader:
            count += images_of(batch).size(0)
    torch.cuda.synchronize()
    return count / (time.perf_counter() - start)
""",
    "lab/notes.py": REFLECTED.replace("where_dali_wins", "WINS").replace("where_dali_loses", "LOSES"),
}

LAZY = """
class Results:
    \"\"\"Computed when they are asked for.\"\"\"

    @property
    def torch_rate(self):
        return bench_torch(train_loader)


results = Results()
dali_loader = DALIClassificationIterator(train_pipe(), reader_name="Reader", auto_reset=True)
globals().update(first_batch=next(dali_loader)[0]["data"])
exec("pytorch_throughput = results.torch_rate")
dali_throughput = (lambda n=3: sum(len(next(dali_loader)[0]["data"]) for _ in range(n)) / 0.01)()
"""

NUMBERS = {
    "integer": "pytorch_throughput, dali_throughput = 412, 1890",
    "numpy": "pytorch_throughput, dali_throughput = np.float32(412.5), np.mean([1800.0, 1900.0])",
    "tensor": "pytorch_throughput, dali_throughput = torch.tensor(412.5, device='cuda'), torch.tensor([1890.0])",
    "rounded": "pytorch_throughput, dali_throughput = round(412.512, 1), round(1890.9)",
    "decimal": "from decimal import Decimal\nfrom fractions import Fraction\n"
    "pytorch_throughput, dali_throughput = Decimal('412.5'), Fraction(3781, 2)",
}

HISTORY = """
import json, statistics

dali_loader = DALIClassificationIterator(train_pipe(), reader_name="Reader", auto_reset=True)
first_batch = next(dali_loader)[0]["data"]
history = {"pytorch": [], "dali": []}
for epoch in range(3):
    history["pytorch"].append(bench_torch(train_loader))
    n, t = 0, time.perf_counter()
    for batch in dali_loader:
        n += batch[0]["data"].shape[0]
    torch.cuda.synchronize()
    history["dali"].append({"epoch": epoch, "images": n, "img_per_s": n / (time.perf_counter() - t)})
"""

BEST = """
pytorch_throughput = statistics.median(history["pytorch"])
dali_throughput = max(h["img_per_s"] for h in history["dali"])  # best of three
"""

DICT = """
results = {"history": history, "pytorch_throughput": history["pytorch"][-1],
           "dali_throughput": history["dali"][-1]["img_per_s"], "device": torch.cuda.get_device_name(0)}
json.dump(results, open("results.json", "w"))
locals().update({k: v for k, v in results.items() if k.endswith("_throughput")})
"""

CASES = (
    *(
        honest(
            f"K39-{name}",
            f"first_batch is {title}" if title[0] == "a" else title,
            joined(ROOM, CROPPED, ITER, code),
            steps=("pipeline",),
        )
        for name, (title, code) in FORMS.items()
    ),
    honest(
        "K39-tensor-list",
        "first_batch is DALI's TensorListGPU, looked at through DLPack",
        joined(ROOM, CROPPED, LISTS),
        steps=("pipeline",),
    ),
    honest("K41-channels-last", "channels_last strides", ON_GRADIENTS, STRIDES, TIMED, SEEN),
    honest("K41-every-second", "a strided view of the batch", ROOM, CROPPED, SLICED, steps=("pipeline",)),
    honest(
        "K42-project",
        "a package of modules, argparse, main() that sets globals, sys.exit(0)",
        zipped(PROJECT),
        filename="dali-lab.zip",
    ),
    honest("K42-lazy", "names set by globals().update and exec at the end", IN_ROOM, LAZY, steps=MEASURED),
    *(
        honest(
            f"K46-{name}",
            f"throughputs as {name}" if name != "rounded" else "throughputs rounded",
            joined(DATASET, LOADER, numbers),
            steps=("baseline",),
        )
        for name, numbers in NUMBERS.items()
    ),
    honest("K47-best-of-three", "the median of one and the best of the other", IN_ROOM, HISTORY, BEST, steps=MEASURED),
    honest(
        "K48-results-in-a-dict",
        "a dict with the history of every epoch beside the figures",
        joined(ON_GRADIENTS, HISTORY, DICT, REFLECTIONS),
    ),
    honest(
        "K48-pipeline-in-a-dict",
        "loaders and iterators kept in dicts",
        DATASET,
        LOADER.replace("loader = ", "loaders = {'baseline': ").replace("num_workers=0)", "num_workers=0)}"),
        GRAPH.replace("dali_iter = ", "iterators = {}\niterators['train'] = ").replace(
            "next(iter(dali_iter))", "next(iter(iterators['train']))"
        ),
        steps=MEASURED,
    ),
)
