"""Iterators and loops that batches are drawn with."""

from tests.corpus.parts import DATASET, GRAPH, LOADER, joined
from tests.corpus.parts_honest import (
    CROPPED,
    CROPS,
    DALI,
    DALI_LAB,
    GRADIENTS,
    IN_ROOM,
    ITERATOR,
    MEASURED,
    ON_GRADIENTS,
    PIPED,
    REFLECTED,
    ROOM,
    SEEN,
    TIMED,
    TORCH,
    honest,
)

RAW = """
from nvidia.dali.plugin.pytorch import feed_ndarray, to_torch_type

pipe = train_pipe()
pipe.build()


def as_torch(tensors):
    dense = tensors.as_tensor()
    out = torch.empty(dense.shape(), dtype=to_torch_type[dense.dtype], device="cuda")
    feed_ndarray(dense, out, cuda_stream=torch.cuda.current_stream())
    return out


images, labels = pipe.run()
first_batch = as_torch(images)
print(first_batch.shape, first_batch.device, labels.as_cpu().as_array().ravel()[:4])
print(type(images).__name__, len(images), images[0].shape())
assert first_batch.is_cuda

begin = time.time()
for _ in range(10):
    batch = as_torch(pipe.run()[0])
torch.cuda.synchronize()
dali_throughput = 10 * 16 / (time.time() - begin)
"""

LEGACY = """
from nvidia.dali import ops
from nvidia.dali.pipeline import Pipeline


class HybridTrainPipe(Pipeline):
    def __init__(self, batch_size, num_threads, device_id, data_dir, crop):
        super(HybridTrainPipe, self).__init__(batch_size, num_threads, device_id, seed=12 + device_id)
        self.input = ops.readers.File(file_root=data_dir, shard_id=0, num_shards=1, random_shuffle=True)
        self.decode = ops.decoders.ImageRandomCrop(device="mixed", output_type=types.RGB,
                                                   random_aspect_ratio=[0.8, 1.25], random_area=[0.1, 1.0])
        self.res = ops.Resize(device="gpu", resize_x=crop, resize_y=crop, interp_type=types.INTERP_TRIANGULAR)
        self.cmnp = ops.CropMirrorNormalize(device="gpu", dtype=types.FLOAT, output_layout=types.NCHW,
                                            crop=(crop, crop), mean=[123.675, 116.28, 103.53],
                                            std=[58.395, 57.12, 57.375])
        self.coin = ops.random.CoinFlip(probability=0.5)

    def define_graph(self):
        rng = self.coin()
        self.jpegs, self.labels = self.input(name="Reader")
        images = self.decode(self.jpegs)
        images = self.res(images)
        output = self.cmnp(images.gpu(), mirror=rng)
        return [output, self.labels]


pipe = HybridTrainPipe(batch_size=16, num_threads=2, device_id=0, data_dir=dataset_dir, crop=96)
pipe.build()
dali_loader = DALIClassificationIterator(pipe, size=int(pipe.epoch_size("Reader")), auto_reset=True)
first_batch = next(dali_loader)[0]["data"]
"""

OLD_IMPORT = """
import nvidia.dali.ops as ops
from nvidia.dali.pipeline import Pipeline


class SimplePipeline(Pipeline):
    def __init__(self):
        Pipeline.__init__(self, 16, 2, 0)
        self.reader = ops.FileReader(file_root=dataset_dir)
        self.decode = ops.ImageDecoder(device="mixed", output_type=types.RGB)
        self.resize = ops.Resize(device="gpu", resize_x=96, resize_y=96)

    def define_graph(self):
        jpegs, labels = self.reader()
        return self.resize(self.decode(jpegs)), labels


dali_iter = DALIGenericIterator([SimplePipeline()], ["data", "label"], size=100)
first_batch = next(dali_iter)
dali_throughput = 812
"""

EXECUTORS = """
@pipeline_def(batch_size=16, num_threads=2, device_id=0, EXECUTOR)
def train_pipe():
    jpegs, labels = fn.readers.file(file_root=str(dataset_dir), random_shuffle=True, name="Reader")
    images = fn.decoders.image(jpegs, device="mixed")
    return normalise(fn.resize(images, size=[96, 96])), labels.gpu()
"""

WRAPPED = """
import itertools


class DALIWrapper:
    \"\"\"Gives (images, targets) like a DataLoader does, and has a length.\"\"\"

    def __init__(self, pipe):
        self.it = DALIGenericIterator([pipe], ["data", "label"], reader_name="Reader",
                                      last_batch_policy=LastBatchPolicy.DROP, auto_reset=False)

    def __len__(self):
        return len(self.it)

    def __iter__(self):
        for out in self.it:
            yield out[0]["data"], out[0]["label"].squeeze(-1).long()
        self.it.reset()


loader = DALIWrapper(train_pipe())
for epoch in range(2):
    for step, (x, y) in enumerate(loader):
        if epoch == 0 and step == 0:
            first_batch = x
    assert step + 1 == len(loader)
endless = itertools.chain.from_iterable(itertools.repeat(loader))
t = time.perf_counter()
n = sum(x.size(0) for x, _ in itertools.islice(endless, 12))
torch.cuda.synchronize()
dali_throughput = n / (time.perf_counter() - t)
"""

