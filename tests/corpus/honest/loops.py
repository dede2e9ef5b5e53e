"""Batches, epochs, shards and queues: K33 to K37."""

from tests.corpus.case import Honest
from tests.corpus.parts_honest import DALI, GRADIENTS, PIPED, ROOM, SEEN, TORCH, WHOLE, honest

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


def lab(
    id_: str,
    title: str,
    build: str = "batch_size=16",
    *,
    reader: str = "",
    iterator: str = 'reader_name="Reader", auto_reset=True',
    data: str = GRADIENTS,
    steps: tuple[str, ...] = WHOLE,
) -> Honest:
    """A whole lab, with options of the pipeline, its reader and its iterator."""
    build = f"{build}, num_threads=2, device_id=0,"
    end = USED.replace("BUILD", build).replace("READER", reader).replace("ITERATOR", iterator)
    return honest(id_, title, data, TORCH, DALI, PIPE, end, SEEN, steps=steps)


CASES = (
    lab(
        "K34-drop",
        "last batch dropped, reset by hand",
        steps=("pipeline",),
        iterator='reader_name="Reader", last_batch_policy=LastBatchPolicy.DROP, auto_reset=False',
        data=ROOM,
    ),
    lab(
        "K34-fill",
        "last batch filled up",
        iterator='reader_name="Reader", last_batch_policy=LastBatchPolicy.FILL',
        data=ROOM,
    ),
    lab(
        "K34-partial",
        "last batch short, samples padded by the reader",
        reader="more={'pad_last_batch': True}",
        iterator='reader_name="Reader", last_batch_policy=LastBatchPolicy.PARTIAL, auto_reset=True',
        data=ROOM,
    ),
    lab(
        "K34-size",
        "size instead of reader_name, as before LastBatchPolicy",
        steps=PIPED,
        iterator="size=128, fill_last_batch=False, last_batch_padded=True",
        data=ROOM,
    ),
    lab("K33-batch-17", "batches of 17", "batch_size=17"),
    lab("K33-batch-128", "batches of 128", "batch_size=128"),
    lab("K33-batch-1024", "batches of 1024", "batch_size=1024", steps=PIPED),
    lab(
        "K35-shards",
        "second of two shards, stuck to it, as written for two GPUs",
        reader="shard_id=1, num_shards=2, more={'stick_to_shard': True, 'pad_last_batch': True}",
    ),
    lab(
        "K36-initial-fill",
        "a small shuffle buffer that is read lazily",
        reader="more={'initial_fill': 32, 'prefetch_queue_depth': 2, 'read_ahead': True, 'lazy_init': True}",
    ),
    lab(
        "K36-shuffle-after-epoch",
        "shuffled after every epoch without a buffer",
        steps=PIPED,
        reader="is_training=False, more=dict(shuffle_after_epoch=True)",
    ),
    *(
        lab(
            f"K37-depth-{name}",
            f"prefetch_queue_depth={depth}",
            f"batch_size=16, prefetch_queue_depth={depth}",
            steps=PIPED,
        )
        for name, depth in (("1", "1"), ("8", "8"), ("separate", '{"cpu_size": 5, "gpu_size": 3}'))
    ),
)
