"""Functions that build one rank's iterator, right ones and wrong ones, and what two real processes made of them.

python -m tests.checks.claims.rank_functions       runs all of them again and rewrites `recorded_ranks.json`
"""

import json
from pathlib import Path

from tests.checks.claims.jpegs import START

RECORDED = Path(__file__).with_name("recorded_ranks.json")
PIPELINE = """
IMAGE_SIZE = 16


@pipeline_def(num_threads=1)
def rank_pipeline(root, shard_id, num_shards):
    jpegs, labels = fn.readers.file(
        file_root=root,
        shard_id=shard_id, num_shards=num_shards, pad_last_batch=True, random_shuffle=True, name="Reader"
    )
    images = fn.resize(fn.decoders.image(jpegs, device="mixed"), size=(IMAGE_SIZE, IMAGE_SIZE))
    return fn.crop_mirror_normalize(images, dtype=types.FLOAT), labels.gpu()
"""
BUILD = """
def build_rank_iterator(dataset_dir, batch_size, rank, world_size):
    pipe = rank_pipeline(dataset_dir, rank, world_size, batch_size=batch_size, device_id=rank)
    return DALIGenericIterator(pipe, ["data", "label"], reader_name="Reader", auto_reset=True)
"""
AFTER = "\nraise_if_run_again = open('once', 'x')\nprint('the rest of the lab runs once')\n"
WHOLE = START + PIPELINE + BUILD + AFTER


def ending_with(*lines: str) -> str:
    """Every rank does this before it hands its iterator out."""
    return WHOLE.replace("    return DALIG", "".join(f"    {line}\n" for line in lines) + "    return DALIG")


GOOD = {
    "module": WHOLE,
    "cells": [START, PIPELINE, BUILD, AFTER],
    "partial": WHOLE.replace("auto_reset", "last_batch_policy=LastBatchPolicy.PARTIAL, auto_reset"),
    "drop": WHOLE.replace("auto_reset", "last_batch_policy=LastBatchPolicy.DROP, auto_reset"),
    "classification": WHOLE.replace('DALIGenericIterator(pipe, ["data", "label"]', "DALIClassificationIterator(pipe"),
    "its own group": WHOLE.replace(
        "    pipe = rank_pipeline",
        "    import torch.distributed as dist\n    dist.init_process_group('nccl')\n    torch.cuda.set_device(rank)\n"
        "    assert dist.get_rank() == rank\n    pipe = rank_pipeline",
    ),
    "an idle pool of threads": ending_with(
        "import concurrent.futures",
        "pool = concurrent.futures.ThreadPoolExecutor(2)",
        "assert pool.submit(int, '7').result() == 7",
        "build_rank_iterator.pool = pool",
    ),
}
BAD = {
    "not sharded": (WHOLE.replace("shard_id=shard_id, num_shards=num_shards, ", ""), "not_sharded"),
    "hard-coded shard": (WHOLE.replace("dataset_dir, rank, world_size,", "dataset_dir, 0, 2,"), "not_sharded"),
    "other number of shards": (WHOLE.replace("rank, world_size, batch", "rank, 4, batch"), "incomplete"),
    "no padding": (WHOLE.replace("pad_last_batch=True, ", ""), "overlap"),
    "one device": (WHOLE.replace("device_id=rank", "device_id=0"), "wrong_device"),
    "no device": (WHOLE.replace(", device_id=rank", ""), "wrong_device"),
    "no reader name": (WHOLE.replace('reader_name="Reader", ', ""), "endless"),
    "raises": (WHOLE.replace("    pipe = rank", "    1 / rank\n    pipe = rank"), "raised"),
    "a thread that stays": (
        ending_with("import threading, time", "threading.Thread(target=time.sleep, args=(999,)).start()"),
        "hangs",
    ),
    "a process that stays": (
        ending_with("import multiprocessing, time", "multiprocessing.Process(target=time.sleep, args=(999,)).start()"),
        "hangs",
    ),
    "a handler that waits": (ending_with("import atexit, time", "atexit.register(time.sleep, 999)"), "hangs"),
    "steps by rank": (
        WHOLE.replace('reader_name="Reader"', "size=4 * (3 + rank), last_batch_policy=LastBatchPolicy.PARTIAL"),
        "unequal_steps",
    ),
}


def main() -> None:
    """Runs every function for real; takes some minutes."""
    from tests.checks.claims.conftest import Learner

    learner = Learner()
    recorded = {}
    for name, source in {**GOOD, **{name: source for name, (source, _) in BAD.items()}}.items():
        answer = learner.run(source, "ddp_ranks")
        recorded[name] = answer["probes"]["ddp_ranks"]
        print(name, answer["exception"], json.dumps(recorded[name])[:600])
    RECORDED.write_text(json.dumps(recorded, indent=1) + "\n", encoding="utf-8")
    learner.close()


if __name__ == "__main__":
    main()
