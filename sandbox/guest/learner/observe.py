"""Looks at what the learner's code left in its namespace; observations only, no opinions."""

import itertools
import os
import pathlib
import sys
from collections.abc import Callable, Mapping
from functools import cache, partial
from types import ModuleType
from typing import Any

from . import coerce
from .graphs import PipelineRecord, Recorder, reader_root

FACTORIES = ("build_pytorch_loader", "build_dali_iterator")
MAX_GRAPHS = 4
MAX_LOADERS = 8
MAX_NAMES = 64
_MOST_PATH = 200
"""Characters; a longer one is left out, since a part of it is another folder."""
MAX_DEFINED = 256
_MOST_ENTRIES = 5000
_SENTENCE = 20
"""Characters; shorter texts are words."""
_GRAPH_BYTES = 4 << 20
_NO_DRIVER = (
    "Found no NVIDIA driver",
    "driver version is insufficient",
    "requires a CUDA-capable GPU",
    "no CUDA-capable device",
    "CUDA is not available",
    "libcuda.so",
    "No CUDA GPUs are available",
    "not compiled with CUDA",
    "NCCL",
)


def namespace_facts(module: ModuleType) -> dict[str, Any]:
    """Claims, reflections and the form of `first_batch`."""
    names = module.__dict__
    facts: dict[str, Any] = {}
    for name in ("pytorch_throughput", "dali_throughput"):
        facts[name] = coerce.number(names[name]) if name in names else {"status": "missing"}
    facts["dataset_dir"] = coerce.path(names["dataset_dir"]) if "dataset_dir" in names else {"status": "missing"}
    for name in ("where_dali_wins", "where_dali_loses"):
        facts[name] = coerce.text_list(names[name]) if name in names else {"status": "missing"}
    facts["first_batch"] = _first_batch(names)
    facts["factories"] = [name for name in FACTORIES if callable(names.get(name))]
    return facts


def names(module: ModuleType) -> list[dict[str, Any]]:
    """`NameFacts` of the learner's own variables that may hold what the lab asks for under another name; newest first.

    Folders with JPEG files, tensors with four dimensions, lists of texts and texts, and numbers.
    """
    found: list[dict[str, Any]] = []
    jpegs = cache(_jpegs)  # one folder often has several names
    for name, value in _variables(module):
        if len(found) == MAX_NAMES:
            break
        kind, count, shown = _kind(value, jpegs)
        if kind:
            found.append({"name": coerce.text(name, 100), "kind": kind, "count": count, "shown": shown})
    return found


def defined(module: ModuleType) -> list[str]:
    """Names at the top level of the learner's code, whatever they hold; newest first."""
    return [coerce.text(name, 100) for name, _ in _variables(module)[:MAX_DEFINED]]


def _variables(module: ModuleType) -> list[tuple[str, Any]]:
    """The learner's own at the top level, newest first."""
    newest = reversed(list(module.__dict__.items())[:5000])
    return [(name, value) for name, value in newest if type(name) is str and not name.startswith("_")]


def _kind(value: Any, jpegs: Callable[[str], int]) -> tuple[str, int | None, str]:
    """What a value may be taken for, how much is in it, and how it is shown; an empty word for anything else."""
    try:
        if (coerce.is_a(value, str) and "\n" not in value[:4096]) or coerce.is_a(value, pathlib.PurePath):
            folder = coerce.path(value)["path"]
            if folder is not None and os.path.isdir(folder) and (count := jpegs(folder)):
                return "folder", count, coerce.text(value, 100)
        if coerce.is_a(value, str):
            return ("text", len(value), "") if len(value) > _SENTENCE else ("", None, "")
        if coerce.is_a(value, list, tuple) and value and all(coerce.is_a(item, str) for item in value[:64]):
            return "texts", len(value), ""
        if coerce.is_a(value, float):
            return "number", None, coerce.shown(value)
        shape = _shape_of(value) if coerce.type_name(value) == "Tensor" else []
        if len(shape) == 4:
            return "batch", shape[0], coerce.text(shape, 100)
    except BaseException:  # a learner's object may raise anything
        return "", None, ""
    return "", None, ""


def _jpegs(folder: str) -> int:
    """JPEG files below a folder, by their names; not all of a large one."""
    count = seen = 0
    for _, _, files in os.walk(folder):
        seen += len(files) + 1
        count += sum(name.lower().endswith((".jpg", ".jpeg")) for name in files)
        if seen > _MOST_ENTRIES:
            break
    return count


def needs_gpu(exception: dict[str, Any] | None) -> str:
    """What a rehearsal could not do without a GPU, from the text of the exception that stopped the code."""
    if exception is None:
        return ""
    message = str(exception["message"])
    return message[:1000] if any(text in message for text in _NO_DRIVER) else ""


