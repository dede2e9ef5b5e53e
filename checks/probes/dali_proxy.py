"""Looks at DALI Proxy in the learner's namespace, and draws one batch through it.

Observations:
    imported: whether `nvidia.dali.plugin.pytorch.experimental.proxy` was imported.
    servers: each `DALIServer`, that of the loader first: name, whether its thread still runs, whether it is
        deterministic, where its pipeline places its first output (`gpu` or `cpu`, as the graph says).
    loader: the DataLoader that goes through a server: name, `kind` (`proxy` for the proxy's own class, `torch` for
        PyTorch's with the proxy as a transform), workers, batch size; or null.
    batch: what one batch from that loader was: images, their device, labels as they came and as the dataset has them
        for the indices that the loader's own sampler gave (null where it shows none); or why none came.

Drawing runs the learner's dataset and pipeline, in at most two workers; a server that was stopped is stopped again.
"""

import sys
from typing import Any

PROBE_API = 1
VERSION = "1.0.0"
SITE = "learner"
BUDGET_S = 90.0

_ERRORS = (Exception, SystemExit, KeyboardInterrupt, GeneratorExit)
_NAME = "nvidia.dali.plugin.pytorch.experimental.proxy"


class _Recorded:
    """A batch sampler that notes the indices that it gives."""

    def __init__(self, sampler: Any) -> None:
        self.sampler = sampler
        self.given: list[list[int]] = []

    def __iter__(self) -> Any:
        for indices in self.sampler:
            self.given.append([int(index) for index in indices])
            yield indices

    def __len__(self) -> Any:
        return len(self.sampler)


def probe(context: Any) -> dict[str, Any]:
    """See the module."""
    proxy = sys.modules.get(_NAME)
    found: dict[str, Any] = {"imported": proxy is not None, "servers": [], "loader": None, "batch": None}
    if proxy is None:
        return found
    servers = [(name, value) for name, value in context.names.items() if issubclass(type(value), proxy.DALIServer)]
    found["servers"] = [_server_facts(context, name, server) for name, server in servers][:8]
    chosen = _loader(context, proxy, [server for _, server in servers])
    if chosen is None:
        return found
    name, loader, server, kind = chosen
    found["loader"] = {
        "name": context.text(name, 100),
        "kind": kind,
        "workers": int(loader.num_workers),
        "batch_size": int(loader.batch_size or 0),
    }
    others = [pair for pair in servers if pair[1] is not server]
    own = next((known for known, value in servers if value is server), f"{name}.dali_server")
    found["servers"] = [_server_facts(context, *pair) for pair in ((own, server), *others)][:8]
    found["batch"] = _draw(context, loader, server, kind)
    return found


def _server_facts(context: Any, name: Any, server: Any) -> Any:
    facts = {"name": context.text(name, 100), "running": False, "deterministic": False, "placed": ""}
    try:
        inside = server.__dict__
        facts["running"] = inside.get("_thread") is not None
        facts["deterministic"] = inside.get("_deterministic") is True
        outputs = getattr(inside.get("_pipe"), "_graph_outputs", None) or [None]
        facts["placed"] = context.text(getattr(outputs[0], "device", ""), 20)
    except _ERRORS:
        pass
    return facts


def _loader(context: Any, proxy: Any, servers: Any) -> Any:
    """(name, loader, server, kind), the proxy's own class first."""
    for name, loader in context.loaders:
        if issubclass(type(loader), proxy.DataLoader) and issubclass(type(loader.dali_server), proxy.DALIServer):
            return name, loader, loader.dali_server, "proxy"
    for name, loader in context.loaders:
        try:
            parts = list(loader.dataset.__dict__.values())
            parts += [part for transforms in parts for part in getattr(transforms, "transforms", None) or []]
        except _ERRORS:
            continue
        for server in servers:
            if any(part is server.__dict__.get("_proxy") for part in parts if part is not None):
                return name, loader, server, "torch"
    return None


def _draw(context: Any, loader: Any, server: Any, kind: Any) -> Any:
    """One batch; the learner's loader is left as it was."""
    import torch

    facts = {"problem": "", "images": 0, "device": "", "labels": None, "expected": None, "shape": []}
    before = {"num_workers": loader.num_workers, "batch_sampler": loader.batch_sampler}
    started = server.__dict__.get("_thread") is None
    recorded = _Recorded(loader.batch_sampler)
    iterator = None
    try:
        object.__setattr__(loader, "num_workers", max(1, min(2, loader.num_workers)))
        object.__setattr__(loader, "batch_sampler", recorded)
        if loader.num_workers and loader.__dict__.get("_iterator") is not None:
            object.__setattr__(loader, "_iterator", None)  # of persistent workers
        server.start_thread()
        iterator = iter(loader)
        batch = next(iterator)
        if kind == "torch":
            batch = server.produce_data(batch)
        tensors = _tensors(torch, batch, 3)
        images = next((item for item in tensors if item.ndim >= 3), None)
        labels = next((item for item in tensors if item.ndim <= 2 and not item.is_floating_point()), None)
        if images is not None:
            facts |= {"images": int(images.shape[0]), "device": context.text(images.device, 20)}
            facts["shape"] = [int(side) for side in images.shape][:8]
        else:
            facts["problem"] = "no tensor of images came"
        known = _labels_of(loader.dataset)
        if labels is not None:
            facts["labels"] = [int(label) for label in labels.flatten().tolist()][:2048]
        if known is not None and recorded.given:
            facts["expected"] = [known[index] for index in recorded.given[0]][:2048]
    except _ERRORS as error:
        facts["problem"] = f"{type(error).__name__}: {context.text(error, 600)}"
    finally:
        for name, value in before.items():
            object.__setattr__(loader, name, value)
        del iterator
        if started:
            server.stop_thread()
    return facts


def _tensors(torch: Any, value: Any, depth: Any) -> Any:
    if issubclass(type(value), torch.Tensor):
        return [value]
    if depth and isinstance(value, (list, tuple)):
        return [tensor for item in value for tensor in _tensors(torch, item, depth - 1)]
    if depth and isinstance(value, dict):
        return [tensor for item in value.values() for tensor in _tensors(torch, item, depth - 1)]
    return []


def _labels_of(dataset: Any) -> Any:
    """Class number of each sample, where the dataset shows them."""
    inside = getattr(dataset, "__dict__", {})
    for name in ("targets", "labels", "samples", "imgs"):
        value = inside.get(name)
        if type(value) is list and value:
            last = [item[-1] if type(item) is tuple else item for item in value]
            if all(type(item) is int for item in last):
                return last
    return None
