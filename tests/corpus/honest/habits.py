"""Habits of people: debug branches, long imports, seeds, timers, patches: K53, K57 to K60."""

from tests.corpus.parts import DATASET, GRAPH, LOADER, joined, zipped
from tests.corpus.parts_honest import DALI_LAB, MEASURED, ON_GRADIENTS, REFLECTED, ROOM, SEEN, TORCH, honest

DEBUG = """
from nvidia.dali import fn, pipeline_def, types
from nvidia.dali.plugin.pytorch import DALIClassificationIterator

HAS_GPU = torch.cuda.is_available()
DEVICE = torch.device("cuda:0" if HAS_GPU else "cpu")
device_id = torch.cuda.current_device() if HAS_GPU else None  # my laptop has none
print("running on", torch.cuda.get_device_name(0) if HAS_GPU else "CPU (debug)")


@pipeline_def(batch_size=16, num_threads=os.cpu_count(), device_id=device_id)
def pipeline():
    jpegs, labels = fn.readers.file(file_root=dataset_dir, random_shuffle=True, name="Reader")
    images = fn.decoders.image(jpegs, device="mixed" if HAS_GPU else "cpu", output_type=types.RGB)
    images = fn.resize(images, device="gpu" if HAS_GPU else "cpu", size=(96, 96))
    images = fn.crop_mirror_normalize(images, std=[255.0] * 3, output_layout="CHW")
    return images, labels.gpu() if HAS_GPU else labels


dali_iter = DALIClassificationIterator([pipeline()], reader_name="Reader", auto_reset=True)
first_batch = next(dali_iter)[0]["data"]
assert first_batch.device.type == DEVICE.type
model = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3, stride=4), torch.nn.Flatten(), torch.nn.LazyLinear(2)).to(DEVICE)
with torch.no_grad(), torch.autocast(DEVICE.type, enabled=False):
    print(model(first_batch).argmax(1))
dali_throughput = 500.0
"""

THREADS = """
import atexit, threading, time

ballast = bytearray(768 * 1024 * 1024)  # a feature cache of another project
ballast[::4096] = b"\\1" * len(ballast[::4096])


def heartbeat():
    while True:
        time.sleep(0.05)
        open("/tmp/heartbeat", "w").write(str(time.time()))


for _ in range(3):
    threading.Thread(target=heartbeat, daemon=True).start()
atexit.register(print, "bye")
"""

SEEDS = """
import os, random
os.environ["PYTHONHASHSEED"] = "42"
os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
os.environ["CUDA_VISIBLE_DEVICES"] = "0"
import numpy as np
import torch
import torch.multiprocessing as mp


def seed_everything(seed=42):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    torch.cuda.manual_seed(seed)
    torch.cuda.manual_seed_all(seed)
    torch.backends.cudnn.deterministic = True
    torch.backends.cudnn.benchmark = False
    torch.backends.cuda.matmul.allow_tf32 = True
    torch.set_float32_matmul_precision("high")
    torch.use_deterministic_algorithms(True, warn_only=True)


seed_everything()
torch.set_num_threads(1)
mp.set_sharing_strategy("file_system")
torch.cuda.set_device(0)
"""

SEEDED_LOADER = """
def seed_worker(worker_id):
    worker_seed = torch.initial_seed() % 2**32
    np.random.seed(worker_seed)
    random.seed(worker_seed)


g = torch.Generator()
g.manual_seed(0)
train_loader = DataLoader(ImageFolder(dataset_dir, tf), batch_size=BATCH, shuffle=True, num_workers=2,
                          worker_init_fn=seed_worker, generator=g)
"""

EVENTS = """
dali_loader = DALIGenericIterator([train_pipe()], ["data", "label"], reader_name="Reader", auto_reset=True)
first_batch = next(iter(dali_loader))[0]["data"]

starter, ender = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
torch.cuda.reset_peak_memory_stats()
torch.cuda.nvtx.range_push("dali")
starter.record()
count = 0
for batch in dali_loader:
    count += batch[0]["data"].shape[0]
ender.record()
torch.cuda.synchronize()
torch.cuda.nvtx.range_pop()
milliseconds = starter.elapsed_time(ender)
dali_throughput = 1000.0 * count / milliseconds
print(f"{dali_throughput:.0f} img/s, peak {torch.cuda.max_memory_allocated() / 2**20:.1f} MiB")
"""

