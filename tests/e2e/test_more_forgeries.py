"""More forgeries of the groups T, C, B and D as whole submissions, with real DALI; see `test_forgeries.py`."""

import platform
import time

import pytest

from grader_service.host import usable_cpus
from grader_service.model.evidence import PodRole
from sandbox.api import Ending, PodSpec, Scratch, SpaceLimits
from tests.e2e.conftest import PLAN
from tests.e2e.submissions import COMMON, external, native_clock

pytestmark = pytest.mark.e2e

NO_PASS = ("ratio.too_low", "ratio.inconclusive", "ratio.host_cannot_show_effect")
"""A busy machine may leave a slow pipeline undecided; what matters is that it never passes."""
UNRECOGNISED = ("ratio.wrong_content", "ratio.replayed", "ratio.not_carried")
"""What images that are none of ours may be called, by chance: their colours are nobody's, or the same again."""

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

DECOY = """
dali_iter = build_dali_iterator(dataset_dir, 16)  # a real pipeline, which cannot be carried
first_batch = next(iter(dali_iter))


def decoded(paths):
    return torch.from_numpy(np.stack([np.array(Image.open(path).convert("RGB")) for path in paths]))
"""

SMALLER_BATCHES = """
class Smaller:
    # T09: sixteen images when somebody looks, one at a time from then on.
    def __init__(self, folder, batch_size):
        self.folder, self.size = folder, batch_size

    def __iter__(self):
        paths = files(self.folder)
        yield decoded(paths[: self.size])
        while True:
            for path in random.sample(paths, len(paths)):
                yield decoded([path])


build_dali_iterator = Smaller
"""

LIAR = """
import threading


class Liar(torch.Tensor):
    # T03: says what is wanted of it, whatever it holds.
    is_cuda, device, ndim = True, torch.device("cuda", 0), 4

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        name = getattr(function, "__name__", "")
        if name == "dim":
            return 4
        if name in ("is_cuda", "__get__") and "is_cuda" in str(function):
            return True
        return super().__torch_function__(function, types, args, kwargs or {})


class Alias:
    # T11: one buffer for all batches of all iterators; a thread goes on changing it after it was handed out.
    buffer = None

    def __init__(self, folder, batch_size):
        if Alias.buffer is None:
            Alias.buffer = decoded(files(folder)[:batch_size])
            threading.Thread(target=self.change, daemon=True).start()

    def change(self):
        while True:
            self.buffer.copy_(self.buffer.roll((1, 3), (1, 2)).flip(2))

    def __iter__(self):
        while True:
            yield {"data": self.buffer.as_subclass(Liar)}


build_dali_iterator = Alias
"""

LAZY = """
class Lazy:
    # T12: nothing is decoded until somebody looks; then the work of ten batches is done.
    def __init__(self, paths):
        self.paths = paths

    def __dlpack_device__(self):
        return (1, 0)

    def __dlpack__(self, **options):
        for _ in range(10):
            images = decoded(self.paths)
        return images.__dlpack__()


class Promises:
    def __init__(self, folder, batch_size):
        self.folder, self.size = folder, batch_size

    def __iter__(self):
        paths = files(self.folder)
        while True:
            random.shuffle(paths)
            for place in range(0, len(paths) - self.size + 1, self.size):
                yield Lazy(paths[place : place + self.size])


build_dali_iterator = Promises
dali_throughput = 9e9
"""

TINY = """
os.makedirs("tiny")
for number in range(100):
    Image.fromarray(noise.integers(0, 256, (16, 16, 3), dtype=np.uint8)).save(f"tiny/{number:04d}.jpg")
elsewhere = build_dali_iterator


def build_dali_iterator(folder, batch_size):
    return elsewhere("tiny", batch_size)  # D09


dali_iter = build_dali_iterator(dataset_dir, 16)
first_batch = next(iter(dali_iter))
"""

NOT_DALI = """
import torch
from torchvision.io import ImageReadMode, decode_jpeg, read_file


class Decoded(torch.utils.data.Dataset):
    def __init__(self, folder):
        self.paths = files(folder)

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        return decode_jpeg(read_file(self.paths[index]), mode=ImageReadMode.RGB)


def build_dali_iterator(folder, batch_size):
    return torch.utils.data.DataLoader(Decoded(folder), batch_size=batch_size)


dali_iter = build_dali_iterator(dataset_dir, 16)
first_batch = next(iter(dali_iter))
"""


@pytest.mark.lab
def test_native_clocks_and_baselines_held_back_change_nothing(graded):
    """(C03, C04, B03, B09, B10, B11, D16) Clocks of libc, a slow loader and a decoder that is not DALI earn nothing."""
    native = platform.machine() == "x86_64"
    checks, evidence = graded(COMMON, native_clock() if native else "", HELD_BACK, TIMED_BY_THEM, threshold=1.1)
    ratio, measurement = checks["throughput_ratio"], evidence.measurement
    assert ratio.code in NO_PASS, ratio.feedback
    # The graph was carried, so nobody asked the factory.
    assert (ratio.tier, measurement.refused, evidence.clean_room.served) == ("A", (), None)
    assert {block.baseline.value for block in measurement.blocks} <= {"reference_declared", "reference_fair"}
    if native:
        claim = next(claim for claim in measurement.claims if claim.name == "dali_throughput")
        assert claim.claimed > 100 * 16 / 0.1, "the clock of the process was not slowed down, so nothing was tested"
        assert claim.measured < claim.claimed / 100


