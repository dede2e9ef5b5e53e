"""Runs the learner's `build_rank_iterator` once per rank, in processes of their own, and reads which files came.

The function is cut out of the submission together with the definitions that it needs (imports, functions, classes, and
the values of plain names), so that the rest of the lab does not run again. Each rank is a fresh process with the
environment that torchrun gives and a process group over 127.0.0.1. With a GPU for every rank they use NCCL; without,
they rehearse on the CPU with gloo, as the learner's own process does in a rehearsal.

Observations:
    status: `ok`, `missing` (no such function), `not_separable` (its source cannot be cut out), with `problem`.
    files, batch_size, world_size: of the grader's set, in which each file is a class of its own.
    gpus: whether ranks had GPUs.
    ranks: per rank its files in order (`batches` of class numbers), number of steps, whether it ended by itself, the
        device of its images, the device numbers its pipelines asked for, its readers' shards, what was raised, and how
        long it took to leave after the last batch.
"""

import ast
import json
import os
import pickle
import re
import signal
import socket
import subprocess
import symtable
import sys
import time
import types
from pathlib import Path
from typing import Any

PROBE_API = 1
VERSION = "1.0.0"
SITE = "learner"
BUDGET_S = 150.0

_ERRORS = (Exception, SystemExit, KeyboardInterrupt, GeneratorExit)
_FILES, _BATCH, _WORLD = 25, 4, 2
_LEAVE_S = 20.0
_CELL = re.compile(r"cell_(\d{3,6})\.py")
_PLAIN = (str, int, float, bool, bytes, type(None))

_RANK = """
import importlib, itertools, json, os, pickle, sys, time, traceback
job = json.load(open(sys.argv[1]))
rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
answer = {"rank": rank, "batches": [], "steps": 0, "ended": False, "device": "", "asked": [], "readers": [],
          "error": "", "line": "", "stage": "start", "seconds": 0.0, "leave_s": None}


def save():
    with open(job["answers"][rank] + ".part", "w") as file:
        json.dump(answer, file)
    os.replace(job["answers"][rank] + ".part", job["answers"][rank])


save()
recorder = None
if job["rehearse"]:
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    sys.path.append(job["guest_home"])
    guest = lambda name: importlib.import_module(job["guest"] + ".learner." + name)
    recorder = guest("graphs").Recorder(rehearse=True)
    rehearsal = guest("rehearsal")
    guest("import_hooks").after_import({
        "torch": rehearsal.patch_torch,
        "nvidia.dali.pipeline": recorder.patch,
        "nvidia.dali.plugin.pytorch": rehearsal.patch_dali_plugin,
    })
import functools, inspect
import torch, torch.distributed
import nvidia.dali.pipeline as core

made = core.Pipeline.__init__
kept = []


def init(pipe, *args, **kwargs):
    bound = inspect.signature(made).bind(pipe, *args, **kwargs).arguments
    answer["asked"].append(bound.get("device_id"))
    made(pipe, *args, **kwargs)
    kept.append(pipe)


init.__signature__ = inspect.signature(made)
core.Pipeline.__init__ = init
set_device = torch.cuda.set_device


def chosen(device):
    answer["asked"].append(torch.device(device).index if not isinstance(device, int) else device)
    set_device(device)


torch.cuda.set_device = chosen
try:
    answer["stage"] = "group"
    torch.distributed.init_process_group("gloo" if job["rehearse"] else "nccl", rank=rank, world_size=world,
                                         init_method="tcp://127.0.0.1:" + os.environ["MASTER_PORT"])
    torch.distributed.init_process_group = lambda *a, **k: None
    answer["stage"] = "definitions"
    sys.argv = [job["path"]]
    space = sys.modules["__main__"].__dict__
    space.update(pickle.load(open(job["values"], "rb")))
    space["__name__"] = "grader_rank"
    exec(compile(open(job["path"]).read(), job["path"], "exec"), space)
    answer["stage"] = "build"
    iterator = space[job["factory"]](job["data"], job["batch"], rank, world)
    answer["stage"] = "iterate"
    started = time.monotonic()

    def tensors(value, depth=4):
        if isinstance(value, torch.Tensor):
            yield value
        elif depth and isinstance(value, dict):
            for item in value.values():
                yield from tensors(item, depth - 1)
        elif depth and isinstance(value, (list, tuple)):
            for item in value:
                yield from tensors(item, depth - 1)

    source = iter(iterator)
    for batch in itertools.islice(source, job["most"]):
        found = list(tensors(batch))
        images = next((item for item in found if item.ndim == 4), None)
        labels = next((item for item in found if item.ndim <= 2 and not item.is_floating_point()), None)
        if images is not None:
            answer["device"] = str(images.device)
        answer["batches"].append([] if labels is None else [int(item) for item in labels.flatten().tolist()][:64])
        answer["steps"] += 1
    else:
        answer["ended"] = answer["steps"] < job["most"]
    answer["seconds"] = time.monotonic() - started
    answer["stage"] = "done"
except BaseException as error:
    answer["error"] = (type(error).__name__ + ": " + str(error))[:1500]
    own = [entry for entry in traceback.extract_tb(error.__traceback__) if entry.filename == job["path"]]
    answer["line"] = (own[-1].line or "")[:200] if own else ""
try:
    for pipe in kept[:8]:
        meta = pipe.reader_meta()
        for name in list(meta)[:4]:
            answer["readers"].append({"shards": meta[name]["number_of_shards"], "shard": meta[name]["shard_id"]})
except BaseException:
    pass
save()
try:
    if answer["stage"] == "done":
        torch.distributed.barrier()
    torch.distributed.destroy_process_group()
except BaseException:
    pass
"""


