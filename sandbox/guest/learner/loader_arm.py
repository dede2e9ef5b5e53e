"""Drives the learner's own DataLoader on the held-out images; counts are claims, the clock is the host's."""

import os
import pathlib
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from .. import delivery
from ..channel import Link

JPEG_SUFFIXES = (".jpg", ".jpeg", ".jpe", ".jfif")
MAX_FILES = 20_000
_FOREVER = 1 << 40


class ArmProblem(Exception):
    """The loader cannot be timed; the message is for the learner."""


def give_held_out(dataset: Any, dataset_dir: str, held_out: list[str], own_folders: list[str]) -> str:
    """Makes a dataset read the held-out images; returns how: `exchanged`, `rewritten` or `kept`.

    Files are exchanged below `own_folders` only, the scratch space of this run. Anywhere else they may be somebody's:
    a pod without isolation sees the real disk.
    """
    real = os.path.join(os.path.realpath(dataset_dir), "")
    if any(real.startswith(os.path.join(os.path.realpath(folder), "")) for folder in own_folders):
        try:
            if exchange_files(dataset_dir, held_out):
                return "exchanged"
        except OSError:
            pass
    return "rewritten" if repoint_dataset(dataset, dataset_dir, held_out) else "kept"


def exchange_files(dataset_dir: str, held_out: list[str]) -> int:
    """Puts a link to a held-out image in the place of each JPEG below `dataset_dir`; returns how many were replaced.

    Names stay, so that a dataset that listed its files when it was made now reads the held-out ones.
    """
    done = 0
    for folder, folders, names in os.walk(os.path.realpath(dataset_dir)):
        folders.sort()
        for name in sorted(names):
            if done >= MAX_FILES:
                return done
            if name.lower().endswith(JPEG_SUFFIXES):
                path = os.path.join(folder, name)
                temporary = os.path.join(folder, f".grader-{os.getpid()}-{done}")
                os.symlink(held_out[done % len(held_out)], temporary)
                os.replace(temporary, path)
                done += 1
    return done


def repoint_dataset(dataset: Any, dataset_dir: str, held_out: list[str]) -> int:
    """Rewrites the file lists inside a dataset whose files stay as they are; returns how many entries were replaced."""
    roots = tuple(os.path.join(place(dataset_dir), "") for place in (os.path.abspath, os.path.realpath))
    return _repoint(dataset, roots, held_out, 3)


def _repoint(dataset: Any, roots: tuple[str, ...], held_out: list[str], depth: int) -> int:
    dataset_class = sys.modules["torch.utils.data"].Dataset
    numpy = sys.modules.get("numpy")
    done = 0
    attributes = getattr(dataset, "__dict__", {})
    for key, value in list(attributes.items()):
        plain = type(value) in (list, tuple)
        names = numpy is not None and isinstance(value, numpy.ndarray) and value.dtype.kind == "U" and value.ndim == 1
        entries = value if plain else value.tolist() if names else []
        fresh = [_held_out_entry(entry, roots, held_out, i) for i, entry in enumerate(entries)]
        changed = sum(a is not b for a, b in zip(fresh, entries, strict=True))
        if changed:
            attributes[key] = type(value)(fresh) if plain else sys.modules["numpy"].array(fresh)
            done += changed
        elif depth:
            parts = [part for part in (value if plain else [value]) if isinstance(part, dataset_class)]
            done += sum(_repoint(part, roots, held_out, depth - 1) for part in parts)
    return done


def _held_out_entry(entry: Any, roots: tuple[str, ...], held_out: list[str], index: int) -> Any:
    """The entry with its JPEG below the dataset's folder replaced: a path, or a tuple, list or dict that holds one."""
    if isinstance(entry, (str, pathlib.PurePath)):
        path = os.path.abspath(entry)
        if path.startswith(roots) and path.lower().endswith(JPEG_SUFFIXES):
            fresh = held_out[index % len(held_out)]
            return fresh if isinstance(entry, str) else pathlib.Path(fresh)
    elif type(entry) in (tuple, list):
        parts = [_held_out_entry(part, roots, held_out, index) if _is_path(part) else part for part in entry]
        if any(a is not b for a, b in zip(parts, entry, strict=True)):
            return type(entry)(parts)
    elif type(entry) is dict:
        fields = {k: _held_out_entry(v, roots, held_out, index) if _is_path(v) else v for k, v in entry.items()}
        if any(fields[key] is not entry[key] for key in entry):
            return fields
    return entry


