"""Data sets of every make: K20 to K29."""

from tests.corpus.honest.sources import FLAT_LOADER, LIST_OF_FILES
from tests.corpus.parts import DATASET, GRAPH, LOADER, joined
from tests.corpus.parts_files import FILES
from tests.corpus.parts_honest import DALI, DALI_LAB, ITERATOR, MEASURED, REFLECTED, SEEN, TIMED, TORCH, honest

NESTED = """
import os, pathlib
import numpy as np
from PIL import Image

dataset_dir = pathlib.Path("photos")
rng = np.random.default_rng(5)
for year in (2023, 2024):
    for month in range(1, 6):
        for day in (3, 17):
            album = dataset_dir / str(year) / f"{month:02d}" / f"{day:02d}"
            album.mkdir(parents=True, exist_ok=True)
            for k in range(6):
                small = rng.integers(0, 255, (12, 16, 3), dtype=np.uint8)
                Image.fromarray(small).resize((320, 240)).save(album / f"IMG_{k:04d}.jpg")
paths = [str(p) for p in sorted(dataset_dir.rglob("*.jpg"))]
"""

ONE_CLASS = DATASET.replace("{number % 2}", "0").replace("range(100)", "range(105)")

ENDINGS = DATASET.replace(
    '{number:04d}.jpg")', '{number:04d}" + (".jpg", ".jpeg", ".JPG", ".JPEG", ".Jpg")[number % 5], "JPEG")'
).replace("range(100)", "range(130)")

OLD_ENDING = DATASET.replace(
    '{number:04d}.jpg")', '{number:04d}" + (".jpg", ".jpe", ".jfif")[number % 3], format="JPEG")'
).replace("range(100)", "range(120)")

WITH_PNG = DATASET.replace(
    'save(f"dataset/c{number % 2}/{number:04d}.jpg")',
    'save(f"dataset/c{number % 2}/{number:04d}." + ("png" if number % 5 == 0 else "jpg"))',
).replace("range(100)", "range(140)")

KINDS = """
import os
import numpy as np
from PIL import Image

dataset_dir = "./images/train"
rng = np.random.default_rng(21)
exif = Image.Exif()
exif[0x0112] = 6  # a phone that was held upright
for i in range(120):
    folder = f"{dataset_dir}/{'ab'[i % 2]}"
    os.makedirs(folder, exist_ok=True)
    image = Image.fromarray(rng.integers(0, 256, (15, 20, 3), dtype=np.uint8)).resize((240, 180), Image.BICUBIC)
    name = f"{folder}/{i}.jpg"
    if i % 10 == 1:
        image.save(name, progressive=True, quality=80)
    elif i % 10 == 2:
        image.convert("L").save(name)
    elif i % 10 == 3:
        image.save(name, exif=exif)
    elif i % 10 == 4:
        image.save(name, subsampling=0, optimize=True)
    elif i % 30 == 5:
        image.convert("CMYK").save(name)
    else:
        image.save(name)
"""

NAMES = """
import os
import numpy as np
from PIL import Image

dataset_dir = "Übung 3/données d'été"
rng = np.random.default_rng(8)
for i in range(104):
    for_class = os.path.join(dataset_dir, ("Hunde & Katzen", "日本語", "с пробелом")[i % 3])
    os.makedirs(for_class, exist_ok=True)
    Image.fromarray(rng.integers(0, 256, (12, 16, 3), dtype=np.uint8)).resize((256, 192)).save(
        os.path.join(for_class, f"größe {i} (Kopie) 📷.jpg"))
"""

LINKED = """
import os
import numpy as np
from PIL import Image

os.makedirs("/tmp/storage/imgs/x", exist_ok=True)
for i in range(100):
    noise = np.random.RandomState(i).randint(0, 256, (100, 120, 3)).astype(np.uint8)
    Image.fromarray(noise).save(f"/tmp/storage/imgs/x/{i}.jpg")
if not os.path.islink("data"):
    os.symlink("/tmp/storage/imgs", "data")
dataset_dir = "data"
"""

SYNTHETIC = """
import os
import numpy as np
from PIL import Image, ImageDraw

dataset_dir = "synthetic"
for kind in ("noise", "gradient", "shapes"):
    os.makedirs(os.path.join(dataset_dir, kind), exist_ok=True)
np.random.seed(1)
for i in range(40):
    Image.fromarray(np.random.randint(0, 256, (224, 224, 3), dtype=np.uint8)).save(f"synthetic/noise/{i}.jpg")
    ramp = np.linspace(i, 255 - i, 224).astype(np.uint8)
    Image.fromarray(np.dstack([np.tile(ramp, (224, 1)), np.tile(ramp[:, None], (1, 224)), np.full((224, 224), i * 5,
                    np.uint8)])).save(f"synthetic/gradient/{i}.jpg")
    canvas = Image.new("RGB", (224, 224), (i * 6, 255 - i * 6, 128))
    ImageDraw.Draw(canvas).ellipse([10 + i, 20, 120 + 2 * i, 180], fill=(255, i * 3, 40))
    canvas.save(f"synthetic/shapes/{i}.jpg", quality=95)
"""