def versions() -> dict[str, str]:
    """Versions of the libraries that the learner's code imported."""
    found = {}
    for key, name in (("torch", "torch"), ("torchvision", "torchvision"), ("dali", "nvidia.dali")):
        module = sys.modules.get(name)
        if type(module) is ModuleType:
            found[key] = coerce.text(module.__dict__.get("__version__", "unknown"), 60)
    found["python"] = ".".join(map(str, sys.version_info[:3]))
    return found


def live_loaders(module: ModuleType) -> list[tuple[str, Any]]:
    """(name, DataLoader) of the namespace, names that speak of torch first, later definitions first."""
    data = sys.modules.get("torch.utils.data")
    if data is None:
        return []
    hints = ("torch", "pytorch", "baseline", "train", "loader")
    newest = of_kind(module, data.DataLoader)[::-1]
    return sorted(newest, key=lambda pair: -sum(hint in pair[0].lower() for hint in hints))


def of_kind(module: ModuleType, kind: type) -> list[tuple[str, Any]]:
    """What is reachable of this type or one below it, each object once, under its first name."""
    found: list[tuple[str, Any]] = []
    for name, value in reachable(module):
        if coerce.is_a(value, kind) and all(value is not other for _, other in found):
            found.append((name, value))
    return found


def loader_facts(name: str, loader: Any) -> dict[str, Any]:
    """`LoaderFacts` of one DataLoader."""
    dataset = _read(lambda: loader.dataset)
    length = _read(lambda: len(dataset))
    transform = _read(lambda: dataset.transform)
    if transform is None:
        transform = _read(lambda: dataset.transforms)
    return {
        "name": coerce.text(name, 160),
        "batch_size": _small(_read(lambda: loader.batch_size)) or None,
        "num_workers": _small(_read(lambda: loader.num_workers), 4096) or 0,
        "pin_memory": _read(lambda: loader.pin_memory) is True,
        "persistent_workers": _read(lambda: loader.persistent_workers) is True,
        "prefetch_factor": _small(_read(lambda: loader.prefetch_factor), 4096),
        "drop_last": _read(lambda: loader.drop_last) is True,
        "dataset_type": coerce.type_name(dataset),
        "dataset_length": _small(length, 2**53),
        "dataset_root": _folder(_read(lambda: dataset.root)),
        "transform": "" if transform is None else coerce.text(transform, 2000),
    }


def _folder(value: Any) -> str:
    """A folder that is there, absolute; empty for anything else."""
    path = coerce.path(value)["path"]
    return path if path is not None and len(path) <= _MOST_PATH and os.path.isdir(path) else ""


def _read(question: Callable[[], Any]) -> Any:
    """The answer, or None if the learner's object raises."""
    try:
        return question()
    except BaseException:
        return None


def pipelines(module: ModuleType, recorder: Recorder) -> tuple[list[dict[str, Any]], list[bytes]]:
    """`PipelineFacts` of the pipelines worth carrying, best first, and their graphs."""
    base = sys.modules.get("nvidia.dali.plugin.base_iterator")
    core = sys.modules.get("nvidia.dali.pipeline")
    if core is None:
        return [], []
    named: list[tuple[int, str, dict[str, str], PipelineRecord]] = []
    seen: set[int] = set()

    def add(rank: int, name: str, iterator: dict[str, str], record: PipelineRecord | None) -> None:
        if record is not None and id(record) not in seen:
            seen.add(id(record))
            named.append((rank, name, iterator, record))

    # Later definitions first; a variable of its own before the place of a container.
    newest = reachable(module)[::-1]
    newest.sort(key=lambda pair: "[" in pair[0] or "." in pair[0])
    for name, value in newest:
        if base is not None and coerce.is_a(value, base._DaliBaseIterator):
            inside = value.__dict__
            policy = inside.get("_last_batch_policy")
            iterator = {
                "iterator_type": coerce.type_name(value),
                "reader_name": coerce.text(inside.get("_reader_name") or "", 100),
                "last_batch": coerce.text(_read(partial(getattr, policy, "name", "")) or "", 40),
            }
            for pipe in [pipe for pipe in inside.get("_pipes") or () if coerce.is_a(pipe, core.Pipeline)][:4]:
                add(0, name, iterator, recorder.record_of(pipe))
    for name, value in newest:
        if coerce.is_a(value, core.Pipeline):
            add(1, name, {}, recorder.record_of(value))
    for record in reversed(recorder.records):
        add(2, "", {}, record)

    hints = ("dali", "train", "iter", "loader")
    named.sort(key=lambda entry: (entry[0], -sum(hint in entry[1].lower() for hint in hints)))
    facts: list[dict[str, Any]] = []
    graphs: list[bytes] = []
    for _, name, iterator, record in named[:MAX_GRAPHS]:
        index, root = None, ""
        problem = record.problem
        if record.graph is not None and len(record.graph) <= _GRAPH_BYTES:
            index = len(graphs)
            root = reader_root(record.graph)
            graphs.append(record.graph)
        elif record.graph is not None:
            problem = f"the serialized graph has {len(record.graph)} bytes; at most {_GRAPH_BYTES} are carried"
        facts.append(
            {
                "name": coerce.text(name, 160),
                "batch_size": max(0, record.batch_size),
                "num_threads": max(0, record.num_threads),
                "prefetch_queue_depth": record.prefetch,
                "reader_root": root if len(root) <= _MOST_PATH else "",
                **iterator,
                "graph": index,
                "graph_problem": coerce.text(problem, 2000),
            }
        )
    return facts, graphs


