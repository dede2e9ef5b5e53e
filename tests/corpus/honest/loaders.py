"""Baselines in PyTorch as people write them: K43 to K45."""

from textwrap import indent

from tests.corpus.parts import DATASET, GRAPH, REFLECTIONS, joined
from tests.corpus.parts_honest import MEASURED, ROOM, SEEN, honest

READ_IMAGE = """
import os, time
import torch
import torchvision.transforms.v2 as v2
from torch.utils.data import DataLoader, Dataset
from torchvision.io import ImageReadMode, read_image


class JpegFolder(Dataset):
    def __init__(self, root, train=True):
        self.samples = [(os.path.join(d, f), hash(d) % 2) for d, _, fs in sorted(os.walk(root)) for f in sorted(fs)]
        self.transforms = v2.Compose([
            v2.RandomResizedCrop((96, 96), antialias=True), v2.RandomHorizontalFlip(),
            v2.ToDtype(torch.float32, scale=True), v2.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]),
        ])

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, i):
        path, target = self.samples[i]
        return self.transforms(read_image(path, mode=ImageReadMode.RGB)), target


baseline = DataLoader(JpegFolder(dataset_dir), batch_size=16, shuffle=True, num_workers=2, persistent_workers=True)
for _ in baseline:
    pass
t0 = time.perf_counter()
n = sum(len(x) for x, _ in baseline)
pytorch_throughput = n / (time.perf_counter() - t0)
"""

OTHERS = """
import glob, time
import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

try:
    import cv2
except ImportError:
    cv2 = None
try:
    from turbojpeg import TurboJPEG
    turbo = TurboJPEG()
except (ImportError, RuntimeError):
    turbo = None
try:
    import albumentations as A
    augment = A.Compose([A.RandomCrop(96, 96), A.HorizontalFlip(p=0.5)])
except ImportError:
    augment = None
try:
    import accimage  # noqa: F401
    import torchvision
    torchvision.set_image_backend("accimage")
except ImportError:
    pass
from PIL import Image


def decode(path):
    if turbo is not None:
        with open(path, "rb") as f:
            return turbo.decode(f.read())[..., ::-1]
    if cv2 is not None:
        return cv2.cvtColor(cv2.imread(path, cv2.IMREAD_COLOR), cv2.COLOR_BGR2RGB)
    return np.asarray(Image.open(path).convert("RGB"))


class Files(Dataset):
    def __init__(self, root):
        self.files = np.array(sorted(glob.glob(root + "/*/*.jpg")))

    def __len__(self):
        return len(self.files)

    def __getitem__(self, i):
        image = decode(self.files[i])
        if augment is not None:
            image = augment(image=image)["image"]
        else:
            y, x = np.random.randint(image.shape[0] - 95), np.random.randint(image.shape[1] - 95)
            image = image[y : y + 96, x : x + 96]
        return {"image": torch.from_numpy(image.copy()).permute(2, 0, 1).float().div_(255), "path": str(self.files[i])}


loader = DataLoader(Files(dataset_dir), batch_size=20, num_workers=1)
start = time.time()
seen = 0
for batch in loader:
    seen += batch["image"].cuda().shape[0]
pytorch_throughput = seen / (time.time() - start)
"""

ON_GPU = """
import time
import torch
from torch.utils.data import DataLoader
from torchvision import transforms as T
from torchvision.datasets import ImageFolder

to_tensor = T.Compose([T.Resize((96, 96)), T.PILToTensor()])


def collate(samples):
    images, labels = zip(*samples)
    return torch.stack(images).cuda().float() / 255, torch.tensor(labels, device="cuda")


gpu_loader = DataLoader(ImageFolder(dataset_dir, to_tensor), batch_size=16, collate_fn=collate)
x, y = next(iter(gpu_loader))
assert x.is_cuda and y.device.type == "cuda"
t = time.time()
pytorch_throughput = sum(b.shape[0] for b, _ in gpu_loader) / (time.time() - t)
"""

