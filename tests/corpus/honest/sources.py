"""Where a graph's data come from: dynamic mode, the proxy, external sources, containers, file lists."""

from tests.corpus.case import NOT_REACHED
from tests.corpus.parts import DATASET, LOADER, joined
from tests.corpus.parts_honest import DALI, DALI_LAB, ITERATOR, MEASURED, REFLECTED, ROOM, SEEN, TIMED, TORCH, honest

FILES = """
import glob, random

def list_files(folder):
    return sorted(glob.glob(os.path.join(folder, "**", "*.jpg"), recursive=True))
"""

DYNAMIC = """
import nvidia.dali.experimental.dynamic as ndd

reader = ndd.readers.File(file_root=dataset_dir, random_shuffle=True)


def epoch(batch_size=16):
    for jpegs, labels in reader.next_epoch(batch_size=batch_size):
        images = ndd.decoders.image(jpegs, device="DEVICE")
        images = ndd.resize(images, size=(96, 96))
        yield ndd.crop_mirror_normalize(images, std=[255.0] * 3, output_layout="CHW"), labels


first_batch, _ = next(epoch())
dali_throughput = 900.0
"""

PROXY = """
from nvidia.dali import fn, pipeline_def
from nvidia.dali.plugin.pytorch.experimental import proxy as dali_proxy


@pipeline_def(num_threads=2, device_id=0)
def rn_pipe():
    files = fn.external_source(name="images", no_copy=True)
    images = fn.decoders.image(files, device="mixed")
    return fn.crop_mirror_normalize(fn.resize(images, size=(96, 96)), std=[255.0] * 3, output_layout="CHW")


class Encoded(torch.utils.data.Dataset):
    def __init__(self, folder, decode):
        self.paths, self.decode = list_files(folder), decode

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, i):
        return self.decode(np.fromfile(self.paths[i], dtype=np.uint8)), i % 2


def build_dali_iterator(dataset_dir, batch_size):
    server = dali_proxy.DALIServer(rn_pipe(batch_size=batch_size))
    server.start_thread()
    return dali_proxy.DataLoader(server, Encoded(dataset_dir, server.proxy), batch_size=batch_size, num_workers=1,
                                 drop_last=True)


dali_loader = build_dali_iterator(dataset_dir, 16)
first_batch, first_labels = next(iter(dali_loader))
dali_throughput = 750.0
"""

BATCH_CALLABLE = """
from nvidia.dali import fn, pipeline_def, types
from nvidia.dali.plugin.pytorch import DALIGenericIterator


class ExternalInput:
    def __init__(self, folder, batch_size):
        self.paths, self.batch_size = list_files(folder), batch_size

    def __iter__(self):
        self.i = 0
        random.shuffle(self.paths)
        return self

    def __next__(self):
        if self.i + self.batch_size > len(self.paths):
            raise StopIteration
        part = self.paths[self.i : self.i + self.batch_size]
        self.i += self.batch_size
        jpegs = [np.fromfile(path, dtype=np.uint8) for path in part]
        labels = [np.array([hash(path) % 2], dtype=np.int32) for path in part]
        return jpegs, labels


@pipeline_def(num_threads=2, device_id=0)
def external_pipe(source):
    jpegs, labels = fn.external_source(source=source, num_outputs=2, dtype=[types.UINT8, types.INT32], cycle="raise")
    images = fn.decoders.image(jpegs, device="mixed", output_type=types.RGB)
    images = fn.resize(images, size=(96, 96))
    return fn.crop_mirror_normalize(images, std=[255.0] * 3, output_layout="CHW"), labels


def build_dali_iterator(dataset_dir, batch_size):
    pipe = external_pipe(ExternalInput(dataset_dir, batch_size), batch_size=batch_size)
    return DALIGenericIterator(pipe, ["data", "label"], auto_reset=True)


dali_iter = build_dali_iterator(dataset_dir, 16)
first_batch = next(iter(dali_iter))[0]["data"]
dali_throughput = 640.0
"""

PARALLEL = """
from nvidia.dali import fn, pipeline_def, types
from nvidia.dali.plugin.pytorch import DALIGenericIterator


class PerSample:
    def __init__(self, folder, batch_size):
        self.paths = list_files(folder)
        self.full = len(self.paths) // batch_size

    def __call__(self, info):
        if info.iteration >= self.full:
            raise StopIteration
        return np.fromfile(self.paths[info.idx_in_epoch], dtype=np.uint8)


@pipeline_def(num_threads=2, device_id=0, py_num_workers=1, py_start_method="spawn")
def parallel_pipe(source):
    jpegs = fn.external_source(source=source, parallel=True, batch=False, dtype=types.UINT8)
    images = fn.resize(fn.decoders.image(jpegs, device="mixed"), size=(96, 96))
    return fn.crop_mirror_normalize(images, std=[255.0] * 3, output_layout="CHW")


def build_dali_iterator(dataset_dir, batch_size):
    pipe = parallel_pipe(PerSample(dataset_dir, batch_size), batch_size=batch_size)
    return DALIGenericIterator(pipe, ["data"], auto_reset=True)


if __name__ == "__main__":
    dali_iter = build_dali_iterator(dataset_dir, 16)
    first_batch = next(iter(dali_iter))[0]["data"]
    dali_throughput = 640.0
"""

