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

from tests.e2e.submissions import COMMON, external, native_clock
from tests.e2e.test_more_forgeries import HELD_BACK, NOT_DALI, TIMED_BY_THEM

LISTS = """
where_dali_wins = ["ImageNet training with four CPU cores per GPU: JPEG decoding in the workers is too slow."] * 3
where_dali_loses = ["BERT on text that was tokenised before: there is nothing to decode in it."] * 2
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
