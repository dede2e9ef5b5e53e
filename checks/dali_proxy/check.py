"""The check `dali_proxy`: PyTorch's DataLoader feeds a DALI pipeline through DALI Proxy."""

from typing import Annotated, Literal

from pydantic import Field

from checks.api import Check, Result, failed, passed, undecided
from checks.codes import LEARNER_PROBE, common
from checks.probing import our_fault, read_probe, said
from checks.stopped import Absent, absent, cut_short, not_reached
from grader_service.model.base import Count, LongText, ShortText, Wire
from grader_service.model.evidence import Evidence, Need, ProbeSite
from grader_service.model.feedback import Feedback, NextStep
from grader_service.model.verdict import Outcome, Tier

_THROUGH_THE_SERVER = """\
with proxy.DALIServer(pipe) as server:
    dataset = ImageFolder(dataset_dir, transform=server.proxy, loader=lambda path: np.fromfile(path, np.uint8))
    loader = proxy.DataLoader(server, dataset, batch_size=32, num_workers=4)"""
_IMPORT = "from nvidia.dali.plugin.pytorch.experimental import proxy\n"
_WANTED = "A DataLoader should feed a DALI pipeline that begins with fn.external_source."
_LATER = frozenset({"not_used", "no_loader", "not_stopped"})
"""Reasons that the rest of the learner's code may have taken away, had it run to its end."""


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
    absent: Absent = Absent(name="server")
    """How the run ended; filled in by the check."""