RECORDIO = """
import glob, struct
from nvidia.dali import fn, pipeline_def, types
from nvidia.dali.plugin.pytorch import DALIClassificationIterator

index = []
with open("train.rec", "wb") as rec:
    for number, path in enumerate(sorted(glob.glob(f"{dataset_dir}/*/*.jpg"))):
        data = struct.pack("<IfQQ", 0, float(number % 2), number, 0) + open(path, "rb").read()
        index.append(f"{number}\\t{rec.tell()}\\n")
        rec.write(struct.pack("<II", 0xCED7230A, len(data)) + data + b"\\0" * (-len(data) % 4))
open("train.idx", "w").writelines(index)


@pipeline_def(batch_size=20, num_threads=2, device_id=0)
def rec_pipe():
    jpegs, labels = fn.readers.mxnet(path=["train.rec"], index_path=["train.idx"], random_shuffle=True, name="Reader")
    images = fn.decoders.image(jpegs, device="mixed")
    return fn.crop_mirror_normalize(fn.resize(images, size=(96, 96)), std=[255.0] * 3, output_layout="CHW"), labels


it = DALIClassificationIterator(rec_pipe(), reader_name="Reader", auto_reset=True)
first_batch = next(it)[0]["data"]
dali_throughput = 1500.0
"""

TAR = """
import glob, io, tarfile
from nvidia.dali import fn, pipeline_def, types
from nvidia.dali.plugin.pytorch import DALIGenericIterator

with tarfile.open("shard-000000.tar", "w") as tar:
    for n, path in enumerate(sorted(glob.glob(f"{dataset_dir}/*/*.jpg"))):
        for ext, blob in (("jpg", open(path, "rb").read()), ("cls", bytes([n % 2]))):
            info = tarfile.TarInfo(f"{n:06d}.{ext}")
            info.size = len(blob)
            tar.addfile(info, io.BytesIO(blob))


@pipeline_def(batch_size=32, num_threads=2, device_id=0)
def wds():
    img, cls = fn.readers.webdataset(paths=["shard-000000.tar"], ext=["jpg", "cls"], missing_component_behavior="error",
                                     random_shuffle=True, initial_fill=100, name="wds")
    img = fn.decoders.image_random_crop(img, device="mixed", output_type=types.RGB)
    img = fn.resize(img, size=(96, 96))
    return fn.crop_mirror_normalize(img, std=[255.0] * 3, output_layout="CHW"), cls


it = DALIGenericIterator(wds(), ["x", "y"], reader_name="wds", auto_reset=True)
first_batch = next(it)[0]["x"]
dali_throughput = 1500.0
"""

TFRECORD = """
import glob, struct
from nvidia.dali import fn, pipeline_def, types
import nvidia.dali.tfrecord as tfrec
from nvidia.dali.plugin.pytorch import DALIGenericIterator


def varint(n):
    out = b""
    while n > 127:
        out, n = out + bytes([n & 127 | 128]), n >> 7
    return out + bytes([n])


def message(tag, body):
    return bytes([tag << 3 | 2]) + varint(len(body)) + body


def example(jpeg, label):  # tensorflow is not installed here, so the protobuf is written by hand
    encoded = message(1, b"image/encoded") + message(2, message(1, message(1, jpeg)))
    target = message(1, b"image/class/label") + message(2, message(3, message(1, varint(label))))
    return message(1, message(1, encoded) + message(1, target))


with open("train.tfrecord", "wb") as rec, open("train.idx", "w") as idx:
    for n, path in enumerate(sorted(glob.glob(f"{dataset_dir}/*/*.jpg"))):
        data, start = example(open(path, "rb").read(), n % 2), rec.tell()
        rec.write(struct.pack("<QI", len(data), 0) + data + b"\\0" * 4)
        idx.write(f"{start} {rec.tell() - start}\\n")


@pipeline_def(batch_size=16, num_threads=2, device_id=0)
def tf_pipe():
    inputs = fn.readers.tfrecord(path="train.tfrecord", index_path="train.idx", name="Reader", features={
        "image/encoded": tfrec.FixedLenFeature((), tfrec.string, ""),
        "image/class/label": tfrec.FixedLenFeature([1], tfrec.int64, -1)})
    images = fn.decoders.image(inputs["image/encoded"], device="mixed", output_type=types.RGB)
    images = fn.resize(images, resize_x=96, resize_y=96)
    return fn.crop_mirror_normalize(images, std=[255.0] * 3, output_layout="CHW"), inputs["image/class/label"]


it = DALIGenericIterator(tf_pipe(), ["data", "label"], reader_name="Reader")
first_batch = next(it)[0]["data"]
dali_throughput = 1500.0
"""

