"""Reference submission of the lab dali-classification-training: define, read, decode, augment, normalise, iterate, train.

Written for a GPU; the grader's rehearsal runs it unchanged on a CPU.
"""

from pathlib import Path

import numpy as np
import torch
from nvidia.dali import fn, pipeline_def, types
from nvidia.dali.plugin.base_iterator import LastBatchPolicy
from nvidia.dali.plugin.pytorch import DALIClassificationIterator
from PIL import Image
from torch import nn

BATCH = 32
CLASSES = ("blue", "green", "red", "yellow")
MEAN = [0.485 * 255, 0.456 * 255, 0.406 * 255]
STD = [0.229 * 255, 0.224 * 255, 0.225 * 255]
dataset_dir = Path("flowers")
generator = np.random.default_rng(3)
torch.manual_seed(3)

# A data set of our own: 48 noisy JPEGs per class, each class around a colour.
COLOURS = {"blue": (60, 80, 180), "green": (70, 160, 70), "red": (180, 70, 60), "yellow": (190, 180, 60)}
for name in CLASSES:
    folder = dataset_dir / name
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(48):
        coarse = generator.normal(COLOURS[name], 60, (12, 16, 3)).clip(0, 255).astype(np.uint8)
        Image.fromarray(coarse).resize((256, 192), Image.BICUBIC).save(folder / f"{number:03d}.jpg", quality=90)


# Step 1 (define), 2 (read), 3 (decode), 4 (augment) and 5 (normalise): the pipeline of the training set.
@pipeline_def(batch_size=BATCH, num_threads=4, device_id=0, seed=12)
def training_pipeline(root, shard_id=0, num_shards=1):
    jpegs, labels = fn.readers.file(
        file_root=root,
        random_shuffle=True,
        shard_id=shard_id,
        num_shards=num_shards,
        pad_last_batch=True,  # every rank makes the same number of steps
        name="Reader",
    )
    images = fn.decoders.image_random_crop(
        jpegs, device="mixed", output_type=types.RGB, random_area=[0.3, 1.0], random_aspect_ratio=[0.8, 1.25]
    )
    images = fn.resize(images, size=(112, 112))
    images = fn.brightness_contrast(
        images, brightness=fn.random.uniform(range=(0.8, 1.2)), contrast=fn.random.uniform(range=(0.8, 1.2))
    )
    images = fn.crop_mirror_normalize(
        images,
        dtype=types.FLOAT,
        output_layout="CHW",
        mirror=fn.random.coin_flip(probability=0.5),
        mean=MEAN,
        std=STD,
    )
    return images, labels.gpu()


# The same for validation: nothing random, each file once and in order.
@pipeline_def(batch_size=BATCH, num_threads=4, device_id=0, seed=12)
def validation_pipeline(root):
    jpegs, labels = fn.readers.file(file_root=root, random_shuffle=False, pad_last_batch=True, name="Reader")
    images = fn.decoders.image(jpegs, device="mixed", output_type=types.RGB)
    images = fn.resize(images, resize_shorter=128, interp_type=types.INTERP_LINEAR, antialias=True)
    images = fn.crop_mirror_normalize(
        images, dtype=types.FLOAT, output_layout="CHW", crop=(112, 112), mean=MEAN, std=STD
    )
    return images, labels.gpu()


# Step 6 (iterate). `auto_reset` makes an epoch end and the next begin; PARTIAL leaves the padding out.
def iterator_over(pipeline):
    return DALIClassificationIterator(
        pipeline, reader_name="Reader", last_batch_policy=LastBatchPolicy.PARTIAL, auto_reset=True
    )


train_iter = iterator_over(training_pipeline(str(dataset_dir)))
validation_iter = iterator_over(validation_pipeline(str(dataset_dir)))

# Each GPU of a host would read a shard of its own; defined here for two ranks and not run.
sharded = [training_pipeline(str(dataset_dir), shard_id=rank, num_shards=2) for rank in range(2)]


def build_rank_iterator(folder, batch_size, rank, world_size):
    """The iterator of one rank of a distributed training."""
    return iterator_over(training_pipeline(str(folder), rank, world_size, batch_size=batch_size, device_id=rank))


# Step 7 (train): a small network that tells the classes apart.
model = nn.Sequential(
    nn.Conv2d(3, 16, 5, stride=4, padding=2),
    nn.BatchNorm2d(16),
    nn.ReLU(),
    nn.Conv2d(16, 32, 3, stride=2, padding=1),
    nn.ReLU(),
    nn.AdaptiveAvgPool2d(1),
    nn.Flatten(),
    nn.Linear(32, len(CLASSES)),
).cuda()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
losses = []
model.train()
for _epoch in range(4):
    for batch in train_iter:
        images = batch[0]["data"]
        if not losses:
            first_batch = images
        labels = batch[0]["label"].squeeze(-1).long()  # DALI delivers [N, 1] int32; cross entropy wants [N] int64
        optimizer.zero_grad()
        loss = criterion(model(images), labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
print(f"{len(losses)} steps, loss {losses[0]:.3f} to {losses[-1]:.3f}")

with torch.no_grad():
    model.eval()
    right = total = 0
    for batch in validation_iter:
        found = model(batch[0]["data"]).argmax(1)
        right += int((found == batch[0]["label"].squeeze(-1).long()).sum())
        total += len(found)
model.train()
print(f"validation accuracy {right / total:.2f} on {total} images")

placement = {"reader": "cpu", "decoder": "mixed", "resize": "gpu", "brightness and contrast": "gpu", "normalise": "gpu"}
acceptance_metric = (
    "Images per second of the training loop at batch size 32 on one GPU, over 200 steps after 20 steps of warm-up, must be "
    "at least 1.5 times that of the DataLoader with 8 workers on the same JPEGs; validation accuracy may not fall by more "
    "than half a percent."
)
