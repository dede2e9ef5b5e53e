"""Submissions whose graph cannot be carried, graded on a GPU: tier, ratio, what the pixels and NVML showed.

    python bench/gpu_tiers.py [--sandbox docker] [--device cuda] [--only NAME …] [--large]

They are those of tests/e2e/test_tiers.py, and three whose iterator is a DataLoader. Their pictures are tiny, where DALI
gains least; with `--large` the honest ones have pictures of 500 × 375, resized to 224 × 224, in batches of 64. Exit
status 0 when each was measured in the tier that its code deserves.
"""

import argparse
import re
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from gpu_measurement import describe, grade

from tests.e2e import test_tiers
from tests.e2e.submissions import COMMON, COSTUME, END, GRAPH, external

LISTS = """
where_dali_wins = ["ImageNet training with four CPU cores per GPU: JPEG decoding in the workers is too slow."] * 3
where_dali_loses = ["BERT on text that was tokenised before: there is nothing to decode in it."] * 2
"""
BUSY = """
import threading


def multiply():
    square = torch.rand(4096, 4096, device="cuda")
    while True:
        square @ square
        torch.cuda.synchronize()


threading.Thread(target=multiply, daemon=True).start()
"""
"""Kernels that decode nothing, whenever the submission is not frozen."""
DECOY = """
import threading


@pipeline_def(batch_size=16, num_threads=1, device_id=0)
def one_file(jpeg):
    return fn.decoders.image(fn.external_source(source=lambda: jpeg, batch=False), device="mixed")


def decode_one(jpeg):
    pipeline = one_file(jpeg)
    pipeline.build()
    while True:
        pipeline.run()


class Decoyed(Costume):
    def __init__(self, folder, batch):
        super().__init__(folder, batch)
        jpeg = np.fromfile(files(folder)[0], dtype=np.uint8)
        threading.Thread(target=decode_one, args=(jpeg,), daemon=True).start()


build_dali_iterator = Decoyed
"""
"""One file that DALI decodes again and again beside a DataLoader, so that the GPU is seen to decode."""
CROPPED = external().replace(
    'fn.decoders.image(jpegs, device="mixed")',
    """fn.resize(
        fn.decoders.image_random_crop(jpegs, device="mixed"), size=(144, 192)
    )""",
)
SUBJECTS = {
    "external_source": (external(), "B"),
    "external_source, random crop": (CROPPED, "B"),
    "DataLoader as iterator": (external() + COSTUME, "B"),
    "DataLoader as iterator, busy GPU": (external() + COSTUME + BUSY, "B"),
    "DataLoader as iterator, decoy": (external() + COSTUME + DECOY, "B"),
    "DALI Proxy": (GRAPH + test_tiers.PROXY, "B"),
    "dynamic mode": (test_tiers.DYNAMIC.replace('device="cpu"', 'device="gpu"'), "B"),
    "files kept in memory": (external("np.fromfile(path, dtype=np.uint8)", "{}"), "C"),
    "no factory": (external().replace("build_dali_iterator", "make_iterator"), "D"),
}
LARGE = ("external_source", "DALI Proxy", "dynamic mode")


def enlarged(text: str) -> str:
    """The same submission with larger pictures and batches."""
    text = text.replace("(192, 144)", "(500, 375)").replace("(dataset_dir, 16)", "(dataset_dir, 64)")
    return re.sub(r"(fn|ndd)\.decoders\.image\((.*)\)\n", r"\1.resize(\1.decoders.image(\2), size=(224, 224))\n", text)


def main() -> int:
    """Grades each and prints one line for the ratio and one for the batch."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--sandbox", default="docker")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--only", nargs="*", choices=list(SUBJECTS))
    parser.add_argument("--large", action="store_true")
    options = parser.parse_args()
    wrong = 0
    for name in options.only or (LARGE if options.large else SUBJECTS):
        code, tier = SUBJECTS[name]
        end = END if tier != "D" else END.replace("build_dali_iterator", "make_iterator")
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "submission.py")
            text = COMMON + code + end + LISTS
            path.write_text(enlarged(text) if options.large else text)
            verdict, wall = grade(path, options.sandbox, options.device)
        checks = {check["id"]: check for check in verdict["checks"]}
        ratio, batch = checks["throughput_ratio"], checks["cuda_batch"]
        wrong += ratio.get("tier") != tier
        print(f"{name}: {describe(verdict, ratio)}, {wall:.1f} s", flush=True)
        for use in ((verdict["measurement"] or {}).get("corroboration") or {}).get("uses", ()):
            seen = f"SM {use['sm_percent']} %, JPEG engine {use['jpg_percent']} %, {use['samples']} samples"
            print(f"  {use['arm']}: {seen}")
        print(f"  batch: {batch['outcome']} {batch['code']}; {ratio['feedback'][:400]}", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
