"""Imports and names that are not there; nothing else is imported before these."""

ALONE = True
_WITHOUT = """
import sys
for name in [name for name in sys.modules if name.split(".")[0] in {names!r}]:
    del sys.modules[name]
sys.path[:] = [path for path in sys.path if "site-packages" not in path] + ["empty"]
sys.path_importer_cache.clear()
import os
os.makedirs("empty/nvidia/cudnn")
"""


def of_dali(module, use):
    """A name of one of DALI's modules."""
    return f"from nvidia.dali import {module}\n{use}"


SNIPPETS = {
    "dali_missing": _WITHOUT.format(names=["nvidia"]) + "from nvidia.dali import pipeline_def",
    "dali_import_name": "import dali",
    "dali_import_name#2": "from nvidia_dali import fn",
    "torch_missing": _WITHOUT.format(names=["torch", "torchvision"]) + "import torch",
    "module_missing": "import albumentations",
    "module_missing#2": "import cv2",
    "plugin_module": "from nvidia.dali.plugin.torch import DALIGenericIterator",
    "plugin_module#2": "import nvidia.dali.pytorch",
    "iterator_import": "from nvidia.dali import DALIGenericIterator",
    "iterator_import#2": "from nvidia.dali.plugin.base_iterator import DALIClassificationIterator",
    "dali_import": "from nvidia.dali import operators",
    "shared_library": """
import ctypes
ctypes.CDLL("libnvjpeg.so.99")
""",
    "shadowed_module": """
open("torchvision.py", "w").write("from torchvision import datasets")
import sys
for name in [name for name in sys.modules if name.split(".")[0] == "torchvision"]:
    del sys.modules[name]
from torchvision import transforms
""",
    "shadowed_module#2": """
open("random.py", "w").write("import random\\nrandom.shuffle([])")
import sys
del sys.modules["random"]
import random
""",
    "legacy_operator": of_dali("ops", 'decode = ops.HostDecoder(device="cpu")'),
    "legacy_operator#2": of_dali("ops", 'decode = ops.nvJPEGDecoder(device="mixed")'),
    "random_resized_crop_place": of_dali("fn", "fn.random.resized_crop"),
    "random_resized_crop_place#2": of_dali("fn", "fn.random.random_resized_crop"),
    "fn_name": of_dali("fn", "fn.randomresizedcrop"),
    "fn_name#2": of_dali("fn", "fn.decoders.jpeg"),
    "fn_name#3": of_dali("fn", "fn.normalise"),
    "types_name": of_dali("types", "types.FLOAT32"),
    "dali_attribute": """
import nvidia.dali
nvidia.dali.Pipelines
""",
    "syntax": """
def pipeline()
    return 1
""",
    "name_undefined#2": 'images = fn.readers.file(file_root="data")',
    "name_undefined": "first_batch = next(dali_iterator)",
    "pip_inside": """
import subprocess, sys
index = ["--index-url", "http://127.0.0.1:9/simple", "--retries", "0", "--timeout", "1", "--no-input"]
subprocess.check_call([sys.executable, "-m", "pip", "install", *index, "nvidia-dali-cuda120-missing"])
""",
}
