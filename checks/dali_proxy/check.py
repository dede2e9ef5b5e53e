"""The check `dali_proxy`: PyTorch's DataLoader feeds a DALI pipeline through DALI Proxy."""

from typing import Annotated, Literal

from pydantic import Field

from checks.api import Discovery, FromProbe, Result, Run, check, failed, passed, unverified
from checks.probing import said
from checks.stopped import cut_short, run_end
from grader_service.model.base import Count, LongText, ShortText, Wire
from grader_service.model.evidence import ProbeSite

_THROUGH_THE_SERVER = """\
with proxy.DALIServer(pipe) as server:
    dataset = ImageFolder(dataset_dir, transform=server.proxy, loader=lambda path: np.fromfile(path, np.uint8))
    loader = proxy.DataLoader(server, dataset, batch_size=32, num_workers=4)"""
_LATER = frozenset({"not_used", "no_loader", "not_stopped"})
"""Reasons that the rest of the learner's code may have taken away, had it run to its end."""
Labels = Annotated[tuple[int, ...], Field(max_length=4096)]


class Server(Wire):
    """A `DALIServer`."""

    name: ShortText
    running: bool
    deterministic: bool
    placed: ShortText = ""
    """`gpu` or `cpu`: where the graph places the first output."""


class Loader(Wire):
    """The DataLoader that goes through a server."""

    name: ShortText
    kind: Literal["proxy", "torch"]
    workers: Count
    batch_size: Count


class Drawn(Wire):
    """One batch that the probe drew."""

    problem: LongText = ""
    images: Count = 0
    device: ShortText = ""
    shape: Annotated[tuple[Count, ...], Field(max_length=16)] = ()
    labels: Labels | None = None
    expected: Labels | None = None
    """The dataset's own labels for the indices that the sampler gave."""


class Proxy(Wire):
    """DALI Proxy in the learner's namespace."""

    imported: bool
    servers: Annotated[tuple[Server, ...], Field(max_length=64)] = ()
    """That of the loader first."""
    loader: Loader | None = None
    batch: Drawn | None = None


@check(
    version="1.1.0",
    title="DALI Proxy",
    word="proxy",
    codes={
        "not_used": "DALI Proxy is not used, or no server was made",
        "order": "labels do not fit the images that the sampler asked for",
    },
)
def dali_proxy(
    discovery: Discovery,
    proxy: Annotated[Proxy, FromProbe("dali_proxy", ProbeSite.LEARNER)],
    run: Run,
    *,
    min_workers: Annotated[int, Field(ge=1, le=256)] = 1,
    device: Literal["gpu", "cpu", "any"] = "gpu",
    stopped: bool = True,
) -> Result:
    """Judges whether a DataLoader with workers goes through a DALI Proxy server and delivers whole batches in order.

    Evidence: servers and loaders in the learner's namespace, and one batch that the probe drew from the loader there
        (claims: all of it is the learner's process; nothing of it is a number that decides).
        batch.expected: labels of the dataset for the indices that the loader's own sampler gave for this batch.
    Points: all or nothing.
    Errors: 0 false accepts on 9 failing and 0 false rejects on 5 passing submissions in
        `tests/checks/claims/test_dali_proxy.py`.
    Cannot detect: whether the batches that the learner timed came this way; in a rehearsal, where tensors really lie,
        for which the graph's own placement stands in; whether images follow their labels where a dataset shows none.

    Args:
        min_workers: Fewest workers of the loader.
        device: Where the pipeline has to deliver the images.
        stopped: Whether the server has to be stopped at the end.
    """
    result = _of_loader(proxy, run.device, min_workers, device, stopped=stopped)
    if result.code in _LATER and (not_reached := cut_short(run_end(discovery))) is not None:
        return not_reached
    details = proxy.model_dump(mode="json", exclude={"batch": {"labels", "expected"}}) | {"device": run.device}
    return result.model_copy(update={"details": details})


