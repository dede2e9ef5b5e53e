"""The learner's pod: runs the submission once, says what it left behind, then serves as the learner's PyTorch arm."""

import contextlib
import importlib
import os
import sys
import tempfile
from types import ModuleType
from typing import Any

from .. import delivery
from ..channel import Link
from ..probes import running
from . import coerce, dali_arm, deadline, execution, import_hooks, loader_arm, notebook_shell, observe, rehearsal
from .graphs import Recorder
from .probe_context import LearnerContext


def run(link: Link) -> None:
    """Guest program; see the module's docstring for the order of messages."""
    import_ahead(os.environ.pop("GRADER_AHEAD", ""))
    request = link.receive()
    rehearse = request["device"] == "cpu"
    # Ours before theirs: what runs after the learner's code must not depend on what that code patched or deleted.
    exit_now, send = os._exit, link.send
    recorder = Recorder(rehearse=rehearse)
    patches: dict[str, import_hooks.Patch] = {
        "nvidia.dali.pipeline": recorder.patch,
        "tqdm.notebook": notebook_shell.plain_progress,
    }
    if rehearse:
        patches["torch"] = rehearsal.patch_torch
        patches["nvidia.dali.plugin.pytorch"] = rehearsal.patch_dali_plugin
    import_hooks.after_import(patches)

    workspace = request["workspace"]
    execution.bring_files(request["submission"], workspace)
    entry = request["entry"]
    source = execution.Source(
        root=os.path.join(workspace, os.path.dirname(entry)).rstrip("/"),
        entry=entry,
        cells=[(cell["number"], cell["source"]) for cell in request["cells"]] if request["cells"] is not None else None,
    )
    send("started")

    def conclude(outcome: execution.Run, module: ModuleType) -> None:
        if os.getpid() != own_process:
            exit_now(outcome.exit_code or 0)  # a child that the learner's code forked and let run on to here
        send("ran")
        with deadline.impatient(source.root, cell_folder):
            loaders = observe.live_loaders(module)
            found, graphs = _findings(outcome, module, recorder, loaders, rehearse=rehearse)
        send("discovered", b"".join(graphs), discovery=found, graph_sizes=[len(graph) for graph in graphs])
        _serve(link, module, loaders, recorder, request)
        exit_now(0)

    own_process = os.getpid()
    cell_folder = os.path.join(request["tmp"], "notebook-cells")
    conclude(
        *execution.execute(source, request["timeout_s"], cell_folder, abandon=conclude, stall_s=request["stall_s"])
    )


def import_ahead(names: str) -> None:
    """Imports modules while the pod waits for its submission; patches and the learner's own imports find them loaded.

    Args:
        names: separated by commas; empty in a pod that was started for a submission that is there.
    """
    for name in filter(None, names.split(",")):
        # What this image does not have, or cannot load, is for the learner's own import to say.
        with contextlib.suppress(Exception), import_hooks.no_collection():
            importlib.import_module(name)


def _findings(
    outcome: execution.Run,
    module: ModuleType,
    recorder: Recorder,
    loaders: list[tuple[str, Any]],
    *,
    rehearse: bool,
) -> tuple[dict[str, Any], list[bytes]]:
    """A `Discovery`, and the graphs that belong to it."""
    facts = observe.namespace_facts(module)
    pipelines, graphs = observe.pipelines(module, recorder)
    found = {
        **facts,
        **outcome.__dict__,
        "loaders": [observe.loader_facts(*pair) for pair in loaders[: observe.MAX_LOADERS]],
        "pipelines": pipelines,
        "dynamic_mode": "nvidia.dali.experimental.dynamic" in sys.modules,
        "needs_gpu": observe.needs_gpu(outcome.exception) if rehearse else "",
        "versions": observe.versions(),
        "names": observe.names(module),
        "defined": observe.defined(module),
    }
    return found, graphs


