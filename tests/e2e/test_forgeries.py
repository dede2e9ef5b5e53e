"""Forgeries of the groups T, C, M, B and D as whole submissions, with real DALI: none passes, and each has its code.

Those that are told from pixels alone are in `tests/held_out`, graphs in `tests/grading/test_graph_content.py`, and
delivery, replay and clocks of the arms in `tests/grading/test_proof_arm.py`.
"""

import pytest

from tests.e2e.submissions import COMMON, external

pytestmark = [pytest.mark.lab, pytest.mark.e2e]

NO_PASS = ("ratio.too_low", "ratio.inconclusive", "ratio.host_cannot_show_effect")
"""A busy machine may leave a slow graph undecided; what matters is that it never passes."""
PATCHED = """
import datetime, threading, time, torch
from nvidia.dali import fn, pipeline_def, types
from nvidia.dali.plugin import pytorch as plugin
from torchvision import datasets, transforms

# C01, C02: every clock of the process stands still or runs a thousand times too slowly.
started = time.time()
for name in ("time", "monotonic", "perf_counter", "process_time"):
    setattr(time, name, lambda: started)
torch.cuda.Event = lambda *a, **k: type("Event", (), {"record": lambda s: None, "elapsed_time": lambda s, o: 0.001})()
torch.cuda.synchronize = lambda *a: None
# B08: one thread for whoever comes later in this process.
torch.set_num_threads(1)


class Slow(datasets.ImageFolder):
    def __getitem__(self, index):  # B01
        threading.Event().wait(0.01)
        return super().__getitem__(index)


resized = transforms.Compose([transforms.Resize((96, 96)), transforms.ToTensor()])
loader = torch.utils.data.DataLoader(Slow(dataset_dir, resized), batch_size=16)  # B02: no workers


@pipeline_def(batch_size=16, num_threads=1, device_id=0)
def pipeline():
    jpegs, labels = fn.readers.file(file_root=dataset_dir, name="Reader")
    # D02: decoded once, served for ever.
    images = fn.decoders.image(jpegs, device="mixed", cache_size=512, cache_type="threshold", cache_threshold=0)
    for _ in range(2):
        images = fn.gaussian_blur(fn.resize(images, size=(384, 384)), sigma=3.0)
    images = fn.resize(images, size=(96, 96))
    return fn.crop_mirror_normalize(images, std=[255.0] * 3, output_layout="CHW"), labels


dali_iter = plugin.DALIGenericIterator(pipeline(), ["data", "label"], reader_name="Reader", auto_reset=True)
first_batch = next(dali_iter)[0]["data"]
# M05: whoever draws from this iterator gets the same batch at once.
plugin.DALIGenericIterator.__next__ = lambda self: [{"data": first_batch}]
pytorch_throughput, dali_throughput = 1.0, 9e9  # V01
"""

FAKE_BATCH = """
class Fake:
    # T01, T02: has what a check might ask for, and is a tensor for whoever asks politely.
    shape, ndim, is_cuda, device, dtype = (64, 3, 224, 224), 4, True, "cuda:0", "float32"

    @property
    def __class__(self):
        import torch

        return torch.Tensor

    def dim(self):
        return 4


first_batch = Fake()
"""


def forged(batch):
    """A factory whose iterator delivers what this expression makes, in a submission that has a pipeline of its own."""
    return f"""
class Forged:
    def __init__(self, folder, batch_size):
        self.folder, self.size = folder, batch_size

    def __iter__(self):
        while True:
            yield [{{"data": {batch}}}]


honest = build_dali_iterator
build_dali_iterator = Forged
dali_iter = honest(dataset_dir, 16)
first_batch = next(iter(dali_iter))
"""


HALF_SCALE = """
def half_scale(folder, size):
    chosen = random.sample(files(folder), size)
    images = []
    for path in chosen:
        image = Image.open(path)
        width, height = image.size
        image.draft("RGB", (width // 2, height // 2))  # D10: the decoder leaves the fine detail out
        images.append(torch.from_numpy(np.array(image.convert("RGB").resize((width, height), Image.BILINEAR))))
    return torch.stack(images)
"""


def test_clocks_caches_and_sleeping_baselines_change_nothing(graded):
    """(V01, C01, C02, M05, B01, B02, B08, D02) A slow graph stays slow: no number of the learner's process is used."""
    checks, evidence = graded(COMMON, PATCHED, threshold=1.1)
    ratio = checks["throughput_ratio"]
    assert ratio.tier == "A"
    assert ratio.code in NO_PASS, ratio.feedback
    assert any("cache" in changed for changed in evidence.clean_room.graph.changed)
    claims = {claim.name: claim.claimed for claim in evidence.measurement.claims}
    assert claims["dali_throughput"] == 9e9


def test_a_fake_first_batch_is_no_pipeline(graded):
    """(T01, T02, T10) Without a DALI pipeline the most convincing object is nothing."""
    checks, _ = graded(COMMON, FAKE_BATCH)
    assert (checks["cuda_batch"].outcome, checks["cuda_batch"].code) == ("failed", "batch.no_pipeline")
    assert (checks["throughput_ratio"].outcome, checks["throughput_ratio"].code) == ("failed", "ratio.no_pipeline")


@pytest.mark.parametrize(
    ("name", "batch", "codes"),
    [
        ("duck", "type('Fake', (), {'shape': (64, 3, 224, 224), 'is_cuda': True})()", ("ratio.not_carried",)),
        ("fake tensor", "FAKE.from_tensor(torch.zeros(16, 3, 144, 192))", ("ratio.not_carried",)),
        ("expanded", "torch.zeros(1).expand(16, 3, 144, 192)", ("ratio.wrong_content", "ratio.replayed")),
        ("overlapping", "torch.rand(3 * 144 * 192).as_strided((16, 3, 144, 192), (0, 144 * 192, 192, 1))",
         ("ratio.wrong_content", "ratio.replayed", "ratio.not_carried")),
        ("random", "torch.rand(16, 3, 144, 192)", ("ratio.wrong_content", "ratio.replayed", "ratio.not_carried")),
        ("no images", "torch.arange(16 * 1000).reshape(16, 1000)", ("ratio.not_carried",)),
        ("half scale", "half_scale(self.folder, self.size)", ("ratio.partial_decode",)),
    ],
)  # fmt: skip
def test_forged_batches_do_not_pass(graded, name, batch, codes):
    """(T01, T04, T05, T06, T07, T08, D07, D10) What is no decoded image of the shard earns nothing."""
    fake = "from torch._subclasses.fake_tensor import FakeTensorMode\nFAKE = FakeTensorMode()\n"
    checks, _ = graded(COMMON, external(), fake, HALF_SCALE, forged(batch))
    ratio = checks["throughput_ratio"]
    assert ratio.outcome in ("failed", "unverified"), name
    assert ratio.code in codes, (ratio.code, ratio.feedback)
    assert checks["cuda_batch"].outcome != "passed" or name == "half scale"


def test_a_baseline_that_gives_up_is_replaced(graded):
    """(B12) A DataLoader that raises when it is timed is no baseline of 0: the reference stands in for it."""
    broken = PATCHED.replace("        threading.Event().wait(0.01)\n", '        raise RuntimeError("not today")\n')
    checks, evidence = graded(COMMON, broken, threshold=1.1)
    assert checks["throughput_ratio"].code in NO_PASS, checks["throughput_ratio"].feedback
    assert evidence.measurement.blocks[0].baseline.value.startswith("reference")