def _of_loader(proxy: Proxy, ran_on: str, min_workers: int, wanted_place: str, *, stopped: bool) -> Result:
    loader, batch = proxy.loader, proxy.batch
    if not proxy.imported or not proxy.servers:
        return failed(
            "not_used",
            "No `DALIServer` was found." if proxy.imported else "DALI Proxy is not used.",
            wanted="A DataLoader should feed a DALI pipeline that begins with fn.external_source.",
            next="Start a server with your pipeline, and load through it:",
            write=f"from nvidia.dali.plugin.pytorch.experimental import proxy\n{_THROUGH_THE_SERVER}",
        )
    if loader is None:
        return failed(
            "no_loader",
            f"No DataLoader goes through the server `{proxy.servers[0].name}`.",
            next="Give the server's proxy to the data set, and load through the server:",
            write=_THROUGH_THE_SERVER,
        )
    if loader.workers < min_workers:
        return failed(
            "no_workers",
            f"`{loader.name}` has {_count(loader.workers, 'worker')}, fewer than the {min_workers} that the lab wants.",
            wanted="Workers read the files, and the server decodes for all of them.",
            next="Set this in the DataLoader:",
            write=f"num_workers={max(4, min_workers)}",
            numbers={"workers": loader.workers, "needed": min_workers},
        )
    running = [server.name for server in proxy.servers if server.running]
    if stopped and running:
        return failed(
            "not_stopped",
            f"The server `{running[0]}` still runs at the end of your code.",
            next="Iterate inside `with proxy.DALIServer(pipe) as server:`, or stop it after the last batch:",
            write=f"{running[0]}.stop_thread()",
        )
    if batch is None or batch.problem or not batch.images:
        return unverified(
            "no_batch",
            f"The grader could not draw a batch from `{loader.name}` again, so nothing is counted.",
            seen=said(batch.problem) if batch is not None else "",
            next="Keep the files of the data set and the server's pipeline until your code ends.",
        )
    place, placed = "gpu" if batch.device.startswith("cuda") else "cpu", proxy.servers[0].placed
    if ran_on == "cpu" and placed in ("gpu", "cpu"):
        place = placed  # a rehearsal: the graph says where its images would lie
    return _of_batch(loader, batch, place, wanted_place)


def _of_batch(loader: Loader, batch: Drawn, place: str, wanted_place: str) -> Result:
    images, numbers = _count(batch.images, "image"), {"images": batch.images, "batch_size": loader.batch_size}
    if 0 < loader.batch_size < batch.images:
        return failed(
            "batch_size",
            f"A batch from `{loader.name}` holds {images}, although its batch_size is {loader.batch_size}.",
            next="Let the pipeline return one image for each file that the data set gives it.",
            numbers=numbers,
        )
    if wanted_place not in ("any", place):
        on_gpu = wanted_place == "gpu"
        return failed(
            "wrong_device",
            f"The batch from `{loader.name}` lies on the {place.upper()}, not on the {wanted_place.upper()}.",
            next=f"Decode as follows{', and leave out .cpu() behind it' if on_gpu else ''}:",
            write=f'images = fn.decoders.image(jpegs, device="{"mixed" if on_gpu else "cpu"}")',
        )
    if batch.labels is not None and len(batch.labels) != batch.images:
        return failed(
            "order",
            f"A batch from `{loader.name}` has {images} and {len(batch.labels)} labels.",
            next="Return one label beside each image from the data set.",
            numbers=numbers | {"labels": len(batch.labels)},
        )
    compared = batch.labels is not None and batch.expected is not None
    if compared and batch.labels != batch.expected:
        return failed(
            "order",
            f"The labels in a batch from `{loader.name}` are not those of the files that its sampler asked for.",
            next="Return the data set's own label beside each image, and let nothing reorder the batch.",
        )
    order = ", in the order of its sampler" if compared else ""
    return passed(
        f"`{loader.name}` delivered a batch of {images} through DALI Proxy{order}.",
        seen=f"It has {_count(loader.workers, 'worker')}, and the batch lies on the {place.upper()}, as your own "
        "objects say.",
        numbers={"workers": loader.workers, "images": batch.images},
    )


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
