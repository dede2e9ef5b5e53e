"""Forgeries that need a GPU, graded on one: none may pass.

    python bench/gpu_forgeries.py [--sandbox docker] [--device cuda]

The ids are those of the catalogue of attacks: T05 one element seen as a batch, T06 sixteen views of one image, T07
memory that nobody wrote, T10 random numbers, T13 a tensor that only says that it lies on the GPU; C02 and C05 CUDA
events and synchronisation that do nothing, B07 a kernel that keeps the GPU busy while the baseline runs; C03 a detour
of the C library's clock, with a slow loader and a fast decoder that is not DALI beside a slow graph; D16 images that
torchvision decodes on the GPU. Exit status 0 when none passed.
"""

import argparse
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from gpu_measurement import grade

from tests.e2e.submissions import COMMON, decoded, external, native_clock

LISTS = """
where_dali_wins = ["ImageNet training with four CPU cores per GPU: JPEG decoding in the workers is too slow."] * 3
where_dali_loses = ["BERT on text that was tokenised before: there is nothing to decode in it."] * 2
"""
HELD_BACK = """
import ctypes, subprocess, sys, torch
from concurrent.futures import ThreadPoolExecutor
from nvidia.dali import fn, pipeline_def, types
from nvidia.dali.plugin import pytorch as plugin
from torchvision import datasets, transforms

# C04: a helper in a time namespace of its own, where the kernel allows one, says how late it is.
LATE = '''
import ctypes, os, time
libc = ctypes.CDLL(None)
if libc.unshare(0x80) == 0:
    open("/proc/self/timens_offsets", "w").write("monotonic 864000 0")
if os.fork() == 0:
    print(time.clock_gettime(time.CLOCK_MONOTONIC))
    os._exit(0)
os.wait()
'''
late = subprocess.run([sys.executable, "-c", LATE], capture_output=True, text=True).stdout
os.environ["FAKETIME"], os.environ["LD_PRELOAD"] = "-15d", "/workspace/libfaketime.so.1"


class HeldBack(datasets.ImageFolder):
    def __getitem__(self, index):
        path, label = self.samples[index]
        file = os.open(path, os.O_RDONLY)
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)  # B10: a cold cache, read in pages at random
        for page in random.sample(range(0, os.fstat(file).st_size, 4096), 1 + os.fstat(file).st_size // 8192):
            os.pread(file, 1, page)
        os.close(file)
        # B09: an image library that looks at every pixel in Python.
        image = Image.open(path).convert("RGB")
        slow = Image.new("RGB", image.size)
        slow.putdata([(red, green, blue) for red, green, blue in image.getdata()])
        return self.transform(slow), label


def fewer(samples):
    return torch.utils.data.default_collate(samples[:1])  # B11: four are decoded, one counts


resized = transforms.Compose([transforms.Resize((96, 96)), transforms.ToTensor()])
# B03: a small batch, no workers, no pinned memory.
loader = torch.utils.data.DataLoader(HeldBack(dataset_dir, resized), batch_size=4, collate_fn=fewer, pin_memory=False)


@pipeline_def(batch_size=16, num_threads=1, device_id=0)
def pipeline():
    jpegs, labels = fn.readers.file(file_root=dataset_dir, name="Reader")
    images = fn.decoders.image(jpegs, device="mixed")
    for _ in range(2):
        images = fn.gaussian_blur(fn.resize(images, size=(384, 384)), sigma=3.0)
    images = fn.resize(images, size=(96, 96))
    return fn.crop_mirror_normalize(images, std=[255.0] * 3, output_layout="CHW"), labels


class Threads:
    # D16: fast, and not DALI at all.
    def __init__(self, folder, batch_size):
        self.paths, self.size, self.pool = files(folder), batch_size, ThreadPoolExecutor()

    def __iter__(self):
        while True:
            images = self.pool.map(lambda path: np.array(Image.open(path)), random.sample(self.paths, self.size))
            yield torch.from_numpy(np.stack(list(images)))


build_dali_iterator = Threads
dali_iter = plugin.DALIGenericIterator(pipeline(), ["data", "label"], reader_name="Reader", auto_reset=True)
"""
TIMED_BY_THEM = """
import time
started = time.perf_counter()
first_batch = next(dali_iter)[0]["data"]
time.sleep(0.1)
dali_throughput = 16 / (time.perf_counter() - started)
"""
NOT_DALI = f"""
import torch
from torchvision.io import ImageReadMode, decode_jpeg, read_file

{decoded("decode_jpeg(read_file(path), mode=ImageReadMode.RGB)")}

def build_dali_iterator(folder, batch_size):
    return torch.utils.data.DataLoader(Decoded(folder), batch_size=batch_size)


dali_iter = build_dali_iterator(dataset_dir, 16)
first_batch = next(iter(dali_iter))
"""
PATCHED = """
import torch
from nvidia.dali import fn, pipeline_def, types
from nvidia.dali.plugin.pytorch import DALIGenericIterator
from torchvision import datasets, transforms

torch.cuda.Event = lambda *a, **k: type("Event", (), {"record": lambda s: None, "elapsed_time": lambda s, o: 0.001})()
torch.cuda.synchronize = lambda *a: None


class Busy(datasets.ImageFolder):
    def __getitem__(self, index):
        torch.cuda._sleep(50_000_000)
        return super().__getitem__(index)


shape = transforms.Compose([transforms.Resize((96, 96)), transforms.ToTensor()])
loader = torch.utils.data.DataLoader(Busy(dataset_dir, shape), batch_size=16)


@pipeline_def(batch_size=16, num_threads=1, device_id=0)
def pipeline():
    jpegs, labels = fn.readers.file(file_root=dataset_dir, name="Reader")
    images = fn.gaussian_blur(fn.resize(fn.decoders.image(jpegs, device="cpu"), size=(512, 512)), sigma=3.0)
    images = fn.resize(images, size=(96, 96))
    return fn.crop_mirror_normalize(images, std=[255.0] * 3, output_layout="CHW").gpu(), labels


dali_iter = DALIGenericIterator(pipeline(), ["data", "label"], reader_name="Reader", auto_reset=True)
first_batch = next(dali_iter)[0]["data"]
"""
FORGED = """
class Liar(torch.Tensor):
    is_cuda, device = True, torch.device("cuda", 0)


class Forged:
    def __init__(self, folder, batch_size):
        self.size = batch_size

    def __iter__(self):
        while True:
            yield [{{"data": {batch}}}]


honest = build_dali_iterator
build_dali_iterator = Forged
dali_iter = honest(dataset_dir, 16)
first_batch = next(iter(dali_iter))[0]["data"]
"""
BATCHES = {
    "T05 expanded": "torch.zeros(1, device='cuda').expand(16, 3, 144, 192)",
    "T06 overlapping": "torch.rand(82944, device='cuda').as_strided((16, 3, 144, 192), (0, 27648, 192, 1))",
    "T07 unwritten": "torch.empty(16, 3, 144, 192, device='cuda')",
    "T10 random": "torch.rand(16, 3, 144, 192, device='cuda')",
    "T13 only says so": "torch.rand(16, 3, 144, 192).as_subclass(Liar)",
}