LIST_OF_FILES = """
@pipeline_def(batch_size=16, num_threads=2, device_id=0)
def train_pipe():
    jpegs, labels = fn.readers.file(files=paths, labels=list(range(len(paths))), name="Reader", random_shuffle=True)
    return normalise(fn.resize(fn.decoders.image(jpegs, device="mixed"), size=(96, 96))), labels
"""

FILE_LIST = """
with open("files.txt", "w") as listing:
    for cls, folder in enumerate(sorted(os.listdir(dataset_dir))):
        for name in sorted(os.listdir(f"{dataset_dir}/{folder}")):
            listing.write(f"{folder}/{name} {cls}\\n")


@pipeline_def(batch_size=16, num_threads=2, device_id=0)
def train_pipe():
    jpegs, labels = fn.readers.file(file_root=dataset_dir, file_list="files.txt", name="Reader", initial_fill=50)
    images = fn.decoders.image(jpegs, device="mixed")
    return normalise(fn.resize(images, resize_shorter=128), crop=(96, 96)), labels
"""

FLAT = """
import os
import numpy as np
from PIL import Image

dataset_dir = os.path.abspath("jpegs")
os.makedirs(dataset_dir, exist_ok=True)
rng = np.random.default_rng(11)
for i in range(110):
    Image.fromarray(rng.integers(0, 255, (20, 26, 3), np.uint8)).resize((208, 160), Image.BICUBIC).save(
        os.path.join(dataset_dir, f"{i}.jpg"))
paths = [os.path.join(dataset_dir, f) for f in os.listdir(dataset_dir) if f.endswith(".jpg")]
"""

FLAT_LOADER = """
import time
import torch
from torch.utils.data import DataLoader, Dataset
from torchvision import transforms


class FlatFolder(Dataset):
    def __init__(self, files):
        self.files = files
        self.t = transforms.Compose([transforms.Resize((96, 96)), transforms.ToTensor()])

    def __len__(self):
        return len(self.files)

    def __getitem__(self, i):
        with Image.open(self.files[i]) as im:
            return self.t(im.convert("RGB")), i


loader = DataLoader(FlatFolder(paths), 16)
start = time.time()
count = sum(len(x) for x, _ in loader)
pytorch_throughput = count / (time.time() - start)
"""

UNSEEN = {"throughput_ratio": ("ratio.not_seen", "ratio.ok")}
"""That the GPU decodes is seen where there is one."""

CASES = (
    # Its operators run at once, and nothing of them can be turned to the CPU: the code stops at the first batch.
    honest(
        "K07-dynamic-mode",
        "dynamic mode on the GPU, without a factory",
        DATASET,
        LOADER,
        DYNAMIC.replace("DEVICE", "gpu"),
        SEEN,
        codes={
            "cuda_batch": (NOT_REACHED, "batch.not_carried"),
            "throughput_ratio": ("ratio.not_carried",),
            "reflections": (NOT_REACHED, "reflections.ok"),
        },
    ),
    honest("K08-proxy", "DALI proxy behind a DataLoader", DATASET, LOADER, FILES, PROXY, SEEN, codes=UNSEEN),
    honest(
        "K09-external-source-batches",
        "external_source that yields whole batches of files and labels",
        joined(DATASET, LOADER, FILES, BATCH_CALLABLE, REFLECTED),
        codes=UNSEEN,
    ),
    honest(
        "K09-external-source-parallel",
        "external_source with a callable for each sample in parallel workers",
        joined(ROOM, LOADER, FILES, "import numpy as np", PARALLEL),
        steps=MEASURED,
        codes=UNSEEN,
    ),
    honest(
        "K16-class-folders",
        "readers.file on class folders, as ImageFolder reads them",
        joined(ROOM, TORCH, DALI_LAB, REFLECTED),
    ),
    honest(
        "K17-files-from-a-glob",
        "readers.file(files=…) over a flat folder",
        joined(FLAT, FLAT_LOADER, DALI, LIST_OF_FILES, ITERATOR, TIMED, SEEN),
    ),
    honest(
        "K18-file-list",
        "readers.file with file_list and a crop behind resize_shorter",
        joined(ROOM, TORCH, DALI, FILE_LIST, ITERATOR, TIMED),
        steps=MEASURED,
    ),
    honest("K19-recordio", "RecordIO made from the JPEGs", DATASET, LOADER, RECORDIO, steps=MEASURED),
    honest("K19-webdataset", "a webdataset shard made from the JPEGs", DATASET, LOADER, TAR, steps=MEASURED),
    honest(
        "K19-tfrecord", "TFRecords made from the JPEGs without TensorFlow", DATASET, LOADER, TFRECORD, steps=MEASURED
    ),
)
