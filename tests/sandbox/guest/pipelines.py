"""DALI pipelines as learners write them; for children that have DALI. Labels say `gpu` as the lab's code does."""

from collections.abc import Callable
from pathlib import Path
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


def finished(images: Any, **options: Any) -> Any:
    """Resized, then normalised."""
    return normalised(fn.resize(images, size=(SIZE, SIZE)), **options)


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
    return finished(images), labels


def over_files(outputs: Callable[..., Any], root: str = "/nowhere", *, branches: bool = False, **reader: Any) -> Any:
    """A pipeline that delivers what this function makes of the encoded images and labels of a folder."""

    @pipeline_def(enable_conditionals=branches)
    def pipe():
        return outputs(*fn.readers.file(file_root=root, **reader))

    return pipe(**BASIC)


def small(jpegs: Any) -> Any:
    """Whole images of one size."""
    return fn.resize(fn.decoders.image(jpegs, device="mixed"), size=(SIZE, SIZE))


def augmented(augment: Callable[..., Any], root: str, **options: Any) -> Any:
    """A pipeline with an automatic augmentation, which is a large graph with conditionals."""

    def outputs(jpegs, labels):
        return normalised(augment(small(jpegs), shape=(SIZE, SIZE), **options)), labels

    return over_files(outputs, root, branches=True)


def sometimes(jpegs: Any, labels: Any) -> Any:
    """Images behind an `if` of the learner's own."""
    images = small(jpegs)
    if fn.random.coin_flip(dtype=types.BOOL):
        images = fn.rotate(images, angle=fn.random.uniform(range=(-10.0, 10.0)), keep_size=True, fill_value=0)
    else:
        images = fn.color_twist(images, brightness=fn.random.uniform(range=(0.8, 1.2)))
    return normalised(images), labels


def with_python(jpegs: Any, labels: Any) -> Any:
    """Python code inside the graph."""
    images = fn.decoders.image(jpegs, device="cpu")
    return fn.python_function(images, function=lambda image: image, num_outputs=1), labels


@pipeline_def
def two_readers(root: str):
    """Two readers whose batches are joined."""
    jpegs_a, labels_a = fn.readers.file(file_root=root, name="A")
    jpegs_b, labels_b = fn.readers.file(file_root=root, name="B")
    return fn.cat(small(jpegs_a), small(jpegs_b), axis=0), labels_a + labels_b


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


def corpus(folder: Path) -> dict[str, bytes]:
    """Serialized graphs of every kind over the JPEGs of a folder, by name."""
    root = str(folder)
    files = sorted(str(path) for path in folder.glob("*/*.jpg"))
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
        "file_list": from_list({"file_list": f"{root}/list.txt"}, **BASIC),
        "filters": from_list({"file_root": root, "file_filters": ["*.jpg"], "dir_filters": ["class_*"]}, **BASIC),
        "moved to the gpu": over_files(
            lambda jpegs, labels: (finished(fn.decoders.image(jpegs, device="cpu").gpu()), labels), root
        ),
        "trivial": augmented(trivial_augment.trivial_augment_wide, root),
        "rand": augmented(rand_augment.rand_augment, root, n=2, m=9),
        "auto": augmented(auto_augment.auto_augment_image_net, root),
        "conditional": over_files(sometimes, root, branches=True),
        "two readers": two_readers(root, **BASIC),
        "labels first": over_files(
            lambda jpegs, labels: (labels, fn.random.uniform(range=(0.0, 1.0), shape=(4,)), small(jpegs)), root
        ),
        "ragged": over_files(lambda jpegs, labels: (fn.decoders.image(jpegs, device="mixed"), labels), root),
        "bytes": over_files(lambda jpegs, labels: (small(jpegs), labels), root),
        "no images": over_files(
            lambda jpegs, labels: (fn.reductions.mean(fn.decoders.image(jpegs, device="cpu")), labels), root
        ),
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