def probe(context: Any) -> dict[str, Any]:
    """See the module."""
    name = str(context.params.get("ddp_ranks", {}).get("factory", "build_rank_iterator"))
    found = {"status": "ok", "problem": "", "files": _FILES, "batch_size": _BATCH, "world_size": _WORLD, "ranks": []}
    found["gpus"] = False
    if not callable(context.names.get(name)):
        return found | {"status": "missing"}
    try:
        text, values = _cut_out(context, name)
    except _ERRORS as error:
        return found | {"status": "not_separable", "problem": context.text(error, 400)}
    folder = Path(context.folder)
    data = _write_data(folder / "data")
    job = {
        "path": str(folder / "build_rank_iterator.py"),
        "values": str(folder / "values.pickle"),
        "factory": name,
        "data": data,
        "batch": _BATCH,
        "most": 4 * _FILES,
        "answers": [str(folder / f"rank-{rank}.json") for rank in range(_WORLD)],
        "rehearse": _rehearse(context),
    }
    found["gpus"] = not job["rehearse"]
    package = type(context).__module__.rpartition(".probes.")[0]
    home = Path(str(sys.modules[package].__file__)).parent
    job |= {"guest": package, "guest_home": str(home.parents[package.count(".")])}
    Path(job["path"]).write_text(text, encoding="utf-8")
    with Path(job["values"]).open("wb") as file:
        pickle.dump(values, file)
    (folder / "job.json").write_text(json.dumps(job), encoding="utf-8")
    (folder / "rank.py").write_text(_RANK, encoding="utf-8")
    found["ranks"] = _run(context, folder, job)
    return found


def _rehearse(context: Any) -> Any:
    torch = sys.modules.get("torch")
    return context.device == "cpu" or torch is None or torch.cuda.device_count() < _WORLD


def _write_data(folder: Any) -> Any:
    """A set in which every file is alone in its class, so that a label tells the file."""
    import numpy as np
    from PIL import Image

    for number in range(_FILES):
        home = folder / f"class-{number:03d}"
        home.mkdir(parents=True)
        pixels = np.random.default_rng(number).integers(0, 255, (6, 8, 3), dtype=np.uint8)
        Image.fromarray(pixels).resize((320, 240)).save(home / "image.jpg")
    return str(folder)


