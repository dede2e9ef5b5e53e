"""Which files each side of the comparison reads: the PyTorch dataset, and the readers of the DALI pipelines.

Observations:
    loader: the DataLoader that is most likely the baseline: its name, dataset class, files read (`files`, at most
        20,000 hashes of 8 bytes), how they were found (`how`), their classes, and how many files there are; or null.
    readers: for each pipeline: its name, the operator, where the files come from (`how`), hashes, classes, files, and
        the shards.
    folder: of either side, below which all of its files lie; empty where it has none.
A file's hash is over its content where both sides name different paths, else over its real path. Labels are compared
for files that both sides name: `labels` maps the hash of a file to its class number.

The dataset's attributes are read; nothing of the learner's is called.
"""

import hashlib
import itertools
import os
import sys
from pathlib import Path
from typing import Any

PROBE_API = 1
VERSION = "1.1.0"
SITE = "learner"
BUDGET_S = 60.0

_ERRORS = (Exception, SystemExit, KeyboardInterrupt, GeneratorExit)
_MOST = 20_000
_MOST_SHOWN = 5
_SUFFIXES = (".jpg", ".jpeg", ".png", ".bmp", ".tif", ".tiff", ".pnm", ".ppm", ".pgm", ".pbm", ".jp2", ".webp")
_ATTRIBUTES = ("samples", "imgs", "files", "paths", "image_paths", "img_paths", "filenames", "image_files", "items")
_ROOTS = ("root", "dataset_dir", "data_dir", "folder", "directory", "img_dir", "image_dir", "path")


def probe(context: Any) -> dict[str, Any]:
    """See the module."""
    sides = []
    loader = None
    for name, found in context.loaders[:1]:
        loader = {"name": context.text(name, 100), **_dataset(context, found)}
        sides.append(loader)
    readers = []
    for name, pipe in _pipelines(context):
        readers += [{"name": context.text(name, 100), **reader} for reader in _readers(context, pipe)[:4]]
    readers = readers[:8]
    for side in (*sides, *readers):
        side["count"] = len(side["pairs"])
        side["folder"] = _folder(context, side["pairs"])
    _compare(context, loader, readers)
    return {"loader": loader, "readers": readers}


def _compare(context: Any, loader: Any, readers: Any) -> Any:
    """Replaces each side's files by what they have in common with the loader's."""
    own = _keyed(loader["pairs"]) if loader is not None else {}
    for reader in readers:
        theirs = _keyed(reader.pop("pairs"))
        same_paths = own.keys() & theirs.keys()
        how, left, right = "path", own, theirs
        if own and theirs and len(same_paths) < len(own.keys() | theirs.keys()) and len(same_paths) * 2 < len(theirs):
            how, left, right = "content", _by_content(context, own), _by_content(context, theirs)
        common = left.keys() & right.keys()
        both = [(left[key][1], right[key][1]) for key in common]
        labelled = [(a, b) for a, b in both if a is not None and b is not None]
        reader |= {
            "compared_by": how,
            "common": len(common),
            "distinct": len(right),
            "loader_distinct": len(left),
            "only_loader": _shown(left[key][0] for key in itertools.islice(left.keys() - right.keys(), 200)),
            "only_reader": _shown(right[key][0] for key in itertools.islice(right.keys() - left.keys(), 200)),
            "labelled": len(labelled),
            "labels_differ": sum(a != b for a, b in labelled),
        }
    if loader is not None:
        loader.pop("pairs")


def _folder(context: Any, pairs: Any) -> Any:
    folders = [os.path.realpath(folder) for folder in {Path(path).parent for path, _ in pairs}]
    return context.text(os.path.commonpath(folders), 200) if folders else ""


def _keyed(pairs: Any) -> Any:
    return {os.path.realpath(path): (path, label) for path, label in pairs}