PREFETCHER = """
import time
import torch
from torch.utils.data import DataLoader
from torchvision import transforms as T
from torchvision.datasets import ImageFolder


def fast_collate(batch):
    images = torch.stack([T.functional.pil_to_tensor(b[0]) for b in batch])
    return images, torch.tensor([b[1] for b in batch], dtype=torch.int64)


class PrefetchedWrapper:
    def __init__(self, loader):
        self.dataloader = loader
        self.mean = torch.tensor([0.485 * 255, 0.456 * 255, 0.406 * 255]).cuda().view(1, 3, 1, 1)
        self.std = torch.tensor([0.229 * 255, 0.224 * 255, 0.225 * 255]).cuda().view(1, 3, 1, 1)

    def __len__(self):
        return len(self.dataloader)

    def __iter__(self):
        stream = torch.cuda.Stream()
        first = True
        for next_input, next_target in self.dataloader:
            with torch.cuda.stream(stream):
                next_input = next_input.cuda(non_blocking=True).float().sub_(self.mean).div_(self.std)
                next_target = next_target.cuda(non_blocking=True)
            if not first:
                yield images, target
            else:
                first = False
            torch.cuda.current_stream().wait_stream(stream)
            images, target = next_input, next_target
            images.record_stream(torch.cuda.current_stream())
        yield images, target


train_set = ImageFolder(dataset_dir, T.Compose([T.RandomResizedCrop(96), T.RandomHorizontalFlip()]))
train_loader = PrefetchedWrapper(DataLoader(train_set, batch_size=16, shuffle=True, num_workers=2, pin_memory=True,
                                            collate_fn=fast_collate, persistent_workers=True, prefetch_factor=4))
torch.cuda.synchronize()
t0 = time.perf_counter()
n = 0
for images, _ in train_loader:
    assert images.is_cuda
    n += images.size(0)
torch.cuda.synchronize()
pytorch_throughput = n / (time.perf_counter() - t0)
"""

WORKERS = """
import time
import torch
from torch.utils.data import DataLoader, RandomSampler
from torchvision import transforms as T
from torchvision.datasets import ImageFolder

dataset = ImageFolder(dataset_dir, T.Compose([T.Resize((96, 96)), T.ToTensor()]))
rates = {}
for workers in (0, 1, 4, 16):
    loader = DataLoader(dataset, batch_size=16, num_workers=workers, sampler=RandomSampler(dataset),
                        pin_memory=workers > 0, worker_init_fn=lambda i: torch.manual_seed(i))
    t = time.perf_counter()
    rates[workers] = sum(x.shape[0] for x, _ in loader) / (time.perf_counter() - t)
    print(workers, "workers:", rates[workers])
pytorch_throughput = max(rates.values())
"""

SUBSET = """
import time
import torch
from torch.utils.data import ConcatDataset, DataLoader, random_split
from torchvision import transforms as T
from torchvision.datasets import ImageFolder

full = ImageFolder(root=dataset_dir, transform=T.Compose([T.CenterCrop(96), T.ToTensor()]))
train_part, val_part = random_split(full, [0.9, 0.1], generator=torch.Generator().manual_seed(42))
val_loader = DataLoader(val_part, batch_size=16)
train_loader = DataLoader(ConcatDataset([train_part, train_part]), batch_size=16, shuffle=True, drop_last=True)
tick = time.monotonic()
pytorch_throughput = sum(map(lambda b: b[0].shape[0], train_loader)) / (time.monotonic() - tick)
"""

STREAMED = """
import glob, time
import torch
from torch.utils.data import DataLoader, IterableDataset, get_worker_info
from torchvision import transforms as T
from PIL import Image


class Stream(IterableDataset):
    transform = T.Compose([T.Resize((96, 96)), T.ToTensor()])

    def __iter__(self):
        info = get_worker_info()
        files = sorted(glob.glob(f"{dataset_dir}/**/*.jpg", recursive=True))
        for path in files[info.id :: info.num_workers] if info else files:
            yield self.transform(Image.open(path).convert("RGB")), 0


loader = DataLoader(Stream(), batch_size=16, num_workers=2)
t = time.perf_counter()
pytorch_throughput = sum(len(x) for x, _ in loader) / (time.perf_counter() - t)
"""

