"""The check `dali_proxy`: PyTorch's DataLoader feeds a DALI pipeline through DALI Proxy."""

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from checks.api import API_VERSION, CheckResult, failed, passed, undecided
from checks.codes import LEARNER_PROBE, NEEDS_GPU, common
from checks.probing import read_probe
from checks.stopped import not_reached, stopped_before
from grader_service.model.base import Count, LongText, ShortText, Wire
from grader_service.model.evidence import Evidence, Need
from grader_service.model.verdict import Outcome, Tier

_SAYS = "This is what the objects in your own process say and delivered (tier D)."
_USE = (
    "from nvidia.dali.plugin.pytorch.experimental import proxy; make a pipeline with fn.external_source, then "
    "`with proxy.DALIServer(pipe) as server:`, give server.proxy to the dataset as its transform, and iterate over "
    "proxy.DataLoader(server, dataset, batch_size=..., num_workers=...)."
)


class Params(Wire):
    """What the lab asks for."""

    min_workers: Annotated[int, Field(ge=1, le=256)] = 1
    """Fewest workers of the loader."""
    device: Literal["gpu", "cpu", "any"] = "gpu"
    """Where the pipeline has to deliver the images."""
    stopped: bool = True
    """Whether the server has to be stopped at the end."""


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


Labels = Annotated[tuple[int, ...], Field(max_length=4096)]


class Batch(Wire):
    """One batch that the probe drew."""

    problem: LongText = ""
    images: Count = 0
    device: ShortText = ""
    shape: Annotated[tuple[Count, ...], Field(max_length=16)] = ()
    labels: Labels | None = None
    expected: Labels | None = None
    """The dataset's own labels for the indices that the sampler gave."""


class Observation(Wire):
    """DALI Proxy in the learner's namespace."""

    imported: bool
    servers: Annotated[tuple[Server, ...], Field(max_length=64)] = ()
    loader: Loader | None = None
    batch: Batch | None = None
    device: Literal["cuda", "cpu"] = "cpu"
    """Of the run; filled in by the check."""
    stopped_before: LongText = ""
    """What stopped the learner's code; filled in by the check."""


class DaliProxyCheck:
    """Judges whether a DataLoader with workers goes through a DALI Proxy server and delivers whole batches in order.

    Evidence: servers and loaders in the learner's namespace, and one batch that the probe drew from the loader there
        (claims: all of it is the learner's process; nothing of it is a number that decides).
        batch.expected: labels of the dataset for the indices that the loader's own sampler gave for this batch.
    Points: all or nothing.
    Errors: 0 false accepts on 9 failing and 0 false rejects on 5 passing submissions in
        `tests/builtin_claims/test_dali_proxy.py`.
    Cannot detect: whether the batches that the learner timed came this way; in a rehearsal, where tensors really lie,
        for which the graph's own placement stands in; whether images follow their labels where a dataset shows none.
    """

    id: ClassVar[str] = "dali_proxy"
    version: ClassVar[str] = "1.0.0"
    api_version: ClassVar[int] = API_VERSION
    title: ClassVar[str] = "DALI Proxy"
    needs: ClassVar[frozenset[Need]] = frozenset({Need.DISCOVERY})
    probes: ClassVar[tuple[str, ...]] = ("dali_proxy",)
    codes: ClassVar[Mapping[str, str]] = common("proxy", LEARNER_PROBE, NEEDS_GPU) | {
        "proxy.ok": "a DataLoader with workers delivers through DALI Proxy",
        "proxy.not_used": "DALI Proxy is not used, or no server was made",
        "proxy.no_loader": "no DataLoader goes through the server",
        "proxy.no_workers": "the DataLoader has too few workers",
        "proxy.not_stopped": "a server still runs at the end",
        "proxy.no_batch": "unverified: no batch could be drawn again from the DataLoader",
        "proxy.batch_size": "a batch holds more images than the DataLoader was made for",
        "proxy.wrong_device": "the batch lies on another device than wanted",
        "proxy.order": "labels do not fit the images that the sampler asked for",
        "observation.invalid": "error: the observation lacks what is judged",
    }
    params_model = Params
    observation_model = Observation

    def observe(self, evidence: Evidence) -> Observation | CheckResult:
        """See `checks.api.Check.observe`."""
        discovery = evidence.discovery
        if discovery is None:
            return not_reached()
        seen = read_probe(evidence, "proxy", "dali_proxy", Observation)
        if isinstance(seen, Observation):
            if discovery.needs_gpu and not seen.servers:
                text = f"Your code needs a GPU that a rehearsal has not: {discovery.needs_gpu[:600]}"
                return undecided(Outcome.UNVERIFIED, "proxy.needs_gpu", text, tier=Tier.CLAIMS)
            return seen.model_copy(
                update={"device": evidence.run.device, "stopped_before": stopped_before(discovery)[:2000]}
            )
        return seen

    def judge(self, observation: Observation, params: Params) -> CheckResult:
        """See `checks.api.Check.judge`."""
        details = observation.model_dump(mode="json", exclude={"batch": {"labels", "expected"}})
        reason, text = _problem(observation, params)
        if reason == "no_batch":
            return undecided(Outcome.UNVERIFIED, "proxy.no_batch", text, tier=Tier.CLAIMS, details=details)
        if reason:
            return failed(f"proxy.{reason}", f"{text} {_SAYS}", tier=Tier.CLAIMS, details=details)
        loader, batch = observation.loader, observation.batch
        if loader is None or batch is None:
            return undecided(Outcome.ERROR, "observation.invalid", "The observation holds no batch.")
        order = ", in the order of its sampler" if batch.expected is not None and batch.labels is not None else ""
        place = observation.servers[0].placed if observation.device == "cpu" else batch.device
        text = (
            f"`{loader.name}` ({loader.workers} workers) delivered a batch of {batch.images} images through DALI "
            f"Proxy, placed on the {place}{order}. {_SAYS}"
        )
        return passed("proxy.ok", text, tier=Tier.CLAIMS, details=details)


