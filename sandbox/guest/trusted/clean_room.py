"""Runs a learner's DALI graph on held-out images, with no learner code anywhere near it.

The process imports DALI before it sees the graph, applies the allow-list and the edits of `graph.edit`, rebuilds the
pipeline and drives it itself. Batches and counts are facts here; time is the host's.
"""

import io
import os
import random
from dataclasses import dataclass
from typing import Any

from ..channel import Link
from ..graph import edit, model
from ..graph.model import GraphRefused
from ..graph.wire import WireError
from . import own_graph
from .batches import Batches, build
from .children import WithoutGpu
from .examination import Examination
from .runs import reseed
from .twins import decode_one

FORBIDDEN_ENVIRONMENT = ("DALI_PRELOAD_PLUGINS", "NVIMGCODEC_EXTENSIONS_PATH", "LD_PRELOAD", "PYTHONSTARTUP")
"""Scrubbed before DALI is imported: each of them loads code or changes what is measured."""
_MAX_OUTPUTS = 64


def run(link: Link) -> None:
    """Guest program: `prepare` (a graph as blob) is answered with `prepared` or `refused`, `window` with two marks.

    Where `prepare` asks for `experiments`, `prepared` is followed by `experimented`: what the graph does, and the job
    of a reference loader beside it. `which_gpu` is answered with `gpu`, and begins the GPU's decoder. `prepare_own`
    puts a graph of ours in the place of the learner's; see `own_graph`.
    """
    for name in FORBIDDEN_ENVIRONMENT:
        os.environ.pop(name, None)
    import nvidia.dali
    import torch

    torch.set_num_threads(1)
    cpu = WithoutGpu(decode_one)  # while the learner's code runs
    link.send("ready", versions={"dali": nvidia.dali.__version__, "torch": torch.__version__})
    prepared: Prepared | None = None
    timed: Batches | None = None
    begun: list[Any] = []  # a decoder of the GPU's, until the graph has its own
    while True:
        request = link.receive()
        if request["kind"] == "prepare_own":
            prepared = timed = None  # it fills its queue no more while ours is timed
            timed = own_graph.prepare(link, request)
        elif request["kind"] == "which_gpu":
            uuid, problem = which_gpu()
            if problem is None:
                begun.append(gpu_decoder())
            link.send("gpu", uuid=uuid, problem=problem)
        elif request["kind"] == "prepare":
            prepared = timed = None  # frees the buffers of a graph that was tried before
            try:
                prepared, answer = prepare(request, cpu)
            except GraphRefused as refusal:
                link.send("refused", problem=refusal.reason, text=str(refusal)[:2000])
            except WireError as error:
                link.send("refused", problem="unreadable_graph", text=f"The serialized graph is broken: {error}")
            except Exception as error:
                link.send("refused", problem="graph_failed", text=str(error)[:4000])
            else:
                begun.clear()
                timed = prepared.batches
                link.send("prepared", **answer)
                if request["experiments"]:
                    link.send("experimented", **prepared.examination.result(prepared.batch))
        elif request["kind"] == "window" and timed is not None:
            timed.window(link, request)
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


def gpu_decoder() -> Any:
    """A running decoder of the GPU's; None where there is no room for one.

    While no other lives in its process nvJPEG takes more than a second to begin, which a graph would have to wait for.
    """
    from nvidia.dali import Pipeline, fn, types
    from PIL import Image

    file = io.BytesIO()
    Image.new("RGB", (16, 16)).save(file, "JPEG")
    try:
        with Pipeline(batch_size=1, num_threads=1, device_id=0, prefetch_queue_depth=1) as pipeline:
            encoded = fn.constant(idata=list(file.getvalue()), dtype=types.UINT8)  # type: ignore[attr-defined]
            pipeline.set_outputs(fn.decoders.image(encoded, device="mixed"))
        pipeline.build()
        pipeline.run()
    except Exception:
        return None
    return pipeline


@dataclass(frozen=True)
class Prepared:
    """A graph that runs on held-out files."""

    batches: Batches
    batch: dict[str, Any]
    """Facts of the first batch."""
    examination: Examination


def prepare(request: dict[str, Any], cpu: WithoutGpu) -> tuple[Prepared, dict[str, Any]]:
    """Rebuilds the graph on the held-out files, with seeds that nobody knows, and draws the first batch.

    Args:
        cpu: where experiments run, beside the first batch.

    Raises:
        GraphRefused: an operator or size is not allowed, or no output holds images.
        WireError: the bytes are no graph.
    """
    graph, chance = model.read(request["blob"]), random.SystemRandom()
    facts = _graph_facts(graph)
    changed = edit.prune(graph)
    edit.check(graph)
    if request["device"] == "cpu":
        edit.require_cpu(graph)
    files = chance.sample(request["files"], len(request["files"]))
    changed += edit.repoint(graph, files, chance.choices(range(1000), k=len(files)))
    changed += edit.restrain(graph, request["threads"])
    declared = [edge.device for edge in graph.outputs]
    if request["device"] == "cpu":
        edit.to_cpu(graph)
    else:
        graph.device_id = 0
    reseed(graph, chance)
    facts["changed"] = [text[:190] for text in changed[:64]]
    examination = Examination(cpu, graph, files, request["device"], request["threads"])
    if request["experiments"]:
        examination.begin()
    try:
        batches = Batches(build(graph), graph.batch_size, request["device"])
        batch = batches.take(lambda outputs: _facts(outputs, declared))
    except Exception:
        examination.drop()
        raise
    answer = {
        "graph": facts,
        "batch": batch,
        "batch_size": graph.batch_size,
        "queue_depth": max(graph.prefetch),
        "settings": {
            "batch_size": graph.batch_size,
            "num_threads": graph.num_threads,
            "prefetch_queue_depth": list(graph.prefetch),
        },
    }
    return Prepared(batches, batch, examination), answer


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
            str(op.scalar("device") or "cpu")[:20] for op in graph.operators if op.row.role == "decoder"
        ][:_MAX_OUTPUTS],
        "augmentations": [name[:190] for name in edit.random_operators(graph)[:64]],
    }


def _facts(outputs: Any, declared: list[str]) -> dict[str, Any]:
    import torch

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
    shape = _shape(tensor)
    values = torch.from_dlpack(tensor).float()
    low, high = float(values.min()), float(values.max())
    finite = low - low == 0.0 and high - high == 0.0
    return {
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


def _image_output(outputs: Any) -> int | None:
    """Index of the output whose samples look like one image each: three dimensions, one of them channels."""
    shapes = [_shape(output.at(0)) for output in outputs]
    for index, shape in enumerate(shapes):
        if len(shape) == 3 and (shape[0] in (1, 3, 4) or shape[-1] in (1, 3, 4)):
            return index
    return next((index for index, shape in enumerate(shapes) if len(shape) == 3), None)


def _describe(output: Any) -> str:
    place = "gpu" if "GPU" in type(output).__name__ else "cpu"
    return f"{len(output)} x {str(output.dtype).rpartition('.')[2]}{_shape(output.at(0))} on {place}"[:190]


def _shape(tensor: Any) -> list[int]:
    return [int(side) for side in (tensor.shape() if callable(tensor.shape) else tensor.shape)]