def reachable(module: ModuleType) -> list[tuple[str, Any]]:
    """Objects of the namespace and, one level down, of its containers and of the attributes of its own objects."""
    found: list[tuple[str, Any]] = []
    for name, value in list(module.__dict__.items())[:5000]:
        if type(name) is not str or name.startswith("__"):
            continue
        found.append((name, value))
        kind = type(value)
        if kind in (list, tuple):
            found += [(f"{name}[{i}]", item) for i, item in enumerate(value[:64])]
        elif kind is dict:
            found += [(f"{name}[{coerce.shown(key)}]", item) for key, item in list(value.items())[:64]]
        elif _is_learners(kind) and type(inside := _read(partial(getattr, value, "__dict__"))) is dict:
            found += [(f"{name}.{coerce.text(key, 60)}", item) for key, item in list(inside.items())[:64]]
    return found


def _is_learners(kind: type) -> bool:
    """Whether a class was defined in the submission: in `__main__`, or in a module that is not installed."""
    home = type.__dict__["__dict__"].__get__(kind).get("__module__")
    if home == "__main__":
        return True
    module = sys.modules.get(home) if type(home) is str else None
    file = module.__dict__.get("__file__") if type(module) is ModuleType else None
    installed = (sys.prefix, sys.base_prefix, os.path.dirname(os.__file__), os.path.dirname(os.path.dirname(__file__)))
    return type(file) is str and not file.startswith(installed) and "site-packages" not in file


def _first_batch(names: dict[str, Any]) -> dict[str, Any]:
    if "first_batch" not in names:
        return {"status": "missing"}
    value = names["first_batch"]
    result: dict[str, Any] = {"status": "no_tensor", "type": coerce.type_name(value, 100)}
    try:
        tensor = _tensor_in(value, 3)
        if tensor is not None:
            shape = _shape_of(tensor)
            result |= {
                "status": "present",
                "shape": [side for side in shape if 0 <= side <= 2**40],
                "dtype": coerce.text(getattr(tensor, "dtype", ""), 60),
                "device": _device_of(tensor),
            }
    except BaseException:
        result["status"] = "no_tensor"
    return result


def _tensor_in(value: Any, depth: int) -> Any:
    """The first thing with four dimensions inside lists, tuples and dicts; else the first with any."""
    if coerce.type_name(value) == "PyCapsule":
        value = sys.modules["torch"].from_dlpack(value)
    if hasattr(value, "shape") and not isinstance(value, type):
        return value
    if depth == 0:
        return None
    if isinstance(value, Mapping):
        parts = list(itertools.islice(value.values(), 16))
    elif isinstance(value, (list, tuple)):
        parts = list(value[:16])
    else:
        return None
    found = [tensor for tensor in (_tensor_in(part, depth - 1) for part in parts) if tensor is not None]
    return next((tensor for tensor in found if len(_shape_of(tensor)) == 4), found[0] if found else None)


def _shape_of(tensor: Any) -> list[int]:
    """Its sides; for DALI's list of samples the number of samples and the sides of the first."""
    shape = tensor.shape() if callable(tensor.shape) else tensor.shape
    sides = list(itertools.islice(shape, 4096))
    if sides and isinstance(sides[0], (list, tuple)):
        sides = [len(sides), *sides[0]]
    return [int(side) for side in sides[:16]]


def _device_of(tensor: Any) -> str:
    device = getattr(tensor, "device", None)
    if device is None and coerce.type_name(tensor).startswith("Tensor"):
        return "gpu" if "GPU" in coerce.type_name(tensor) else "cpu"
    return "" if device is None else coerce.text(device, 60)


def _small(value: Any, most: int = 2**31) -> int | None:
    return value if type(value) is int and 0 <= value <= most else None