GENERATOR = """
def batches(folder, batch_size=16):
    it = DALIGenericIterator(train_pipe(), ["data", "label"], reader_name="Reader", auto_reset="yes")
    while True:
        for b in it:
            yield b[0]


stream = batches(dataset_dir)
first_batch = next(stream)
dali_throughput = 1000.0
"""

WITHOUT_END = """
it = DALIGenericIterator(train_pipe(), ["data", "label"], auto_reset=True)  # no reader_name: never ends
it = iter(it)
first_batch = next(it)[0]["data"]
t0 = time.time()
for k, b in enumerate(it):
    if k == 20:
        break
dali_throughput = round(20 * 16 / (time.time() - t0))
"""

GONE = """
dali_iter = DALIClassificationIterator(train_pipe(), reader_name="Reader")
first_batch = None
seen, t0 = 0, time.perf_counter()
for data in dali_iter:
    if first_batch is None:
        first_batch = data[0]["data"]
    seen += len(data[0]["data"])
dali_throughput = seen / (time.perf_counter() - t0)
"""

DELETED = """
import gc


def measure():
    it = DALIClassificationIterator(train_pipe(), reader_name="Reader", auto_reset=True)
    first = next(it)[0]["data"].clone()
    n, t0 = 0, time.perf_counter()
    for b in it:
        n += b[0]["data"].shape[0]
    return first, n / (time.perf_counter() - t0)


first_batch, dali_throughput = measure()
gc.collect()
torch.cuda.empty_cache()
"""

CASES = (
    honest(
        "K01-output-map",
        "DALIGenericIterator with names of its own in output_map",
        joined(
            DATASET,
            LOADER,
            GRAPH.replace('["data", "label"]', 'output_map=["pixels", "target"]').replace('["data"]', '["pixels"]'),
            SEEN,
        ),
    ),
    honest(
        "K01-three-outputs",
        "a third output beside images and labels: the mirror flags",
        ROOM,
        TORCH,
        DALI,
        CROPS.replace("mirror=fn.random.coin_flip(probability=0.5)", "mirror=flip")
        .replace("    images = fn.random_resized", "    flip = fn.random.coin_flip()\n    images = fn.random_resized")
        .replace("labels.gpu()", "labels, flip"),
        """
        dali_iter = DALIGenericIterator([train_pipe()], ["data", "label", "flip"], reader_name="Reader")
        first_batch = next(dali_iter)[0]
        dali_throughput = 900.0
        """,
        steps=("pipeline",),
    ),
    honest(
        "K02-classification-iterator",
        "DALIClassificationIterator, warmed up and timed over epochs",
        joined(GRADIENTS, TORCH, DALI_LAB, REFLECTED),
    ),
    honest("K03-raw-run", "pipe.run() in a loop, copied into torch tensors with feed_ndarray", IN_ROOM, RAW, SEEN),
    honest(
        "K05-legacy-class",
        "class HybridTrainPipe(Pipeline) with ops and define_graph",
        joined(ROOM, TORCH, DALI, LEGACY, TIMED, REFLECTED),
    ),
    honest(
        "K05-legacy-names",
        "ops.FileReader and ops.ImageDecoder, names of the first versions",
        joined(ROOM, DALI, OLD_IMPORT),
        steps=("pipeline",),
    ),
    *(
        honest(
            f"K06-{name}",
            f"the pipeline is built with {options}",
            joined(GRADIENTS, TORCH, DALI, EXECUTORS.replace("EXECUTOR", options), ITERATOR, TIMED),
            steps=steps,
        )
        for name, options, steps in (
            ("exec-dynamic", "exec_dynamic=True", MEASURED),
            ("exec-static", "exec_dynamic=False", MEASURED),
            ("exec-simple", "exec_async=False, exec_pipelined=False", PIPED),
        )
    ),
    honest(
        "K38-wrapped-in-a-class",
        "the iterator inside a wrapper class and itertools, reset by hand",
        joined(ON_GRADIENTS, WRAPPED, SEEN),
    ),
    honest(
        "K38-generator", "a generator function hides the iterator", GRADIENTS, CROPPED, GENERATOR, steps=("pipeline",)
    ),
    honest("K38-without-end", "an iterator without reader_name, left with break", IN_ROOM, WITHOUT_END, steps=PIPED),
    honest("K40-exhausted", "the iterator is at its end when the code ends", IN_ROOM, GONE, steps=MEASURED),
    honest(
        "K40-deleted", "iterator and pipeline were local to a function and are gone", IN_ROOM, DELETED, steps=MEASURED
    ),
)