QUALITIES = """
for quality in range(1, 101):
    picture(7, 224 - 32 * (quality % 2), 168).save(f"dataset/{quality:04d}.jpg", quality=quality)
"""

CARDS = """
for number in range(100):
    Image.new("RGB", (224, 224), (number, 37 * number % 256, 91 * number % 256)).save(f"dataset/{number:04d}.jpg")
"""

MANY = """
import io, os
import numpy as np
from concurrent.futures import ThreadPoolExecutor
from PIL import Image

dataset_dir = "/workspace/big"
N = 10_000
rng = np.random.default_rng(0)
base = rng.integers(0, 256, (4, 4, 3), dtype=np.uint8)


def write(i):
    tile = base.copy()
    tile[0, 0], tile[1, 1] = (i % 256, i // 256, 128), (255 - i // 256, i % 251, 7)
    out = io.BytesIO()
    Image.fromarray(tile).resize((40, 40), Image.NEAREST).save(out, "JPEG")
    with open(f"{dataset_dir}/{i % 20:03d}/{i:06d}.jpg", "wb") as f:
        f.write(out.getvalue())


for c in range(20):
    os.makedirs(f"{dataset_dir}/{c:03d}", exist_ok=True)
with ThreadPoolExecutor(4) as pool:
    list(pool.map(write, range(N)))
"""

MANY_END = """
from itertools import islice
from nvidia.dali import fn, pipeline_def, types
from nvidia.dali.plugin.pytorch import DALIGenericIterator


@pipeline_def(batch_size=64, num_threads=4, device_id=0)
def pipeline():
    jpegs, labels = fn.readers.file(file_root=dataset_dir, random_shuffle=True, initial_fill=4096, name="Reader")
    images = fn.resize(fn.decoders.image(jpegs, device="mixed"), size=(96, 96))
    return fn.crop_mirror_normalize(images, std=[255.0] * 3, output_layout="CHW"), labels


dali_iter = DALIGenericIterator(pipeline(), ["data", "label"], reader_name="Reader", auto_reset=True)
first_batch = next(iter(dali_iter))[0]["data"]
shown = sum(len(b[0]["data"]) for b in islice(dali_iter, 5))
dali_throughput = 4000.0
"""

CASES = (
    honest(
        "K20-nested-folders",
        "year/month/day folders, listed with rglob",
        joined(NESTED, FLAT_LOADER, DALI, LIST_OF_FILES, ITERATOR, TIMED, REFLECTED),
    ),
    honest("K21-single-class", "one class folder", ONE_CLASS, LOADER, GRAPH, steps=MEASURED),
    honest("K22-endings", ".jpg, .jpeg, .JPG, .JPEG and .Jpg", ENDINGS, LOADER, GRAPH, steps=MEASURED),
    honest(
        "K22-jpe-and-jfif",
        ".jpe and .jfif beside .jpg, which only some readers take",
        joined(OLD_ENDING, LOADER),
        steps=("baseline",),
    ),
    honest("K23-png-beside", "PNG files between the JPEGs, which only do not count", WITH_PNG, LOADER, GRAPH, SEEN),
    honest(
        "K24-kinds-of-jpeg", "progressive, grey, CMYK, rotated by EXIF, 4:4:4", KINDS, TORCH, DALI_LAB, steps=MEASURED
    ),
    honest(
        "K25-names", "names with spaces, umlauts, Japanese, Cyrillic and an emoji", NAMES, TORCH, DALI_LAB, REFLECTED
    ),
    honest(
        "K26-linked-folder",
        "dataset_dir is a symbolic link to a folder below /tmp",
        joined(LINKED, TORCH, DALI_LAB),
        steps=MEASURED,
    ),
    honest("K27-synthetic", "noise, gradients and drawn shapes", SYNTHETIC, TORCH, DALI_LAB, steps=MEASURED),
    honest(
        "K27-flat-cards",
        "a hundred cards of one colour each: passed, with advice",
        joined(FILES, CARDS),
        steps=("baseline",),
        says={"jpeg_dataset": "100 of your images have one colour only"},
    ),
    honest(
        "K27-one-picture",
        "one picture in a hundred qualities and two sizes: passed, with advice",
        joined(FILES, QUALITIES),
        steps=("baseline",),
        says={"jpeg_dataset": "of your images look like one picture"},
    ),
    honest("K28-exactly-100", "exactly one hundred files, no more", DATASET, LOADER, steps=("baseline",)),
    # A hundred thousand cost minutes to write on two cores; 10,000 take the same way.
    honest(
        "K29-many-files",
        "10,000 small files in twenty folders (scaled down from 100,000)",
        joined(MANY, LOADER, MANY_END),
        steps=MEASURED,
    ),
)
