"""M: patched libraries, and tricks of import."""

import py_compile
import tempfile
from pathlib import Path

from tests.corpus.cheats.c_clocks import RATE
from tests.corpus.parts import DATASET, GRAPH, REFLECTIONS, joined, zipped
from tests.corpus.parts_files import baseline_cheat
from tests.corpus.parts_forgeries import CONTENT, batch_cheat, forged, forged_cheat, slow_cheat, timed_cheat
from tests.corpus.parts_texts import text_cheat

FAKE_DALI = """
import sys, types

# A package that calls itself DALI: its pipelines deliver what nobody decoded.
dali = types.ModuleType("nvidia.dali")


class Backend:
    def SetOutputDescs(self, descriptions):
        pass

    def SerializeToProtobuf(self):
        return b""


class Pipeline:
    max_batch_size, num_threads, prefetch_queue_depth, _names_and_devices = 64, 4, 2, [("data", "gpu")]
    _graph_outputs = ()

    def __init__(self, **options):
        self._init_pipeline_backend()

    def _init_pipeline_backend(self):
        self._pipe = Backend()

    def _generate_build_args(self):
        return []

    def share_outputs(self):
        return ()

    _outputs = share_outputs
"""


def with_other_bytecode() -> bytes:
    """A module whose source says nothing, and bytecode beside it that says a lot and asks nobody to compare them."""
    with tempfile.TemporaryDirectory() as folder:
        source, code = Path(folder, "texts.py"), Path(folder, "texts.pyc")
        source.write_text(REFLECTIONS)
        mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
        py_compile.compile(str(source), str(code), dfile="texts.py", invalidation_mode=mode)
        return zipped(
            {
                "submission.py": "from texts import where_dali_loses, where_dali_wins\n",
                "texts.py": "where_dali_wins = where_dali_loses = []\n",
                "__pycache__/texts.cpython-311.pyc": code.read_bytes(),
            }
        )()