def _serve(
    link: Link,
    module: ModuleType,
    loaders: list[tuple[str, Any]],
    recorder: Recorder,
    discover: dict[str, Any],
) -> None:
    """Answers requests to prepare an arm and to draw from it, until told to stop."""
    arm: loader_arm.LoaderArm | None = None
    dali: dali_arm.DaliArm | None = None
    while True:
        request = link.receive()
        try:
            if request["kind"] == "prepare_loader":
                arm, answer = _prepare(request, module, loaders, discover)
                link.send("loader_ready", **answer)
            elif request["kind"] == "window" and arm is not None:
                arm.draw(request["discard"])
                link.send("mark")
                images = arm.draw(request["batches"])
                link.send("window_done", images=images)
            elif request["kind"] == "deliver_loader" and arm is not None:
                arm.draw(request["discard"])
                link.send("mark")
                arm.deliver(link, request["batches"])
            elif request["kind"] == "prepare_dali":
                dali = dali_arm.DaliArm(module.__dict__[dali_arm.FACTORY], request["batch_size"])
                ready = dali.prepare(request["folder"], request["drain"])
                link.send("dali_ready", **ready | ({"device": "cuda"} if recorder.stands_in_for_gpu() else {}))
            elif request["kind"] == "deliver_dali" and dali is not None:
                if request["folder"]:
                    dali.build(request["folder"])
                dali.deliver(link, request["batches"])
            elif request["kind"] == "probe":
                link.send("probed", **_probe(request, module, loaders))
            else:
                return
        except (loader_arm.ArmProblem, delivery.NoImages) as problem:
            link.send("arm_problem", text=coerce.text(problem, 1800))
        except Exception as error:
            link.send("arm_problem", text=f"{coerce.type_name(error, 100)}: {coerce.text(error, 1500)}")


def _probe(request: dict[str, Any], module: ModuleType, loaders: list[tuple[str, Any]]) -> dict[str, Any]:
    """What became of a probe; no folder to be had, or a guest that was tampered with, is one more thing to say."""
    try:
        return _looked_at(request, module, loaders)
    except Exception as error:
        return {"status": "raised", "text": coerce.text(error, 500), "observations": None}


def _looked_at(request: dict[str, Any], module: ModuleType, loaders: list[tuple[str, Any]]) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="probe-") as folder:
        given = {name: request[name] for name in ("device", "params", "budget_s")}
        context = LearnerContext(module, loaders, folder=folder, **given)
        return running.run(request["name"], request["blob"], context, request["budget_s"])


def _prepare(
    request: dict[str, Any], module: ModuleType, loaders: list[tuple[str, Any]], discover: dict[str, Any]
) -> tuple[loader_arm.LoaderArm, dict[str, Any]]:
    held_out = [os.path.join(folder, name) for folder, _, names in sorted(os.walk(request["shards"])) for name in names]
    held_out.sort()
    dataset_dir, how = request["dataset_dir"], "kept"
    if loaders:
        name, loader = loaders[0]
        if dataset_dir:
            own_folders = [discover["workspace"], discover["tmp"]]
            how = loader_arm.give_held_out(loader.dataset, dataset_dir, held_out, own_folders)
    else:
        factory = module.__dict__.get("build_pytorch_loader")
        if not callable(factory):
            raise loader_arm.ArmProblem(
                "no DataLoader is left in the namespace and build_pytorch_loader is not defined"
            )
        name, how = "build_pytorch_loader", "factory"
        loader = factory(request["shards"], request["batch_size"])
        data = sys.modules.get("torch.utils.data")
        if data is None or not isinstance(loader, data.DataLoader):
            raise loader_arm.ArmProblem(f"build_pytorch_loader returned {type(loader).__name__}; expected a DataLoader")
    arm = loader_arm.LoaderArm(loader, device=discover["device"])
    shape = arm.shape()
    return arm, {
        "loader": observe.loader_facts(name, loader),
        "content": how,
        "queue_depth": min(arm.queue_depth, 256),
        "shape": shape,
    }
