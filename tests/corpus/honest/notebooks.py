"""Notebooks and archives as they come: K54 to K56."""

from tests.corpus.parts import DATASET, GRAPH, LOADER, REFLECTIONS, joined, zipped
from tests.corpus.parts_honest import DALI_LAB, MEASURED, REFLECTED, ROOM, SEEN, TORCH, honest, notebook, tarred

LOGGED = """
import logging, sys, warnings
from tqdm.auto import tqdm
import matplotlib
matplotlib.use("Agg")
import matplotlib.pyplot as plt

logging.basicConfig(level=logging.DEBUG, stream=sys.stdout, format="%(asctime)s %(name)s %(levelname)s %(message)s")
log = logging.getLogger("dali-lab")
warnings.simplefilter("always")
warnings.warn("this API will go away", DeprecationWarning)
for i in tqdm(range(2000), desc="epochs", mininterval=0):
    log.debug("step %d of a very talkative training loop, loss %.4f", i, 1 / (i + 1))
print("x" * 200_000)
sys.stderr.write("done\\r\\n" * 1000)
"""

FIGURES = """
fig, axes = plt.subplots(2, 8, figsize=(16, 4))
for ax, picture in zip(axes.flat, first_batch.float().cpu().numpy()):
    ax.imshow(((picture - picture.min()) / (picture.max() - picture.min())).transpose(1, 2, 0))
    ax.axis("off")
plt.suptitle("first DALI batch")
plt.savefig("batch.png")
plt.figure()
plt.bar(["PyTorch", "DALI"], [pytorch_throughput, dali_throughput])
plt.ylabel("images/s")
plt.show()
"""

COLAB = notebook(
    ("markdown", "# Lab: NVIDIA DALI\n*run on an H100*"),
    "!nvidia-smi",
    "%pip install -q nvidia-dali-cuda120 tqdm\n!pip install --upgrade pillow",
    "%matplotlib inline\n%load_ext autoreload\n%autoreload 2\nimport matplotlib.pyplot as plt",
    "",
    ("raw", "This cell is not code."),
    ("markdown", "## 1. Data"),
    "!mkdir -p dataset && ls -la\n" + DATASET,
    "%%time\n" + LOADER,
    ("markdown", "## 2. Pipeline"),
    "%%capture out\nimport nvidia.dali as dali\nprint(dali.__version__)",
    GRAPH,
    "first_batch.shape, first_batch.device;\nfirst_batch?\n",
    "x, y = next(iter(loader))\nplt.imshow(x[0].permute(1, 2, 0)); plt.show()\ndisplay(x.shape)",
    "r = %timeit -n 1 -r 1 -o next(iter(dali_iter))\nprint(r.best)",
    "%env OMP_NUM_THREADS=2\nimport os; assert os.environ['OMP_NUM_THREADS'] == '2'",
    "files = !find dataset -name '*.jpg' | wc -l\nassert int(files[0]) == 100, files",
    ("markdown", "## 4. Reflection"),
    SEEN,
    "# TODO: clean up",
    accelerator="GPU",
    colab={"provenance": [], "gpuType": "T4"},
)

OUT_OF_ORDER = notebook(
    "# I wrote this cell last, but it stands first\n" + REFLECTIONS,
    "def bench(loader, get, rounds=1):\n    import time\n    n, t = 0, time.perf_counter()\n"
    "    for _ in range(rounds):\n        for b in loader:\n            n += get(b).shape[0]\n"
    "    return n / (time.perf_counter() - t)",
    DATASET,
    "from IPython.display import clear_output, display, Markdown\nfrom tqdm.notebook import tqdm\n"
    "display(Markdown('**data ready**'))\nclear_output(wait=True)",
    LOADER.replace("100.0", "0"),
    "_ = [bench(tqdm(loader), lambda b: b[0])]\npytorch_throughput = _[0]",
    GRAPH.replace("dali_throughput = 500.0", ""),
    "dali_throughput = bench(dali_iter, lambda b: b[0]['data'], 2)\nOut, In, dali_throughput / pytorch_throughput",
    "import asyncio\nawait asyncio.sleep(0.01)\nget_ipython().run_line_magic('matplotlib', 'inline')",
)


def old_format() -> bytes:
    """A notebook of format 3, as IPython 2 stored it."""
    import json

    cell = {"cell_type": "code", "collapsed": False, "input": "", "language": "python", "metadata": {}, "outputs": []}
    cells = [
        {"cell_type": "heading", "level": 1, "metadata": {}, "source": ["DALI"]},
        *({**cell, "input": part} for part in (DATASET, LOADER)),
    ]
    document = {
        "metadata": {"name": ""},
        "nbformat": 3,
        "nbformat_minor": 0,
        "worksheets": [{"cells": cells, "metadata": {}}],
    }
    return json.dumps(document).encode()


PACKED_NOTEBOOK = notebook(
    "from helpers.images import write\nimport os\ndataset_dir = write('dataset', 120)",
    LOADER,
    "%run tools/prepare",
    "import sys; sys.path.append('src')\nfrom pipe import make\ndali_iter = make(dataset_dir)",
    "first_batch = dali_iter.next()[0]['data']\ndali_throughput = 700.",
    "text = open('notes/reflection.md', encoding='utf-8').read().split('---')\n"
    "where_dali_wins, where_dali_loses = text[0].strip(), text[1].strip()",
)

