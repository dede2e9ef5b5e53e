"""Batches, epochs, shards and queues: K33 to K37."""

from tests.corpus.case import Honest
from tests.corpus.parts import joined
from tests.corpus.parts_honest import DALI, GRADIENTS, ROOM, SEEN, TORCH, WHOLE

PIPE = """
@pipeline_def
def rn50_pipeline(data_dir, crop=96, shard_id=0, num_shards=1, dali_cpu=False, is_training=True, more={}):
    images, labels = fn.readers.file(file_root=data_dir, shard_id=shard_id, num_shards=num_shards,
                                     random_shuffle=is_training, name="Reader", **more)
    images = fn.decoders.image_random_crop(images, device="cpu" if dali_cpu else "mixed", output_type=types.RGB,
                                           random_area=[0.1, 1.0], num_attempts=100)
    images = fn.resize(images, device="cpu" if dali_cpu else "gpu", resize_x=crop, resize_y=crop)
    mirror = fn.random.coin_flip(probability=0.5)
    return normalise(images.gpu(), mirror=mirror), labels.gpu()
"""
"""The pipeline of DALI's ResNet-50 example, with the options of its `main.py`."""

USED = """
pipe = rn50_pipeline(BUILD data_dir=str(dataset_dir), READER)
pipe.build()
train_loader_dali = DALIClassificationIterator(pipe, ITERATOR)
first_batch = None
shapes = []
tic = time.perf_counter()
for data in train_loader_dali:
    image, target = data[0]["data"], data[0]["label"].squeeze(-1).long()
    first_batch = image if first_batch is None else first_batch
    shapes.append(image.shape[0])
    assert target.device == image.device
torch.cuda.synchronize()
dali_throughput = sum(shapes) / (time.perf_counter() - tic)
"""


def lab(build: str = "batch_size=16", reader: str = "", iterator: str = "", data: str = GRADIENTS) -> str:
    """A whole lab, with options of the pipeline, its reader and its iterator."""
    build = f"{build}, num_threads=2, device_id=0," if "num_threads" not in build else f"{build}, device_id=0,"
    iterator = iterator or 'reader_name="Reader", auto_reset=True'
    end = USED.replace("BUILD", build).replace("READER", reader).replace("ITERATOR", iterator)
    return joined(data, TORCH, DALI, PIPE, end, SEEN)


CASES = (
    *(
        Honest(
            id=f"K34-{name}",
            title=title,
            content=lab(reader=reader, iterator=iterator, data=ROOM),
            steps=steps,
        )
        for name, title, reader, iterator, steps in (
            (
                "drop",
                "last batch dropped, reset by hand",
                "",
                'reader_name="Reader", last_batch_policy=LastBatchPolicy.DROP, auto_reset=False',
                ("pipeline",),
            ),
            (
                "fill",
                "last batch filled up",
                "",
                'reader_name="Reader", last_batch_policy=LastBatchPolicy.FILL',
                WHOLE,
            ),
            (
                "partial",
                "last batch short, samples padded by the reader",
                "more={'pad_last_batch': True}",
                'reader_name="Reader", last_batch_policy=LastBatchPolicy.PARTIAL, auto_reset=True',
                WHOLE,
            ),
            (
                "size",
                "size instead of reader_name, as before LastBatchPolicy",
                "",
                "size=128, fill_last_batch=False, last_batch_padded=True",
                ("pipeline", "benchmark"),
            ),
        )
    ),
    *(
        Honest(
            id=f"K33-batch-{size}",
            title=f"batches of {size}",
            content=lab(f"batch_size={size}"),
            steps=steps,
        )
        for size, steps in ((17, WHOLE), (128, WHOLE), (1024, ("pipeline", "benchmark")))
    ),
    Honest(
        id="K35-shards",
        title="second of two shards, stuck to it, as written for two GPUs",
        content=lab(reader="shard_id=1, num_shards=2, more={'stick_to_shard': True, 'pad_last_batch': True}"),
        steps=WHOLE,
    ),
    Honest(
        id="K36-initial-fill",
        title="a small shuffle buffer that is read lazily",
        content=lab(
            reader="more={'initial_fill': 32, 'prefetch_queue_depth': 2, 'read_ahead': True, 'lazy_init': True}"
        ),
        steps=WHOLE,
    ),
    Honest(
        id="K36-shuffle-after-epoch",
        title="shuffled after every epoch without a buffer",
        content=lab(reader="is_training=False, more=dict(shuffle_after_epoch=True)"),
        steps=("pipeline", "benchmark"),
    ),
    *(
        Honest(
            id=f"K37-depth-{name}",
            title=f"prefetch_queue_depth={depth}",
            content=lab(f"batch_size=16, prefetch_queue_depth={depth}{more}"),
            steps=("pipeline", "benchmark"),
        )
        for name, depth, more in (
            ("1", "1", ""),
            ("8", "8", ""),
            ("separate", '{"cpu_size": 5, "gpu_size": 3}', ""),
        )
    ),
)