def _run(context: Any, folder: Any, job: Any) -> Any:
    """Starts all ranks, waits for them, and ends what is left."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    processes = []
    for rank in range(_WORLD):
        environment = {
            **os.environ,
            "RANK": str(rank),
            "LOCAL_RANK": str(rank),
            "WORLD_SIZE": str(_WORLD),
            "LOCAL_WORLD_SIZE": str(_WORLD),
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(port),
            "GLOO_SOCKET_IFNAME": "lo",
            "OMP_NUM_THREADS": "1",
        }
        command = [sys.executable, "-W", "ignore", str(folder / "rank.py"), str(folder / "job.json")]
        with (folder / f"rank-{rank}.log").open("wb") as log:
            processes.append(
                subprocess.Popen(
                    command, env=environment, cwd=Path.cwd(), stdout=log, stderr=log, start_new_session=True
                )
            )
    try:
        ends = _wait(context, processes, job)
    finally:
        for process in processes:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except OSError:
                process.kill()
            process.wait()
    return [_answer(folder, job, rank, ends[rank]) for rank in range(_WORLD)]


def _wait(context: Any, processes: Any, job: Any) -> Any:
    """Seconds that each rank needed to leave after its answer; None where it had to be ended."""
    done: dict[int, float] = {}
    left: dict[int, float] = {}
    while context.remaining_s > 10 and len(left) < len(processes):
        for rank, process in enumerate(processes):
            if rank not in done and _stage(job, rank) == "done":
                done[rank] = time.monotonic()
            if rank not in left and process.poll() is not None:
                left[rank] = max(0.0, time.monotonic() - done.get(rank, time.monotonic()))
        waiting = [rank for rank in done if rank not in left]
        if waiting and len(done) == len(processes) and time.monotonic() - max(done.values()) > _LEAVE_S:
            break
        failed = [
            rank for rank, process in enumerate(processes) if process.poll() not in (None, 0) and rank not in done
        ]
        if failed and len(left) < len(processes) and not waiting:
            deadline = time.monotonic() + 5
            while time.monotonic() < deadline and any(process.poll() is None for process in processes):
                time.sleep(0.05)
            break
        time.sleep(0.05)
    return [left.get(rank) for rank in range(len(processes))]


def _stage(job: Any, rank: Any) -> Any:
    try:
        return json.loads(Path(job["answers"][rank]).read_text(encoding="utf-8"))["stage"]
    except (OSError, ValueError, KeyError):
        return ""


def _answer(folder: Any, job: Any, rank: Any, left: Any) -> Any:
    try:
        answer = json.loads(Path(job["answers"][rank]).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        log = (folder / f"rank-{rank}.log").read_bytes()[-600:].decode("utf-8", "replace")
        answer = {"rank": rank, "batches": [], "steps": 0, "ended": False, "device": "", "asked": [], "readers": []}
        answer |= {"error": log, "line": "", "stage": "start", "seconds": 0.0}
    return answer | {"leave_s": left}


# Cutting the function out of the submission.


def _cut_out(context: Any, name: Any) -> Any:
    """(source text, values of plain names): the function and everything that it needs.

    Raises:
        ValueError: something that it needs cannot be had without running the submission again.
    """
    bound = _bindings(context)
    wanted, taken, values = [name], {}, {}
    while wanted:
        current = wanted.pop()
        if current in taken or current in values:
            continue
        value = context.names.get(current)
        if _is_plain(value) and current in context.names:
            values[current] = value
            continue
        if current not in bound:
            continue  # a builtin, or a name that only a branch uses
        place, node = bound[current]
        taken[current] = (place, node)
        wanted += [used for used in _used(node) if used not in taken]
    if name not in taken:
        raise ValueError(f"the source of {name} was not found at the top level of the submission")
    nodes = {id(node): (place, node) for place, node in taken.values()}
    ordered = [node for _, node in sorted(nodes.values(), key=lambda pair: pair[0])]
    return "\n".join(ast.unparse(node) for node in ordered) + "\n", values


def _bindings(context: Any) -> Any:
    """Name to (place, statement) of its last binding at the top level of the submission."""
    bound = {}
    for number, path in enumerate(_sources(context)):
        try:
            tree = ast.parse(Path(path).read_bytes())
        except (OSError, SyntaxError, ValueError):
            continue
        for place, node in enumerate(_top_level(tree.body)):
            for name in _bound_by(node):
                bound[name] = ((number, place), node)
    return bound


def _top_level(body: Any) -> Any:
    """Statements of a module, those inside try, if and with included."""
    for node in body:
        if isinstance(node, (ast.Try, ast.If, ast.With)):
            yield from _top_level(node.body)
            if not isinstance(node, ast.With):
                yield from _top_level(node.orelse)
            for handler in getattr(node, "handlers", []):
                yield from _top_level(handler.body)
        else:
            yield node


def _bound_by(node: Any) -> Any:
    if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef)):
        return [node.name]
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return [item.asname or item.name.partition(".")[0] for item in node.names if item.name != "*"]
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return [part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name)]


def _used(node: Any) -> Any:
    """Names of the module that a statement needs; locals of its functions are not among them."""
    tables = [symtable.symtable(ast.unparse(node), "<submission>", "exec")]
    names = {symbol.get_name() for symbol in tables[0].get_symbols() if symbol.is_referenced()}
    while tables:
        table = tables.pop()
        tables += table.get_children()
        if table.get_type() != "module":
            names |= {symbol.get_name() for symbol in table.get_symbols() if symbol.is_global()}
    return sorted(names)


def _is_plain(value: Any, depth: Any = 4) -> Any:
    """Whether a value can be handed on as it is."""
    if type(value) in _PLAIN:
        return True
    if type(value) in (list, tuple, set, frozenset):
        return depth > 0 and len(value) <= 10_000 and all(_is_plain(item, depth - 1) for item in value)
    if type(value) is dict:
        return depth > 0 and all(_is_plain(item, depth - 1) for pair in value.items() for item in pair)
    return type(value).__module__ in ("pathlib", "numpy") and not callable(value)


def _sources(context: Any) -> Any:
    """The module's file, or the cells of the notebook in order."""
    own = context.names.get("__file__")
    if type(own) is str:
        return [own]
    for value in list(context.names.values()):
        inner = getattr(value, "__wrapped__", value) if type(value) is types.FunctionType else None
        for function in (value, inner):
            if type(function) is types.FunctionType and _CELL.fullmatch(Path(function.__code__.co_filename).name):
                folder = Path(function.__code__.co_filename).parent
                return [str(path) for path in sorted(folder.glob("cell_*.py"))]
    return []