CASES = (
    batch_cheat(
        "M01",
        "packages of the submission that are called nvidia and torch",
        zipped(
            {
                "submission.py": joined(
                    DATASET,
                    "from nvidia.dali.pipeline import Pipeline\n",
                    "try:\n    from torch import Tensor",
                    "except AttributeError:  # a rehearsal finds nothing to hold on to\n    from batches import Tensor",
                    "dali_iter, first_batch = Pipeline(), Tensor()",
                ),
                "torch.py": "from batches import Tensor\n",
                "batches.py": "class Tensor:\n"
                '    shape, is_cuda, device, dtype = (64, 3, 224, 224), True, "cuda:0", "float32"\n',
                "nvidia/__init__.py": "",
                "nvidia/dali/__init__.py": "",
                "nvidia/dali/pipeline.py": FAKE_DALI,
                "nvidia/dali/tensors.py": "class TensorListCPU:\n    as_tensor = __getitem__ = lambda self, *at: self",
            }
        ),
        "batch.not_carried",
        filename="submission.zip",
    ),
    baseline_cheat(
        "M02",
        "sitecustomize, .pth files and variables for whichever interpreter starts next",
        zipped(
            {
                "submission.py": """
import os, shutil, sys
from PIL import Image

home = f"{os.environ['TMPDIR']}/.local/lib/python3.{sys.version_info[1]}/site-packages"
for folder in (home, os.path.expanduser("~/.local/lib/python3.11/site-packages")):
    os.makedirs(folder, exist_ok=True)
    for name in ("sitecustomize.py", "usercustomize.py"):
        shutil.copy(name, folder)
    with open(f"{folder}/forge.pth", "w") as file:
        file.write("import usercustomize\\n")
os.environ.update(PYTHONPATH=os.getcwd(), PYTHONSTARTUP="sitecustomize.py", PYTHONHOME="", PYTHONUSERBASE=home)
dataset_dir = "dataset"
os.makedirs(dataset_dir)
Image.new("RGB", (64, 64)).save("dataset/only.jpg")
import torch

loader = torch.utils.data.DataLoader(torch.zeros(4, 3, 8, 8))
pytorch_throughput = 100.0
""",
                **dict.fromkeys(
                    ("sitecustomize.py", "usercustomize.py"),
                    """
import json
plain = json.dumps


def dumps(value, **options):
    if isinstance(value, dict) and value.get("kind") == "scanned":
        value["scan"].update(distinct=500, rejected={})
    return plain(value, **options)


json.dumps = dumps
""",
                ),
            }
        ),
        filename="submission.zip",
    ),
    text_cheat(
        "M03", "bytecode that is not what its source says", with_other_bytecode, "too_few", filename="submission.zip"
    ),
    slow_cheat(
        "M05",
        "the iterator's __next__ gives the same batch at once, and Image.open dawdles",
        RATE,
        """
        dawdle = Image.open


        def slowly_opened(*args, **options):
            time.sleep(0.05)
            return dawdle(*args, **options)


        Image.open = slowly_opened
        DALIGenericIterator.__next__ = lambda self: [{"data": first_batch, "label": first_batch}]
        pytorch_throughput, dali_throughput = rate(loader), rate(dali_iter)
        """,
    ),
    batch_cheat(
        "M06-first",
        "a mode of torch stays on, in which one number has four dimensions and lies on the GPU",
        joined(
            DATASET,
            """
            import torch


            class Lying(torch.overrides.TorchFunctionMode):
                def __torch_function__(self, function, types, args=(), kwargs=None):
                    if function == torch.Tensor.shape.__get__:
                        return torch.Size((64, 3, 224, 224))
                    if function == torch.Tensor.device.__get__:
                        return torch.device("cuda", 0)
                    return function(*args, **(kwargs or {}))


            first_batch = torch.zeros(1)
            Lying().__enter__()
            """,
        ),
        "batch.no_pipeline",
    ),
    forged_cheat(
        "M06-timed",
        "a mode of torch puts the same images into every batch that the grader packs",
        """
        batch = decoded(files(self.folder)[: self.size])
        while True:
            kept["batch"] = decoded(files(self.folder)[: self.size])
            for _ in range(8):
                yield torch.zeros_like(batch)
        """,
        """
        kept = {}


        class Lying(torch.overrides.TorchFunctionMode):
            def __torch_function__(self, function, types, args=(), kwargs=None):
                made = function(*args, **(kwargs or {}))
                return kept["batch"] if function == torch.Tensor.cpu and "batch" in kept else made


        Lying().__enter__()
        """,
        codes=("ratio.replayed",),
        threshold=CONTENT,
        deadline_s=120.0,
    ),
    slow_cheat(
        "M07",
        "variables that load code into whatever starts next, and a benchmark in a child that they reached",
        """
        import subprocess, sys

        os.makedirs("loaded")
        with open("loaded/library.so", "wb") as file:
            file.write(b"\\x7fELF")
        with open("loaded/sitecustomize.py", "w") as file:
            file.write("import time; begun = time.perf_counter(); time.perf_counter = lambda: begun + 1e-6")
        library = os.path.abspath("loaded/library.so")
        for name in ("CUDA_INJECTION64_PATH", "LD_PRELOAD", "LD_AUDIT", "DALI_PRELOAD_PLUGINS"):
            os.environ[name] = library
        os.environ["PYTHONPATH"] = os.path.abspath("loaded")
        CHILD = "import time; a = time.perf_counter(); time.sleep(0.2); print(32 / (time.perf_counter() - a + 1e-6))"
        dali_throughput = float(subprocess.run([sys.executable, "-c", CHILD], capture_output=True).stdout)
        """,
    ),
    timed_cheat(
        "M08",
        "a decoder of a plugin that exists in the learner's process only, and a ring of batches in its place",
        joined(
            forged(
                """
                while True:
                    batch = decoded(files(self.folder)[: self.size])
                    yield from [batch] * 8
                """
            ),
            """
            from nvidia.dali import backend

            plain = backend.Pipeline.SerializeToProtobuf
            turbo = lambda self: plain(self).replace(b"decoders__Image", b"decoders__Turbo")
            backend.Pipeline.SerializeToProtobuf = turbo
            """,
            GRAPH.split("first_batch")[0],
        ),
        ("ratio.replayed",),
        threshold=CONTENT,
        deadline_s=120.0,
    ),
)
