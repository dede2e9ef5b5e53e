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
        device of its images, the device numbers its pipelines asked for, its readers' shards, what was raised, how
        long it took to leave after the last batch, what of the learner's it had to wait for then (threads, processes,
        handlers), and, where it had to be ended, where it stood.

When all ranks have answered, each leaves as Python does, waiting for threads and calling the handlers of `atexit`, but
then ends at once: what libraries do while the process group and the interpreter are taken apart is slow, may hang, and
says nothing of the learner.
"""

import json
import os
import pickle
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

PROBE_API = 1
VERSION = "1.1.0"
SITE = "learner"
BUDGET_S = 150.0

_ERRORS = (Exception, SystemExit, KeyboardInterrupt, GeneratorExit)
_FILES, _BATCH, _WORLD = 25, 4, 2
_LEAVE_S = 20.0
"""A rank that needs longer to leave after the last batch of all is ended."""
_LOOKED_AT_S = 15.0
"""When it is written down where a rank stands that has not left yet."""

_RANK = """
import atexit, faulthandler, importlib, itertools, json, multiprocessing, os, pickle, sys, threading, time, traceback
job = json.load(open(sys.argv[1]))
rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
answer = {"rank": rank, "batches": [], "steps": 0, "ended": False, "device": "", "asked": [], "readers": [],
          "error": "", "line": "", "stage": "start", "seconds": 0.0, "leave_s": None, "waits_for": []}


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
register = atexit.register
handlers = []


def registered(function, *args, **kwargs):
    handlers.append("the handler " + str(getattr(function, "__name__", "of atexit"))[:60])
    return register(function, *args, **kwargs)


threads = set(threading.enumerate())
atexit.register = registered
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


def answered(path):
    try:
        other = json.load(open(path))
    except (OSError, ValueError):
        return False
    return other["stage"] == "done" or bool(other["error"])


patience = time.monotonic() + job["patience_s"]
while not all(map(answered, job["answers"])) and time.monotonic() < patience:
    time.sleep(0.02)
faulthandler.dump_traceback_later(job["looked_at_s"], exit=False)
children = [child for child in multiprocessing.active_children() if not child.daemon]
answer["waits_for"] = (
    ["the thread " + str(thread.name)[:60] for thread in threading.enumerate()
     if thread not in threads and not thread.daemon][:8]
    + ["the process " + str(child.name)[:60] for child in children][:8] + handlers[:8]
)
save()
try:
    threading._shutdown()
    atexit._run_exitfuncs()
    sys.stdout.flush()
finally:
    os._exit(0)
"""


def probe(context: Any) -> dict[str, Any]:
    """See the module."""
    name = str(context.params.get("ddp_ranks", {}).get("factory", "build_rank_iterator"))
    found = {"status": "ok", "problem": "", "files": _FILES, "batch_size": _BATCH, "world_size": _WORLD, "ranks": []}
    found["gpus"] = False
    if not callable(context.names.get(name)):
        return found | {"status": "missing"}
    try:
        text, values = context.cut_out(name)
    except _ERRORS as error:
        return found | {"status": "not_separable", "problem": context.text(error, 400)}
    folder = Path(context.folder)
    data = _write_data(folder / "data")
    torch = sys.modules.get("torch")
    job = {
        "path": str(folder / "build_rank_iterator.py"),
        "values": str(folder / "values.pickle"),
        "factory": name,
        "data": data,
        "batch": _BATCH,
        "most": 4 * _FILES,
        "patience_s": _LEAVE_S,
        "looked_at_s": _LOOKED_AT_S,
        "answers": [str(folder / f"rank-{rank}.json") for rank in range(_WORLD)],
        "rehearse": context.device == "cpu" or torch is None or torch.cuda.device_count() < _WORLD,
    }
    found["gpus"] = not job["rehearse"]
    package = type(context).__module__.rpartition(".learner.")[0]
    home = Path(str(sys.modules[package].__file__)).parent
    job |= {"guest": package, "guest_home": str(home.parents[package.count(".")])}
    Path(job["path"]).write_text(text, encoding="utf-8")
    with Path(job["values"]).open("wb") as file:
        pickle.dump(values, file)
    (folder / "job.json").write_text(json.dumps(job), encoding="utf-8")
    (folder / "rank.py").write_text(_RANK, encoding="utf-8")
    found["ranks"] = _run(context, folder, job)
    return found


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
    """Seconds that each rank needed to leave after the last answer of all; None where it had to be ended.

    A rank leaves when all have answered, so one that had to wait for a slower one is not said to have been slow.
    """
    done: dict[int, float] = {}
    left: dict[int, float] = {}
    while context.remaining_s > 10 and len(left) < len(processes):
        for rank, process in enumerate(processes):
            if rank not in done and _stage(job, rank) == "done":
                done[rank] = time.monotonic()
            if rank not in left and process.poll() is not None:
                left[rank] = max(0.0, time.monotonic() - max(done.values(), default=time.monotonic()))
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
    log = (folder / f"rank-{rank}.log").read_bytes()[-600:].decode("utf-8", "replace")
    try:
        answer = json.loads(Path(job["answers"][rank]).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        answer = {"rank": rank, "batches": [], "steps": 0, "ended": False, "device": "", "asked": [], "readers": []}
        answer |= {"error": log, "line": "", "stage": "start", "seconds": 0.0}
    stood = re.sub(r'"[^"]*/', '"', log) if left is None else ""  # file names are enough
    return answer | {"leave_s": left, "stood": stood}
