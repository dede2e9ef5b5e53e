"""Parts of submissions whose graph cannot be carried; joined, they are whole ones."""

from tests.corpus.parts import DATASET

COMMON = (
    DATASET
    + """

def files(folder):
    return sorted(glob.glob(f"{folder}/**/*.jpg", recursive=True))


pytorch_throughput, dali_throughput = 100.0, 500.0
"""
)

END = """
dali_iter = build_dali_iterator(dataset_dir, 16)
first_batch = next(iter(dali_iter))
"""

GRAPH = """
import torch
from nvidia.dali import fn, pipeline_def, types
from nvidia.dali.plugin.pytorch import DALIGenericIterator
"""

EXTERNAL = '''
class Feeder:
    """Encoded files of one epoch, in an order of its own."""

    def __init__(self, folder, batch):
        self.paths, self.batch = files(folder), batch
        self.jpegs = {path: READ(path) for path in self.paths}

    def __iter__(self):
        self.place = 0
        random.shuffle(self.paths)
        return self

    def __next__(self):
        part = self.paths[self.place : self.place + self.batch]
        if len(part) < self.batch:
            raise StopIteration
        self.place += self.batch
        return [OPEN(self.jpegs[path]) for path in part]


@pipeline_def(num_threads=2, device_id=0)
def pipeline(feeder):
    jpegs = fn.external_source(source=feeder, cycle="raise", dtype=types.UINT8)
    images = fn.decoders.image(jpegs, device="mixed")
    return fn.crop_mirror_normalize(images, mean=[124.0, 116.0, 104.0], std=[58.0, 57.0, 57.0], output_layout="CHW")


def build_dali_iterator(folder, batch_size):
    return DALIGenericIterator(pipeline(Feeder(folder, batch_size), batch_size=batch_size), ["data"], auto_reset=True)
'''


def external(read="path", opened="np.fromfile({}, dtype=np.uint8)"):
    """The external source that reads each file when it is needed, or as told."""
    kept = EXTERNAL.replace("READ(path)", read).replace("OPEN(self.jpegs[path])", opened.format("self.jpegs[path]"))
    return GRAPH + kept


DECODED = """
class Decoded(torch.utils.data.Dataset):
    def __init__(self, folder):
        self.paths = files(folder)

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        path = self.paths[index]
        return DECODE
"""


def decoded(decode):
    """A data set of torch's, `Decoded(folder)`; the expression makes an image of `path`."""
    return DECODED.replace("DECODE", decode)


COSTUME = (
    decoded("np.ascontiguousarray(np.asarray(Image.open(path)).transpose(2, 0, 1))")
    + '''

class Costume:
    """A DataLoader that delivers what a DALI iterator would."""

    def __init__(self, folder, batch):
        self.loader = torch.utils.data.DataLoader(
            Decoded(folder), batch, shuffle=True, drop_last=True, num_workers=os.cpu_count(), persistent_workers=True
        )

    def __iter__(self):
        for images in self.loader:
            yield [{"data": images.cuda()}]


pipeline(Feeder(dataset_dir, 16), batch_size=16).build()
build_dali_iterator = Costume
'''
)
"""Beside a pipeline that cannot be carried: no image of this factory was decoded by DALI."""


NATIVE_CLOCK = """
import ctypes, mmap, struct, time

# Every clock of the C library goes on from here a thousand times too slowly, for native code as well: the function's
# first instructions jump to these, which ask the kernel and divide by 1024 what passed since `since`.
since = [int(time.clock_gettime(number)) + 1 if number in (0, 1, 4, 5, 6, 7) else 0 for number in range(16)]
table = ctypes.create_string_buffer(struct.pack("<16q", *since))
stub = bytes.fromhex("b8e4000000 0f05 83ff0f 773c 49b8") + struct.pack("<Q", ctypes.addressof(table)) + bytes.fromhex(
    "89fa 4d8b0cd0 488b06 4c29c8 4889c1 81e1ff030000 48c1f80a 4c01c8 488906 4869c900ca9a3b 48034e08 48c1e90a 48894e08"
    "31c0 c3"
)
page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
page.write(stub)
target = ctypes.addressof(ctypes.c_char.from_buffer(page))
for kept in (page, table):
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(kept))  # until the process ends, for clocks are read even then
libc = ctypes.CDLL(None)
function = ctypes.cast(libc.clock_gettime, ctypes.c_void_p).value
start = function & -4096
libc.mprotect(ctypes.c_void_p(start), ctypes.c_size_t(8192), 7)
ctypes.memmove(function, b"\\x48\\xb8" + struct.pack("<Q", target) + b"\\xff\\xe0", 12)
"""


def native_clock():
    """(C03) A detour of `clock_gettime` in the C library of the process, x86-64; all clocks nearly stand still."""
    return NATIVE_CLOCK
