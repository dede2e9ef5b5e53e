"""DALI pipelines as learners write them; for children that have DALI. Labels say `gpu` as the lab's code does."""

from typing import Any

from nvidia.dali import fn, ops, pipeline_def, types
from nvidia.dali.auto_aug import auto_augment, rand_augment, trivial_augment
from nvidia.dali.pipeline import Pipeline

SIZE = 32
MEAN = [0.485 * 255, 0.456 * 255, 0.406 * 255]
STD = [0.229 * 255, 0.224 * 255, 0.225 * 255]
BASIC = {"batch_size": 16, "num_threads": 2, "device_id": None, "seed": 7}


def normalised(images: Any, **options: Any) -> Any:
    """The lab's last operator."""
    return fn.crop_mirror_normalize(images, dtype=types.FLOAT, output_layout="CHW", mean=MEAN, std=STD, **options)


@pipeline_def
def lab(
    root: str, *, device: str = "mixed", reader: dict[str, Any] | None = None, decoder: dict[str, Any] | None = None
):
    """The lab's own pipeline."""
    jpegs, labels = fn.readers.file(file_root=root, random_shuffle=True, name="Reader", **(reader or {}))
    images = fn.decoders.image(jpegs, device=device, output_type=types.RGB, **(decoder or {}))
    images = fn.resize(images, resize_x=SIZE + 8, resize_y=SIZE + 8)
    images = fn.random_resized_crop(images, size=(SIZE, SIZE))
    images = normalised(images, mirror=fn.random.coin_flip(probability=0.5))
    return images, labels.gpu() if device == "mixed" else labels


@pipeline_def
def from_list(source: dict[str, Any]):
    """Reads a list of files, or a text file with such a list."""
    jpegs, labels = fn.readers.file(**source)
    images = fn.decoders.image_random_crop(jpegs, device="mixed")
    return normalised(fn.resize(images, size=(SIZE, SIZE))), labels


def small(root: str, **reader: Any) -> Any:
    """Whole images of one size, and labels."""
    jpegs, labels = fn.readers.file(file_root=root, **reader)
    return fn.resize(fn.decoders.image(jpegs, device="mixed"), size=(SIZE, SIZE)), labels


@pipeline_def
def decoded_on_the_cpu(root: str):
    """CPU decode, moved to the GPU by hand."""
    jpegs, labels = fn.readers.file(file_root=root)
    images = fn.decoders.image(jpegs, device="cpu").gpu()
    return normalised(fn.resize(images, size=(SIZE, SIZE))), labels


@pipeline_def(enable_conditionals=True)
def trivial(root: str):
    """TrivialAugment, which is a large graph with conditionals."""
    images, labels = small(root)
    return normalised(trivial_augment.trivial_augment_wide(images, shape=(SIZE, SIZE))), labels


@pipeline_def(enable_conditionals=True)
def randomly(root: str):
    """RandAugment."""
    images, labels = small(root)
    return normalised(rand_augment.rand_augment(images, n=2, m=9, shape=(SIZE, SIZE))), labels


@pipeline_def(enable_conditionals=True)
def automatic(root: str):
    """AutoAugment, the largest graph of the three."""
    images, labels = small(root)
    return normalised(auto_augment.auto_augment_image_net(images, shape=(SIZE, SIZE))), labels


@pipeline_def(enable_conditionals=True)
def sometimes(root: str):
    """An `if` of the learner's own."""
    images, labels = small(root)
    if fn.random.coin_flip(dtype=types.BOOL):
        images = fn.rotate(images, angle=fn.random.uniform(range=(-10.0, 10.0)), keep_size=True, fill_value=0)
    else:
        images = fn.color_twist(images, brightness=fn.random.uniform(range=(0.8, 1.2)))
    return normalised(images), labels


@pipeline_def
def with_python(root: str):
    """Python code inside the graph."""
    jpegs, labels = fn.readers.file(file_root=root)
    images = fn.resize(fn.decoders.image(jpegs, device="cpu"), size=(SIZE, SIZE))
    return fn.python_function(images, function=lambda image: image, num_outputs=1), labels


@pipeline_def
def two_readers(first: str, second: str):
    """Two readers whose batches are joined."""
    images_a, labels_a = small(first, name="A")
    images_b, labels_b = small(second, name="B")
    return fn.cat(images_a, images_b, axis=0), labels_a + labels_b


@pipeline_def
def labels_first(root: str):
    """Outputs the other way round, beside some numbers."""
    images, labels = small(root)
    return labels, fn.random.uniform(range=(0.0, 1.0), shape=(4,)), images


