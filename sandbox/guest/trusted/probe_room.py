"""Runs probes on the learner's DALI graphs, with no learner code anywhere near them."""

import os
import tempfile

from ..channel import Link
from ..probes.running import run as run_probe
from .clean_room import FORBIDDEN_ENVIRONMENT
from .graph_context import CarriedGraph, GraphContext


def run(link: Link) -> None:
    """Guest program: keeps each `graph` (its bytes as blob), answers a `probe` (its source as blob) with `probed`."""
    for name in FORBIDDEN_ENVIRONMENT:
        os.environ.pop(name, None)
    import nvidia.dali
    import torch

    torch.set_num_threads(1)
    link.send("ready", versions={"dali": nvidia.dali.__version__, "torch": torch.__version__})
    graphs: list[CarriedGraph] = []
    while True:
        request = link.receive()
        if request["kind"] == "graph":
            graphs.append(
                CarriedGraph(request["name"], request["blob"], request["device"], request["threads"], request["facts"])
            )
        elif request["kind"] == "probe":
            with tempfile.TemporaryDirectory(prefix="probe-") as folder:
                given = {name: request[name] for name in ("device", "params", "budget_s")}
                context = GraphContext(graphs, folder=folder, **given)
                link.send("probed", **run_probe(request["name"], request["blob"], context, request["budget_s"]))
        else:
            return