WRITE = """
import os
import numpy as np
from PIL import Image


def write(folder, count):
    for i in range(count):
        os.makedirs(os.path.join(folder, str(i % 4)), exist_ok=True)
        noise = np.random.default_rng(i).integers(0, 256, (144, 176, 3), dtype=np.uint8)
        Image.fromarray(noise).save(os.path.join(folder, str(i % 4), f"{i}.jpg"))
    return folder
"""

MAKE = """
from nvidia.dali import fn, pipeline_def
from nvidia.dali.plugin.pytorch import DALIGenericIterator


@pipeline_def(batch_size=24, num_threads=2, device_id=0)
def graph(root):
    jpegs, labels = fn.readers.file(file_root=root, name="Reader", random_shuffle=True)
    images = fn.resize(fn.decoders.image(jpegs, device="mixed"), size=(96, 96))
    return fn.crop_mirror_normalize(images, std=[255.0] * 3, output_layout="CHW"), labels


def make(root):
    return DALIGenericIterator(graph(root), ["data", "label"], reader_name="Reader", auto_reset=True)
"""

NOTES = """
* Large JPEG photos and few CPU cores per GPU: the decode on the CPU is what the GPU waits for.
* Video clips, which NVDEC decodes on the GPU so that the host's cores stay free.
* Strong augmentation (crops, rotations, colour) of 4K images that costs the CPU more than the training step.
---
* BERT on tokenised text, where no image has to be decoded.
* Tables of numbers that fit into memory: the data loader is not the bottleneck.
"""


def _with_windows_lines(text: str) -> bytes:
    """As an editor on Windows saves it: CRLF, and a byte order mark in front."""
    return b"\xef\xbb\xbf" + joined(text).replace("\n", "\r\n").encode()


def _jpegs() -> dict[str, bytes]:
    """A data set that is brought along."""
    import io

    import numpy as np
    from PIL import Image

    files = {}
    for i in range(102):
        out = io.BytesIO()
        noise = np.random.default_rng(i).integers(0, 256, (60, 80, 3), dtype=np.uint8)
        Image.fromarray(noise).save(out, "JPEG", quality=70)
        files[f"assignment 3/images/{'cats' if i % 2 else 'dogs'}/{i:03d}.jpg"] = out.getvalue()
    return files


def brought() -> bytes:
    """One enclosing folder, everything that macOS and git add, and the images themselves."""
    entry = joined(
        """
        import os
        here = os.path.dirname(os.path.abspath(__file__))
        dataset_dir = os.path.join(here, "images")
        """,
        LOADER,
        GRAPH,
        SEEN,
    )
    return zipped(
        {
            "assignment 3/": b"",
            "assignment 3/submission.py": entry,
            "assignment 3/.DS_Store": b"\0\0\0\1Bud1",
            "__MACOSX/assignment 3/._submission.py": b"\0\5\x16\7",
            "assignment 3/.git/HEAD": "ref: refs/heads/main\n",
            "assignment 3/.git/hooks/pre-commit.py": "raise SystemExit\n",
            "assignment 3/.ipynb_checkpoints/old-checkpoint.ipynb": "{}",
            "assignment 3/__pycache__/submission.cpython-311.pyc": b"\0",
            **_jpegs(),
        }
    )()


CASES = (
    honest(
        "K54-noisy-output",
        "logging, progress bars, warnings, figures and 200 kB of output",
        joined(LOGGED, ROOM, TORCH, DALI_LAB, FIGURES, REFLECTED),
    ),
    honest(
        "K55-colab",
        "a Colab notebook: magics, shell lines, pip install, empty and raw cells",
        COLAB,
        filename="DALI_Lab (1).ipynb",
    ),
    honest(
        "K55-out-of-order",
        "a notebook whose reflections come first, with await, widgets and Out",
        OUT_OF_ORDER,
        filename="lab.ipynb",
    ),
    honest(
        "K55-format-3",
        "a notebook of format 3",
        old_format,
        filename="old.ipynb",
        steps=("baseline",),
    ),
    honest(
        "K56-macos-zip",
        "one enclosing folder, __MACOSX, .git, checkpoints, and the images brought along",
        brought,
        filename="assignment 3.zip",
    ),
    honest(
        "K56-notebook-with-helpers",
        "a tar.gz of a notebook with helper modules, %run and a text file",
        tarred(
            {
                "./lab/analysis.ipynb": PACKED_NOTEBOOK(),
                "./lab/helpers/__init__.py": "",
                "./lab/helpers/images.py": WRITE,
                "./lab/src/pipe.py": MAKE,
                "./lab/tools/prepare.py": "import time\nstarted = time.time()\n",
                "./lab/notes/reflection.md": NOTES,
            },
            folders=("./", "./lab", "./lab/helpers", "./lab/tools", "./lab/src", "./lab/notes"),
        ),
        filename="lab.tar.gz",
    ),
    honest(
        "K56-windows-lines",
        "CRLF line ends and a byte order mark",
        _with_windows_lines(DATASET + LOADER + GRAPH + SEEN),
        filename="Abgabe_Müller.py",
        steps=MEASURED,
    ),
)
