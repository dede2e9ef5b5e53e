"""Runs a learner's DALI graph on held-out images, with no learner code anywhere near it.

The process imports DALI before it sees the graph, applies the allow-list and the edits of `graph.edit`, rebuilds the
pipeline and drives it itself. Batches and counts are facts here; time is the host's.
"""

import functools
import os
import time
from typing import Any

from ..channel import Link
from ..graph import edit, model, neutral
from ..graph.edit import Budget, GraphRefused
from ..graph.wire import WireError
from . import reference_plan
from .batches import Batches
from .contents import Look
from .own_graph import OwnGraph

FORBIDDEN_ENVIRONMENT = ("DALI_PRELOAD_PLUGINS", "NVIMGCODEC_EXTENSIONS_PATH", "LD_PRELOAD", "PYTHONSTARTUP")
"""Scrubbed before DALI is imported: each of them loads code or changes what is measured."""
_MAX_OUTPUTS = 64


def run(link: Link) -> None:
    """Guest program: `prepare` (a graph as blob) is answered with `prepared` or `refused`, `window` with two marks.

    `which_gpu` is answered with `gpu`, `contents` with what the last window delivered, `twin_contents` with what the
    plain twin delivers. `prepare_own`, and a `window` of the graph `own`, go to a graph of ours; see `own_graph`.
    """
    for name in FORBIDDEN_ENVIRONMENT:
        os.environ.pop(name, None)
    import nvidia.dali
    import torch

    torch.set_num_threads(1)
    link.send("ready", versions={"dali": nvidia.dali.__version__, "torch": torch.__version__})
    batches: Batches | None = None
    batch_size = 0
    device = "cpu"
    prepared: dict[str, Any] = {}
    look: Look | None = None
    own = OwnGraph()
    while True:
        request = link.receive()
        if request["kind"] == "prepare_own" or request.get("graph") == "own":
            own.answer(link, request)
        elif request["kind"] == "which_gpu":
            uuid, problem = which_gpu()
            link.send("gpu", uuid=uuid, problem=problem)
        elif request["kind"] == "prepare":
            device = request["device"]
            batches = None  # frees the buffers of a graph that was tried before
            try:
                batches, batch_size, answer = prepare(request)
            except GraphRefused as refusal:
                link.send("refused", problem=refusal.reason, text=str(refusal)[:2000])
            except WireError as error:
                link.send("refused", problem="unreadable_graph", text=f"The serialized graph is broken: {error}")
            except Exception as error:
                link.send("refused", problem="graph_failed", text=str(error)[:4000])
            else:
                prepared = answer
                link.send("prepared", **{key: value for key, value in answer.items() if key != "edited"})
        elif request["kind"] == "window" and batches is not None:
            _draw(batches, request["discard"], device)
            look = Look(prepared["batch"]["output"], request["copies"])
            link.send("mark")
            started = time.monotonic()
            _draw(batches, request["batches"], device, look)
            seconds = time.monotonic() - started
            link.send("window_done", images=batch_size * request["batches"], seconds=seconds)
        elif request["kind"] == "contents" and look is not None:
            body, blob = look.message()
            link.send("contents", blob, **body)
        elif request["kind"] == "twin_contents" and batches is not None:
            batches = None  # its place in memory is the twin's
            body, blob = _twin_contents(prepared, request, device)
            link.send("contents", blob, **body)
        else:
            return


def which_gpu() -> tuple[str | None, str | None]:
    """UUID of the GPU that this pod was given, as CUDA writes it, and why CUDA cannot use one.

    Memory that the learner's pod has filled is no problem of the host's: what fails for it later is the learner's.
    """
    import torch

    try:
        torch.cuda.synchronize()
        uuid = getattr(torch.cuda.get_device_properties(0), "uuid", None)
    except Exception as error:
        text = f"{type(error).__name__}: {error}"[:1000]
        return None, None if "out of memory" in text.lower() else text
    return None if uuid is None else str(uuid), None


def prepare(request: dict[str, Any]) -> tuple[Batches, int, dict[str, Any]]:
    """Rebuilds the graph on the held-out files and draws the first batch.

    Raises:
        GraphRefused: an operator or size is not allowed, or no output holds images.
        WireError: the bytes are no graph.
    """
    graph = model.read(request["blob"])
    facts = _graph_facts(graph)
    edit.check(graph)
    files = request["files"]
    changed = edit.repoint(graph, files, [index % 1000 for index in range(len(files))])
    changed += edit.restrain(graph, Budget(request["threads"]))
    declared = [edge.device for edge in graph.outputs]
    if request["device"] == "cpu":
        edit.to_cpu(graph)
    else:
        graph.device_id = 0
    facts["changed"] = [text[:190] for text in changed[:64]]
    batches = Batches(build(graph))
    batch, plan = _first_batch(batches, declared, graph)
    answer = {
        "edited": model.write(graph),
        "colours_changed": neutral.changes_colours(graph),
        "opaque": neutral.opaque_operators(graph, batch["output"])[:32],
        "graph": facts,
        "batch": batch,
        "plan": plan,
        "batch_size": graph.batch_size,
        "queue_depth": max(graph.prefetch),
        "settings": {
            "batch_size": graph.batch_size,
            "num_threads": graph.num_threads,
            "prefetch_queue_depth": list(graph.prefetch),
        },
    }
    return batches, graph.batch_size, answer