@pipeline_def
def raw_pixels(root: str, *, ragged: bool):
    """Bytes in HWC."""
    if not ragged:
        return small(root)
    jpegs, labels = fn.readers.file(file_root=root)
    return fn.decoders.image(jpegs, device="mixed"), labels


@pipeline_def
def no_images(root: str):
    """Labels only; the images are decoded and dropped in favour of their mean."""
    jpegs, labels = fn.readers.file(file_root=root)
    return fn.reductions.mean(fn.decoders.image(jpegs, device="cpu")), labels


class Legacy(Pipeline):
    """The class API of DALI's first years."""

    def __init__(self, root: str) -> None:
        super().__init__(**BASIC)
        self.reader = ops.readers.File(file_root=root, random_shuffle=True)
        self.decode = ops.decoders.Image(device="mixed", output_type=types.RGB)
        self.resize = ops.Resize(device="gpu", size=(SIZE, SIZE))
        self.finish = ops.CropMirrorNormalize(device="gpu", dtype=types.FLOAT, mean=MEAN, std=STD)
        self.coin = ops.random.CoinFlip(probability=0.5)

    def define_graph(self):
        jpegs, labels = self.reader(name="Reader")
        return self.finish(self.resize(self.decode(jpegs)), mirror=self.coin()), labels


BIG_HINTS = {
    "device_memory_padding": 1 << 40,
    "host_memory_padding": 1 << 40,
    "preallocate_width_hint": 1 << 20,
    "preallocate_height_hint": 1 << 20,
    "bytes_per_sample_hint": 1 << 40,
}
CACHE = {"cache_size": 4096, "cache_type": "threshold", "cache_threshold": 1, "cache_debug": True}


def corpus(root: str, other: str, file_list: str, files: list[str]) -> dict[str, bytes]:
    """Serialized graphs of every kind, by name."""
    made = {
        "lab": lab(root, **BASIC),
        "cpu": lab(root, device="cpu", **BASIC),
        "legacy": Legacy(root),
        "old executor": lab(root, **BASIC, exec_dynamic=False),
        "deep queue": lab(root, **BASIC, prefetch_queue_depth={"cpu_size": 40, "gpu_size": 3}, exec_dynamic=False),
        "many threads": lab(root, **{**BASIC, "num_threads": 500, "prefetch_queue_depth": 50}),
        "sharded": lab(
            root, reader={"num_shards": 4, "shard_id": 2, "stick_to_shard": True, "pad_last_batch": True}, **BASIC
        ),
        "shuffled": lab(root, reader={"initial_fill": 1 << 30, "prefetch_queue_depth": 500}, **BASIC),
        "cached": lab(root, decoder=CACHE, reader={"skip_cached_images": True}, **BASIC),
        "big hints": lab(root, decoder=BIG_HINTS, reader={"tensor_init_bytes": 1 << 30}, **BASIC),
        "files": from_list({"files": files, "labels": list(range(len(files)))}, **BASIC),
        "file_list": from_list({"file_list": file_list}, **BASIC),
        "filters": from_list({"file_root": root, "file_filters": ["*.jpg"], "dir_filters": ["class_*"]}, **BASIC),
        "moved to the gpu": decoded_on_the_cpu(root, **BASIC),
        "trivial": trivial(root, **BASIC),
        "rand": randomly(root, **BASIC),
        "auto": automatic(root, **BASIC),
        "conditional": sometimes(root, **BASIC),
        "two readers": two_readers(root, other, **BASIC),
        "labels first": labels_first(root, **BASIC),
        "ragged": raw_pixels(root, ragged=True, **BASIC),
        "bytes": raw_pixels(root, ragged=False, **BASIC),
        "no images": no_images(root, **BASIC),
    }
    return {name: bytes(pipe.serialize()) for name, pipe in made.items()}


def draw(graph: bytes, *, separated: bool = False) -> list[dict[str, Any]]:
    """Runs a serialized graph on the CPU with DALI alone; what each output of the first batch is."""
    queues = {"prefetch_queue_depth": {"cpu": 2, "gpu": 2}, "exec_pipelined": True} if separated else {}
    outputs = Pipeline.deserialize(graph, **queues).run()
    return [
        {
            "shapes": [list(output[i].shape()) for i in range(len(output))],
            "type": str(output.dtype).rpartition(".")[2],
            "class": type(output).__name__,
            "values": output.as_array().ravel().tolist()
            if output.is_dense_tensor() and output[0].shape() == [1]
            else [],
            "sources": sorted({output[i].source_info() for i in range(len(output))}),
        }
        for output in outputs
    ]