FACTORY = """
def build_pytorch_loader(dataset_dir, batch_size):
    import torch
    from torchvision import transforms as T
    from torchvision.datasets import ImageFolder

    return torch.utils.data.DataLoader(ImageFolder(dataset_dir, T.Compose([T.Resize((96, 96)), T.ToTensor()])),
                                       batch_size=batch_size)


def measure():
    import time

    t = time.perf_counter()
    return sum(len(x) for x, _ in build_pytorch_loader(dataset_dir, 16)) / (time.perf_counter() - t)


pytorch_throughput = measure()
"""

GUARDED = """
import multiprocessing as mp
import os
import time

import numpy as np
from PIL import Image

dataset_dir = "dataset"


def write_images():
    for i in range(100):
        os.makedirs(f"dataset/{i % 2}", exist_ok=True)
        noise = np.random.default_rng(i).integers(0, 256, (120, 160, 3), dtype=np.uint8)
        Image.fromarray(noise).save(f"dataset/{i % 2}/{i}.jpg")


class Photos:
    def __init__(self, root):
        self.files = [os.path.join(d, f) for d, _, names in os.walk(root) for f in names]

    def __len__(self):
        return len(self.files)

    def __getitem__(self, i):
        with Image.open(self.files[i]) as image:
            return np.asarray(image.resize((96, 96)), dtype=np.float32).transpose(2, 0, 1) / 255.0


if __name__ == "__main__":
    import torch
    from torch.utils.data import DataLoader

    mp.set_start_method("METHOD", force=True)
    write_images()
    loader = DataLoader(Photos(dataset_dir), batch_size=16, num_workers=2, persistent_workers=True)
    t0 = time.perf_counter()
    done = sum(len(x) for x in loader)
    pytorch_throughput = done / (time.perf_counter() - t0)
"""

CASES = (
    honest(
        "K43-read-image",
        "a Dataset of its own with torchvision.io.read_image and v2 transforms",
        joined(ROOM, READ_IMAGE, GRAPH, SEEN),
    ),
    honest(
        "K43-other-decoders",
        "turbojpeg, cv2, accimage and albumentations where they are installed, numpy and Pillow elsewhere",
        joined(ROOM, OTHERS, GRAPH),
        steps=MEASURED,
    ),
    honest("K43-subset", "random_split and ConcatDataset over an ImageFolder", DATASET, SUBSET, GRAPH, steps=MEASURED),
    honest(
        "K43-stream",
        "an IterableDataset that shares the files among its workers",
        joined(DATASET, STREAMED, GRAPH),
        steps=MEASURED,
    ),
    honest(
        "K43-factory", "only build_pytorch_loader, no loader in a variable", DATASET, FACTORY, GRAPH, steps=MEASURED
    ),
    honest("K44-cuda-tensors", "collate_fn that returns CUDA tensors", DATASET, ON_GPU, GRAPH, steps=MEASURED),
    honest(
        "K44-prefetcher",
        "a prefetcher with a CUDA stream around the DataLoader, as in DALI's own example",
        joined(ROOM, PREFETCHER, GRAPH, REFLECTIONS),
    ),
    honest(
        "K44-up-to-16-workers",
        "a sweep from 0 to 16 workers; the best one is reported",
        joined(DATASET, WORKERS, GRAPH),
        steps=MEASURED,
    ),
    *(
        honest(
            f"K45-{method}",
            f"workers started by {method} behind a main guard",
            GUARDED.replace("METHOD", method) + indent(GRAPH, "    "),
            steps=MEASURED,
        )
        for method in ("spawn", "forkserver")
    ),
)