def build(graph: model.Graph) -> Any:
    """The running pipeline, with the executor that the graph names.

    Left to itself `deserialize` takes the synchronous one, which prefetches nothing and refuses separate queues.
    """
    from nvidia.dali import Pipeline

    flags = graph.executor or 0
    cpu, gpu = graph.prefetch
    return Pipeline.deserialize(
        model.write(graph),
        exec_pipelined=bool(flags & model.PIPELINED),
        exec_async=bool(flags & model.ASYNC),
        exec_dynamic=bool(flags & model.DYNAMIC),
        prefetch_queue_depth={"cpu": cpu, "gpu": gpu} if flags & model.SEPARATED else max(cpu, gpu),
    )


def _graph_facts(graph: model.Graph) -> dict[str, Any]:
    operators = []
    for operator in graph.operators[:2000]:
        file, line = operator.origin
        device = operator.scalar("device")
        operators.append(
            {
                "name": operator.name[:190],
                "device": str(device or "")[:20],
                "file": os.path.basename(file)[:190],
                "line": line if line is not None and line >= 0 else None,
            }
        )
    return {
        "operators": operators,
        "declared_batch_size": max(0, graph.batch_size),
        "declared_threads": max(0, graph.num_threads),
        "declared_prefetch": max(0, *graph.prefetch),
        "output_devices": [edge.device[:20] for edge in graph.outputs[:_MAX_OUTPUTS]],
        "decoder_devices": [
            str(op.scalar("device") or "cpu")[:20] for op in graph.operators if op.name in edit.DECODERS
        ][:_MAX_OUTPUTS],
        "augmentations": [name[:190] for name in edit.random_operators(graph)[:64]],
    }


def _first_batch(batches: Batches, declared: list[str], graph: model.Graph) -> tuple[dict[str, Any], dict[str, Any]]:
    found: list[tuple[dict[str, Any], dict[str, Any]]] = []
    batches.take(lambda outputs: found.append(_facts(outputs, declared, graph)))
    return found[0]


def _facts(outputs: Any, declared: list[str], graph: model.Graph) -> tuple[dict[str, Any], dict[str, Any]]:
    described = [_describe(output) for output in outputs][:_MAX_OUTPUTS]
    index = _image_output(outputs)
    if index is None:
        raise GraphRefused(
            "no_image_output", f"No output of the pipeline holds images; it returns {', '.join(described)}."
        )
    output = outputs[index]
    if not output.is_dense_tensor():
        raise GraphRefused(
            "ragged_batch",
            "The images of a batch have different sizes, so they cannot be one 4-D tensor: "
            "resize or crop all of them to one size before they leave the pipeline.",
        )
    tensor = output.as_tensor()
    shape = [int(side) for side in _shape(tensor)]
    values = _as_torch(tensor).float()
    low, high = float(values.min()), float(values.max())
    finite = low - low == 0.0 and high - high == 0.0
    facts: dict[str, Any] = {
        "output": index,
        "shape": shape,
        "dtype": str(output.dtype).rpartition(".")[2][:60],
        "layout": str(tensor.layout())[:20],
        "device": "cuda" if "GPU" in type(output).__name__ else "cpu",
        "declared_device": declared[index][:20],
        "finite": finite,
        "constant": finite and low == high,
        "low": low if finite else 0.0,
        "high": high if finite else 0.0,
        "outputs": described,
    }
    return facts, reference_plan.plan(graph, shape[1:], facts["dtype"], index)


def _image_output(outputs: Any) -> int | None:
    """Index of the output whose samples look like one image each: three dimensions, one of them channels."""
    shapes = [[int(side) for side in output.at(0).shape()] if callable(output.at(0).shape) else list(output.at(0).shape)
              for output in outputs]  # fmt: skip
    for index, shape in enumerate(shapes):
        if len(shape) == 3 and (shape[0] in (1, 3, 4) or shape[-1] in (1, 3, 4)):
            return index
    return next((index for index, shape in enumerate(shapes) if len(shape) == 3), None)


def _describe(output: Any) -> str:
    sample = output.at(0)
    shape = list(sample.shape() if callable(sample.shape) else sample.shape)
    place = "gpu" if "GPU" in type(output).__name__ else "cpu"
    return f"{len(output)} x {str(output.dtype).rpartition('.')[2]}{shape} on {place}"[:190]


def _shape(tensor: Any) -> Any:
    return tensor.shape() if callable(tensor.shape) else tensor.shape


def _as_torch(tensor: Any) -> Any:
    import torch

    return torch.from_dlpack(tensor)


def _twin_contents(prepared: dict[str, Any], request: dict[str, Any], device: str) -> Any:
    data, labels = neutral.plain_twin(prepared["edited"])
    twin = Batches(build(model.read(data)))
    look = Look(prepared["batch"]["output"], request["copies"], labels)
    _draw(twin, request["batches"], device, look)
    return look.message()


def _draw(batches: Batches, count: int, device: str, look: Look | None = None) -> None:
    for number in range(count):
        batches.take(None if look is None else functools.partial(look.see, number))
    if device == "cuda":
        import torch

        torch.cuda.synchronize()