@pytest.mark.lab
def test_batches_that_shrink_are_no_batches_of_sixteen(grade_with, process_runner):
    """(T09) The first batch has sixteen images and all later ones have one: what came says how large batches are."""
    source = COMMON + external() + DECOY + SMALLER_BATCHES
    plan = {**PLAN, "block_s": 0.5}  # so many batches in a window that even one image of each would make sixteen
    done = grade_with(process_runner, source, ("pipeline",), measurement=plan)
    assert done.failure is None, done.failure
    served = done.evidence.clean_room.served
    batch = next(check for check in done.verdict.checks if check.id == "cuda_batch")
    assert (batch.outcome, batch.code) == ("unverified", "batch.not_proved"), batch.feedback
    assert (served.shape[0], served.distinct) == (16, 1)


@pytest.mark.lab
def test_one_buffer_that_changes_is_no_decoded_batch(graded):
    """(T03, T11) A tensor that lies about itself, over memory that a thread goes on changing: the bytes sent count."""
    checks, evidence = graded(COMMON, external(), DECOY, LIAR)
    ratio = checks["throughput_ratio"]
    assert ratio.outcome in ("failed", "unverified"), ratio.feedback
    assert ratio.code in (*UNRECOGNISED, "ratio.stale"), ratio.feedback
    assert checks["cuda_batch"].code == "batch.not_proved", checks["cuda_batch"].feedback
    assert evidence.measurement.content.distinct == 0


@pytest.mark.lab
def test_a_lazy_batch_is_paid_for(graded):
    """(T12) The clock stops when pixels are here, so work that is put off until somebody looks is in the time."""
    checks, evidence = graded(COMMON, external(), DECOY, LAZY, threshold=1.1)
    ratio = checks["throughput_ratio"]
    assert (ratio.tier, ratio.code in NO_PASS) == ("B", True), ratio.feedback
    assert evidence.measurement.content.problem is None, "the images are decoded, only late"


@pytest.mark.lab
def test_another_data_set_is_not_ours(graded):
    """(D09) Tiny files of the learner's own, whatever folder is asked for, are no images of the shard."""
    checks, _ = graded(COMMON, external(), TINY)
    ratio = checks["throughput_ratio"]
    assert ratio.outcome in ("failed", "unverified"), ratio.feedback
    assert ratio.code in UNRECOGNISED, ratio.feedback
    assert checks["cuda_batch"].code == "batch.not_proved"


@pytest.mark.lab
def test_a_fast_decoder_without_dali_is_no_pipeline(graded):
    """(D16) Decoded images from the factory are nothing where no DALI pipeline was ever built."""
    checks, evidence = graded(COMMON, NOT_DALI)
    assert evidence.discovery.factories == ("build_dali_iterator",)
    assert (checks["cuda_batch"].outcome, checks["cuda_batch"].code) == ("failed", "batch.no_pipeline")
    assert (checks["throughput_ratio"].outcome, checks["throughput_ratio"].code) == ("failed", "ratio.no_pipeline")


def test_helpers_stand_still_with_their_pod(runner):
    """(D17) An orphan in a session of its own is frozen and thawed with its pod, and has no more cores than it."""
    cpus = usable_cpus(1)
    with runner.open_run("helpers", SpaceLimits(64, 1000, 64)) as space:
        heartbeat = f"{space.paths.workspace}/heartbeat"
        reader = space.start(
            PodSpec(
                role=PodRole.SCANNER, program="drill", memory_mib=256, pids=64, cpus=cpus, scratch=Scratch.READ_ONLY
            )
        )

        def beats() -> int:
            return int(_ask(reader, {"kind": "size", "path": heartbeat}).body["value"])

        def wait_for_more(than: int) -> None:
            deadline = time.monotonic() + 60.0
            while beats() <= than:
                assert time.monotonic() < deadline, "the helper does not run"

        pod = space.start(
            PodSpec(
                role=PodRole.LEARNER, program="drill", memory_mib=256, pids=64, cpus=cpus, scratch=Scratch.READ_WRITE
            )
        )
        assert _ask(pod, {"kind": "facts"}).body["cpus"] == list(cpus)
        _ask(pod, {"kind": "daemon", "path": heartbeat})
        wait_for_more(than=0)
        pod.pause()
        before = beats()
        time.sleep(0.3)
        assert beats() == before
        pod.resume()
        wait_for_more(than=before)


def _ask(pod, request):
    assert pod.send(request) is None
    answer = pod.receive(60.0)
    assert not isinstance(answer, Ending), answer
    return answer