def main() -> int:
    """Grades each and prints what came out."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--sandbox", default="docker")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--only", default="", help="Just those whose name holds this text.")
    options = parser.parse_args()
    submissions = {"C02 C05 B07 patched": COMMON + PATCHED + LISTS}
    held_back = HELD_BACK.replace('device="mixed"', 'device="cpu"').replace('"CHW"), labels', '"CHW").gpu(), labels')
    submissions["C03 C04 B03 B09 native clock"] = COMMON + native_clock() + held_back + TIMED_BY_THEM + LISTS
    on_gpu = NOT_DALI.replace("mode=ImageReadMode.RGB", 'mode=ImageReadMode.RGB, device="cuda"')
    submissions["D16 decoded by torchvision"] = COMMON + on_gpu + LISTS
    for name, batch in BATCHES.items():
        submissions[name] = COMMON + external() + FORGED.format(batch=batch) + LISTS
    passed = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, source in submissions.items():
            if options.only not in name:
                continue
            path = Path(folder, "submission.py")
            path.write_text(source)
            verdict, wall = grade(path, options.sandbox, options.device)
            results = {check["id"]: check for check in verdict["checks"]}
            ratio, batch = results["throughput_ratio"], results["cuda_batch"]
            passed += ratio["outcome"] == "passed"
            print(
                f"{name}: {ratio['outcome']} {ratio['code']}; batch: {batch['outcome']} {batch['code']}, {wall:.1f} s",
                flush=True,
            )
    return 1 if passed else 0


if __name__ == "__main__":
    raise SystemExit(main())