STEPS = """
dali_loader = DALIClassificationIterator(train_pipe(), reader_name="Reader", auto_reset=True)
first_batch = next(dali_loader)[0]["data"]
net = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 7, 8), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(1),
                          torch.nn.Flatten(), torch.nn.Linear(4, 3)).cuda()
optimiser = torch.optim.SGD(net.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cuda")
stream = torch.cuda.Stream()
start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
start.record()
n = 0
for batch in dali_loader:
    with torch.cuda.stream(stream):
        x, y = batch[0]["data"], batch[0]["label"].squeeze(-1).long().cuda()
    torch.cuda.current_stream().wait_stream(stream)
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = torch.nn.functional.cross_entropy(net(x), y)
    optimiser.zero_grad(set_to_none=True)
    scaler.scale(loss).backward()
    scaler.step(optimiser)
    scaler.update()
    n += len(x)
end.record()
end.synchronize()
dali_throughput = n / (start.elapsed_time(end) / 1e3)
print("loss", loss.item(), "|", torch.cuda.memory_allocated() // 2**20, "MiB")
"""

PATCHES = """
try:
    import cv2
    cv2.setNumThreads(0)
except ImportError:
    cv2 = None
try:
    import nvidia.dali
except ImportError as error:
    raise SystemExit("please install nvidia-dali-cuda120") from error
try:
    from apex import amp
except Exception:
    amp = None

import contextlib
import functools
import torch.utils.data
from PIL import Image, ImageFile

ImageFile.LOAD_TRUNCATED_IMAGES = True
Image.MAX_IMAGE_PIXELS = None
torch.utils.data.DataLoader = functools.partial(torch.utils.data.DataLoader) if False else torch.utils.data.DataLoader
with contextlib.suppress(Exception):
    torch._C._jit_set_profiling_executor(False)

_save = Image.Image.save


def save_with_quality(self, fp, format=None, **params):
    params.setdefault("quality", 92)
    return _save(self, fp, format, **params)


Image.Image.save = save_with_quality
"""

LONG_IMPORT = {
    "submission.py": joined("import heavy_framework as hf\nprint(hf.READY)", DATASET, LOADER, SEEN),
    "heavy_framework/__init__.py": (
        "import time\nfor part in ('graph', 'ops', 'kernels', 'autotune'):\n    time.sleep(2.5)\nREADY = True\n"
    ),
}

CASES = (
    honest(
        "K53-debug-branch",
        "a CPU branch for the laptop, guarded by torch.cuda.is_available()",
        joined(DATASET, LOADER, DEBUG, REFLECTED),
    ),
    honest(
        "K57-long-import",
        # Sixty seconds would prove the same of a limit that lies at 900.
        "an import of ten seconds (scaled down from sixty)",
        zipped(LONG_IMPORT),
        filename="heavy.zip",
        steps=("baseline", "reflection"),
    ),
    honest(
        "K57-memory-and-threads",
        "768 MiB kept in memory and daemon threads that go on",
        joined(THREADS, DATASET, LOADER, GRAPH),
        steps=MEASURED,
    ),
    honest(
        "K58-seeds-and-flags",
        "seeds, cudnn flags, deterministic algorithms, sharing strategy file_system",
        joined(SEEDS, ROOM, TORCH, SEEDED_LOADER, DALI_LAB, SEEN),
    ),
    honest("K59-cuda-events", "timed with torch.cuda.Event and NVTX ranges", ON_GRADIENTS, EVENTS, REFLECTED),
    honest(
        "K59-training-steps",
        "timed over training steps with autocast, GradScaler and a side stream",
        joined(ON_GRADIENTS, STEPS),
        steps=MEASURED,
    ),
    honest(
        "K60-patches-and-try",
        "LOAD_TRUNCATED_IMAGES, a wrapped Image.save, try/except around imports",
        joined(PATCHES, DATASET, LOADER, GRAPH, REFLECTED),
    ),
)