def _problem(seen: Observation, params: Params) -> tuple[str, str]:
    """(reason, text) of the first thing that is wrong; empty when nothing is."""
    loader, batch = seen.loader, seen.batch
    if not seen.imported or not seen.servers:
        what = "No DALIServer was found" if seen.imported else "DALI Proxy is not used"
        return "not_used", f"{what}.{seen.stopped_before} Write: {_USE}"
    if loader is None:
        return "no_loader", f"A DALIServer was made, but no DataLoader goes through it. Write: {_USE}"
    if loader.workers < params.min_workers:
        return "no_workers", (
            f"`{loader.name}` has {loader.workers} workers; at least {params.min_workers} are wanted. The workers read "
            "and sample, the server decodes for all of them."
        )
    server = seen.servers[0]
    running = [entry.name for entry in seen.servers if entry.running]
    if params.stopped and running:
        return "not_stopped", (
            f"The server `{running[0]}` still runs at the end of your code. Iterate inside `with "
            "proxy.DALIServer(pipe) as server:`, or call server.stop_thread()."
        )
    if batch is None or batch.problem or not batch.images:
        return "no_batch", (
            f"No batch could be drawn again from `{loader.name}`: {batch.problem if batch else 'not tried'}. Keep the "
            "dataset's files and the server's pipeline until the end of your code."
        )
    if loader.batch_size and batch.images > loader.batch_size:
        return "batch_size", f"A batch has {batch.images} images, `{loader.name}` was made for {loader.batch_size}."
    place = "gpu" if batch.device.startswith("cuda") else "cpu"
    if seen.device == "cpu":
        place = server.placed or place
    if params.device not in ("any", place):
        return "wrong_device", (
            f"The batch lies on the {place}, wanted was the {params.device}. Decode with device='mixed' and leave out "
            ".cpu()."
        )
    if batch.labels is not None and len(batch.labels) != batch.images:
        return "order", f"The batch has {batch.images} images and {len(batch.labels)} labels."
    if batch.labels is not None and batch.expected is not None and batch.labels != batch.expected:
        return "order", (
            "The labels of the batch are not those of the files that the sampler asked for. Return the dataset's own "
            "label beside the image, and let nothing reorder the batch."
        )
    return "", ""


CHECK = DaliProxyCheck()