class DaliProxyCheck(Check[Params, Observation]):
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

    id = "dali_proxy"
    version = "1.1.0"
    title = "DALI Proxy"
    word = "proxy"
    needs = frozenset({Need.DISCOVERY})
    probes = ("dali_proxy",)
    codes = common("proxy", LEARNER_PROBE) | {
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

    def observe(self, evidence: Evidence) -> Observation | Result:
        """See `checks.api.Check.observe`."""
        discovery = evidence.discovery
        if discovery is None:
            return not_reached()
        seen = read_probe(evidence, "proxy", "dali_proxy", Observation, ProbeSite.LEARNER)
        if isinstance(seen, Observation):
            return seen.model_copy(update={"device": evidence.run.device, "absent": absent(discovery, "server")})
        return seen

    def judge(self, observation: Observation, params: Params) -> Result:
        """See `checks.api.Check.judge`."""
        details = observation.model_dump(mode="json", exclude={"absent": True, "batch": {"labels", "expected"}})
        problem = _of_loader(observation, params) or _of_batch(observation, params)
        if problem is not None:
            reason, feedback = problem
            if reason in _LATER and (result := cut_short(observation.absent.run)) is not None:
                return result
            if reason == "no_batch":
                return undecided(Outcome.UNVERIFIED, "proxy.no_batch", feedback, tier=Tier.CLAIMS, details=details)
            return failed(f"proxy.{reason}", feedback, tier=Tier.CLAIMS, details=details)
        loader, batch = observation.loader, observation.batch
        if loader is None or batch is None:
            return undecided(Outcome.ERROR, "observation.invalid", our_fault("The observation holds no batch."))
        order = ", in the order of its sampler" if batch.expected is not None and batch.labels is not None else ""
        feedback = Feedback(
            outcome=f"`{loader.name}` delivered a batch of {_images(batch.images)} through DALI Proxy{order}.",
            seen=f"It has {_workers(loader)}, and the batch lies on the {_place(observation, batch).upper()}, as your "
            "own objects say.",
            numbers={"workers": loader.workers, "images": batch.images},
        )
        return passed(feedback, tier=Tier.CLAIMS, details=details)


def _of_loader(seen: Observation, params: Params) -> tuple[str, Feedback] | None:
    """(reason, feedback) of the first thing that is wrong with servers and loader; None when nothing is."""
    loader = seen.loader
    if not seen.imported or not seen.servers:
        return "not_used", Feedback(
            outcome="No `DALIServer` was found." if seen.imported else "DALI Proxy is not used.",
            wanted=_WANTED,
            next=NextStep(
                text="Start a server with your pipeline, and load through it:", code=_IMPORT + _THROUGH_THE_SERVER
            ),
        )
    if loader is None:
        return "no_loader", Feedback(
            outcome=f"No DataLoader goes through the server `{seen.servers[0].name}`.",
            next=NextStep(
                text="Give the server's proxy to the data set, and load through the server:", code=_THROUGH_THE_SERVER
            ),
        )
    if loader.workers < params.min_workers:
        return "no_workers", Feedback(
            outcome=f"`{loader.name}` has {_workers(loader)}, fewer than the {params.min_workers} that the lab wants.",
            wanted="Workers read the files, and the server decodes for all of them.",
            next=NextStep(text="Set this in the DataLoader:", code=f"num_workers={max(4, params.min_workers)}"),
            numbers={"workers": loader.workers, "needed": params.min_workers},
        )
    running = [entry.name for entry in seen.servers if entry.running]
    if params.stopped and running:
        return "not_stopped", Feedback(
            outcome=f"The server `{running[0]}` still runs at the end of your code.",
            next=NextStep(
                text="Iterate inside `with proxy.DALIServer(pipe) as server:`, or stop it after the last batch:",
                code=f"{running[0]}.stop_thread()",
            ),
        )
    return None


def _of_batch(seen: Observation, params: Params) -> tuple[str, Feedback] | None:
    """The same for the batch that was drawn; there is a loader."""
    name, made_for = (seen.loader.name, seen.loader.batch_size) if seen.loader is not None else ("", 0)
    batch = seen.batch
    if batch is None or batch.problem or not batch.images:
        return "no_batch", Feedback(
            outcome=f"The grader could not draw a batch from `{name}` again, so nothing is counted.",
            seen=said(batch.problem) if batch is not None else "",
            next=NextStep(text="Keep the files of the data set and the server's pipeline until your code ends."),
        )
    numbers = {"images": batch.images, "batch_size": made_for}
    if made_for and batch.images > made_for:
        return "batch_size", Feedback(
            outcome=f"A batch from `{name}` holds {_images(batch.images)}, although its batch_size is {made_for}.",
            next=NextStep(text="Let the pipeline return one image for each file that the data set gives it."),
            numbers=numbers,
        )
    place = _place(seen, batch)
    if params.device not in ("any", place):
        device = "mixed" if params.device == "gpu" else "cpu"
        return "wrong_device", Feedback(
            outcome=f"The batch from `{name}` lies on the {place.upper()}, not on the {params.device.upper()}.",
            next=NextStep(
                text=f"Decode as follows{', and leave out .cpu() behind it' if device == 'mixed' else ''}:",
                code=f'images = fn.decoders.image(jpegs, device="{device}")',
            ),
        )
    if batch.labels is not None and len(batch.labels) != batch.images:
        return "order", Feedback(
            outcome=f"A batch from `{name}` has {_images(batch.images)} and {len(batch.labels)} labels.",
            next=NextStep(text="Return one label beside each image from the data set."),
            numbers=numbers | {"labels": len(batch.labels)},
        )
    if batch.labels is not None and batch.expected is not None and batch.labels != batch.expected:
        return "order", Feedback(
            outcome=f"The labels in a batch from `{name}` are not those of the files that its sampler asked for.",
            next=NextStep(text="Return the data set's own label beside each image, and let nothing reorder the batch."),
        )
    return None


def _place(seen: Observation, batch: Batch) -> str:
    """`gpu` or `cpu`; in a rehearsal as the graph says."""
    place = "gpu" if batch.device.startswith("cuda") else "cpu"
    placed = seen.servers[0].placed
    return placed if seen.device == "cpu" and placed in ("gpu", "cpu") else place


def _workers(loader: Loader) -> str:
    return f"{loader.workers} worker{'' if loader.workers == 1 else 's'}"


def _images(count: int) -> str:
    return f"{count} image{'' if count == 1 else 's'}"


CHECK = DaliProxyCheck()