def _is_path(value: Any) -> bool:
    return isinstance(value, (str, pathlib.PurePath))


class LoaderArm:
    """An endless stream of batches from the learner's DataLoader."""

    def __init__(self, loader: Any, *, device: str) -> None:
        self._loader = _lengthened(loader)
        self._device = device
        self._batches = self._endless()
        self._packer: delivery.Packer | None = None
        self.queue_depth = int(loader.num_workers) * int(loader.prefetch_factor or 0)

    def draw(self, batches: int) -> int:
        """Draws batches to the device; returns the images in them."""
        images = 0
        for _ in range(batches):
            batch = next(self._batches)
            tensors = list(_tensors(batch, 4))
            if not tensors:
                raise ArmProblem(f"the loader yields {type(batch).__name__} without a tensor in it")
            images += images_in(tensors)
            if self._device == "cuda":
                for tensor in tensors:
                    if not tensor.is_cuda:
                        tensor.to("cuda", non_blocking=True)
        if self._device == "cuda":
            sys.modules["torch"].cuda.synchronize()
        return images

    def deliver(self, link: Link, batches: int) -> None:
        """Sends this many batches to the host, by way of the device as in training."""
        self._packer = delivery.deliver(link, self._on_device(), batches, self._packer)

    def _on_device(self) -> Iterator[Any]:
        for batch in self._batches:
            images = delivery.find_images(batch)
            yield images.to("cuda", non_blocking=True) if self._device == "cuda" else images

    def shape(self) -> list[int]:
        """Shape of one batch's images."""
        tensors = list(_tensors(next(self._batches), 4))
        tensor = next((tensor for least in (4, 3, 0) for tensor in tensors if tensor.dim() >= least), None)
        return [int(side) for side in tensor.shape][:16] if tensor is not None else []

    def _endless(self) -> Iterator[Any]:
        while True:
            empty = True
            for batch in self._loader:
                empty = False
                yield batch
            if empty:
                raise ArmProblem("the loader is empty")


def images_in(tensors: list[Any]) -> int:
    """How many images a batch holds: the first axis of a 4-D tensor, or one for each 3-D tensor of a list."""
    batch = next((tensor for tensor in tensors if tensor.dim() >= 4), None)
    if batch is not None:
        return int(batch.shape[0])
    single = [tensor for tensor in tensors if tensor.dim() == 3 and {tensor.shape[0], tensor.shape[2]} & {1, 3, 4}]
    if single:
        return len(single)
    return int(tensors[0].shape[0]) if tensors[0].dim() else 1


def _lengthened(loader: Any) -> Any:
    """The same loader with one endless epoch, so that worker start-up is not timed once per hundred images."""
    torch_data = sys.modules["torch.utils.data"]
    dataset = loader.dataset
    plain = type(loader) is torch_data.DataLoader and loader.batch_size is not None
    if not plain or isinstance(dataset, torch_data.IterableDataset):
        return loader
    try:
        length = len(dataset)
    except TypeError:
        return loader  # only its own sampler knows what there is to load
    if length == 0:
        raise ArmProblem("the loader's dataset is empty")
    options: dict[str, Any] = {
        "batch_size": loader.batch_size,
        "sampler": torch_data.RandomSampler(dataset, replacement=True, num_samples=_FOREVER),
        "num_workers": loader.num_workers,
        "collate_fn": loader.collate_fn,
        "pin_memory": loader.pin_memory,
        "drop_last": loader.drop_last,
        "worker_init_fn": loader.worker_init_fn,
    }
    if loader.num_workers:
        options |= {
            "prefetch_factor": loader.prefetch_factor,
            "persistent_workers": loader.persistent_workers,
            "multiprocessing_context": loader.multiprocessing_context,
        }
    return torch_data.DataLoader(dataset, **options)


def _tensors(value: Any, depth: int) -> Iterator[Any]:
    tensor_class = sys.modules["torch"].Tensor
    if isinstance(value, tensor_class):
        yield value
    elif depth and isinstance(value, Mapping):
        for part in value.values():
            yield from _tensors(part, depth - 1)
    elif depth and isinstance(value, (list, tuple)):
        for part in value:
            yield from _tensors(part, depth - 1)