def _by_content(context: Any, keyed: Any) -> Any:
    found: dict[str, Any] = {}
    for path, (name, label) in keyed.items():
        if context.remaining_s < 5:
            break
        try:
            with Path(path).open("rb") as file:
                key = hashlib.blake2b(file.read(1 << 20), digest_size=16).hexdigest()
        except OSError:
            key = path
        found.setdefault(key, (name, label))
    return found


def _shown(paths: Any) -> Any:
    return sorted("/".join(Path(path).parts[-3:])[:150] for path in paths)[:_MOST_SHOWN]


# The PyTorch side.


def _dataset(context: Any, loader: Any) -> Any:
    entry = {"dataset": "", "how": "", "classes": [], "pairs": [], "problem": ""}
    try:
        dataset = loader.dataset
        entry["dataset"] = type(dataset).__name__[:100]
        read = _samples(context, dataset, 4)
    except _ERRORS as error:
        entry["problem"] = context.text(error, 200)
        return entry
    if read is None:
        entry["problem"] = "its files could not be read from its attributes"
        return entry
    how, pairs = read
    entry |= {"how": how, "pairs": pairs[:_MOST], "classes": _classes(context, dataset)}
    return entry


def _samples(context: Any, dataset: Any, depth: Any) -> Any:
    """(how, [(path, class number or None)]) of a dataset; None where it does not show its files."""
    if depth == 0:
        return None
    inside = getattr(dataset, "__dict__", None)
    if type(inside) is not dict:
        return None
    if "indices" in inside and "dataset" in inside:
        read = _samples(context, inside["dataset"], depth - 1)
        picked = [int(index) for index in list(inside["indices"])[: 5 * _MOST]]
        return None if read is None else (read[0], [read[1][index] for index in picked if 0 <= index < len(read[1])])
    if type(inside.get("datasets")) in (list, tuple):
        parts: list[Any] = [_samples(context, part, depth - 1) for part in inside["datasets"]]
        if None in parts:
            return None
        how = str(parts[0][0]) if parts else "datasets"
        return how, [pair for part in parts for pair in part[1]]
    for name in (*_ATTRIBUTES, *inside):
        pairs = _paths(inside.get(name))
        if pairs:
            targets = inside.get("targets", inside.get("labels"))
            if all(label is None for _, label in pairs) and type(targets) is list and len(targets) == len(pairs):
                pairs = [(path, _label(value)) for (path, _), value in zip(pairs, targets, strict=True)]
            base = next((str(inside[root]) for root in _ROOTS if _is_path(inside.get(root))), "")
            return name, [(path if Path(path).is_absolute() else _at(base, path), label) for path, label in pairs]
    for name in (*_ROOTS, *inside):
        if _is_path(inside.get(name)) and Path(str(inside[name])).is_dir():
            files = sorted(str(path) for path in Path(str(inside[name])).rglob("*") if path.suffix.lower() in _SUFFIXES)
            return f"walk of {name}", [(path, None) for path in files[: 5 * _MOST]]
    inner = next((inside[name] for name in ("dataset", "ds", "base", "inner", "wrapped") if name in inside), None)
    return None if inner is None else _samples(context, inner, depth - 1)


def _at(base: Any, path: Any) -> Any:
    """A relative path is meant from the working directory, or else from the dataset's own folder."""
    return path if not base or Path(path).exists() else str(Path(base) / path)


def _paths(value: Any) -> Any:
    """Paths in a list of paths, of (path, class) pairs, or of dicts; None where it is something else."""
    if type(value) not in (list, tuple) or not value:
        return None
    pairs = []
    for item in value[: 5 * _MOST]:
        path, label = item, None
        if type(item) in (list, tuple) and item:
            path, label = item[0], _label(item[1]) if len(item) > 1 else None
        elif type(item) is dict:
            label = _label(item.get("label", item.get("class")))
            path = next((item[key] for key in ("path", "file", "image", "filename") if key in item), None)
        if not _is_path(path) or Path(str(path)).suffix.lower() not in _SUFFIXES:
            return None
        pairs.append((str(path), label))
    return pairs


def _is_path(value: Any) -> Any:
    return type(value) is str or issubclass(type(value), os.PathLike)


def _label(value: Any) -> Any:
    return int(value) if type(value) is int or type(value).__module__ == "numpy" else None


def _classes(context: Any, dataset: Any) -> Any:
    value = getattr(dataset, "classes", None)
    names: Any = value if type(value) in (list, tuple) else ()
    return [context.text(item, 80) for item in names[:100]]


# The DALI side: the pipelines as they are serialized.


def _pipelines(context: Any) -> Any:
    """(name, pipeline), those of iterators first, later definitions first."""
    found = []
    core = sys.modules.get("nvidia.dali.pipeline")
    for name, iterator in reversed(context.iterators):
        try:
            found += [(name, pipe) for pipe in (iterator.__dict__.get("_pipes") or ())[:8]]
        except _ERRORS:
            continue
    found += reversed(context.pipelines)
    seen, kept = set(), []
    for name, pipe in found:
        if id(pipe) not in seen and core is not None and issubclass(type(pipe), core.Pipeline):
            seen.add(id(pipe))
            kept.append((name, pipe))
    return kept[:8]


def _readers(context: Any, pipe: Any) -> Any:
    try:
        readers = context.readers(pipe)
    except _ERRORS as error:
        return [{**_empty("unreadable"), "problem": context.text(error, 200)}]
    found = []
    for name, arguments in readers:
        read: Any = {"problem": f"{name} does not name JPEG files"}
        if context.operator_row(name).role == "reader":
            read = _file_reader(arguments)
        found.append({**_empty(name), **read})
    return found


def _empty(operator: Any) -> Any:
    return {"operator": operator, "how": "", "classes": [], "pairs": [], "problem": "", "shards": 1, "shard": 0}


def _file_reader(arguments: Any) -> Any:
    root = str((arguments.get("file_root") or [""])[0])
    entry: dict[str, Any] = {
        "shards": int((arguments.get("num_shards") or [1])[0]),
        "shard": int((arguments.get("shard_id") or [0])[0]),
    }
    try:
        if arguments.get("files"):
            labels = arguments.get("labels") or range(len(arguments["files"]))  # as DALI does
            pairs = list(zip(arguments["files"], labels, strict=False))
            entry["how"] = "files"
        elif arguments.get("file_list"):
            pairs, entry["how"] = _file_list(str(arguments["file_list"][0])), "file_list"
        else:
            pairs, entry["classes"] = _walk(root, arguments)
            entry["how"] = "file_root"
    except OSError as error:
        return entry | {"problem": str(error)[:200]}
    entry["pairs"] = [(str(Path(root) / path) if root else str(path), label) for path, label in pairs][: 5 * _MOST]
    return entry


def _file_list(path: Any) -> Any:
    pairs = []
    with Path(path).open(encoding="utf-8", errors="replace") as file:
        for line in itertools.islice(file, 5 * _MOST):
            name, _, label = line.strip().rpartition(" ")
            if name:
                pairs.append((name.strip(), int(label) if label.lstrip("-").isdigit() else None))
    return pairs


def _walk(root: Any, arguments: Any) -> Any:
    """Files one level below `file_root`, and the folders that are their classes, as DALI's reader takes them."""
    base = Path(root)
    only = [str(name) for name in arguments.get("dir_filters") or ["*"]]
    wanted = [str(name) for name in arguments.get("file_filters") or []]
    folders = sorted(part.name for part in base.iterdir() if part.is_dir() and any(part.match(rule) for rule in only))
    pairs: list[Any] = []
    for label, folder in enumerate(folders):
        for path in sorted((base / folder).iterdir()):
            fits = any(path.match(rule) for rule in wanted) if wanted else path.suffix.lower() in _SUFFIXES
            if fits and len(pairs) < 5 * _MOST:
                pairs.append((f"{folder}/{path.name}", label))
    return pairs, folders[:100]
