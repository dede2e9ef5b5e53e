"""The check `cuda_batch`: the DALI iterator delivers 4-D batches of images on the GPU."""

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from checks.api import API_VERSION, CheckResult, failed, passed, undecided
from checks.codes import NO_DALI, NOT_CARRIED, STOPPED, common
from checks.cuda_batch import served_batch
from checks.not_carried import no_dali, not_carried
from checks.stopped import missing, no_evidence, stopped_before
from grader_service.model.base import ShortText, Wire
from grader_service.model.evidence import BatchFacts, Evidence, FirstBatch, GraphFacts, Need, ServedBatch
from grader_service.model.verdict import Outcome, Tier


class Params(Wire):
    """Thresholds of the lab."""

    min_batch: Annotated[int, Field(ge=1)] = 16
    dimensions: Annotated[int, Field(ge=1, le=8)] = 4


class Observation(Wire):
    """The first batch, drawn by the grader in its own process, and the graph that it came from.

    Where the graph could not be carried, what the learner's own code delivered on held-out images (`served`) instead.
    """

    pipeline: ShortText
    batch: BatchFacts | None = None
    graph: GraphFacts | None = None
    served: ServedBatch | None = None
    first_batch: FirstBatch
    """The learner's own; a claim, shown beside ours."""
    device: Literal["cuda", "cpu"]
    """`cpu` in a rehearsal, where the graph's own device label stands in for the GPU."""


class CudaBatchCheck:
    """Judges whether a batch drawn from the learner's pipeline is a 4-D tensor of at least 16 images on the GPU.

    Evidence:
        batch.shape: [N, C, H, W] or [N, H, W, C], counted in the grader's own process.
        batch.device: where that process found the batch; in a rehearsal, where the graph places it.
        served: where the graph could not be carried (tiers B and C, softer): shape and device as the learner's process
            says, and how many different new images the host saw come.
    Points: all or nothing.
    Errors: 0 false accepts and 0 false rejects on the controls in `tests/checks/test_cuda_batch.py`.
    Cannot detect: whether the learner's own `first_batch` came from this pipeline; it is not used.
    """

    id: ClassVar[str] = "cuda_batch"
    version: ClassVar[str] = "1.1.0"
    api_version: ClassVar[int] = API_VERSION
    title: ClassVar[str] = "DALI batch on the GPU"
    needs: ClassVar[frozenset[Need]] = frozenset({Need.DISCOVERY, Need.CLEAN_ROOM})
    codes: ClassVar[Mapping[str, str]] = common("batch", STOPPED, NO_DALI, NOT_CARRIED) | {
        "batch.ok": "the batch has the wanted form and is on the GPU",
        "batch.first_batch_missing": "`first_batch` is not defined",
        "batch.not_4d": "the batch has another number of dimensions than wanted",
        "batch.too_small": "the batch holds too few images",
        "batch.not_cuda": "the batch lies on the CPU",
        "batch.not_finite": "the batch holds NaN or infinite values",
        "batch.constant": "all values of the batch are the same",
        "batch.not_proved": "unverified: too few new images were recognised in the batches",
        "observation.invalid": "error: the observation lacks what is judged",
    }
    params_model = Params
    observation_model = Observation

    def observe(self, evidence: Evidence) -> Observation | CheckResult:
        """See `checks.api.Check.observe`."""
        discovery, room = evidence.discovery, evidence.clean_room
        if discovery is None:
            return no_evidence(evidence, "batch")
        stopped = stopped_before(discovery)
        if (result := no_dali("batch", discovery, stopped)) is not None:
            return result
        if discovery.first_batch.status == "missing":
            return missing(discovery, "batch", "first_batch", "the first batch that your DALI iterator delivered")
        if room is not None and room.served is not None:
            return Observation(
                pipeline="build_dali_iterator",
                served=room.served,
                first_batch=discovery.first_batch,
                device=evidence.run.device,
            )
        if room is None or room.batch is None or room.graph is None:
            return not_carried("batch", room) if room is not None else no_evidence(evidence, "batch")
        return Observation(
            pipeline=room.pipeline,
            batch=room.batch,
            graph=room.graph,
            first_batch=discovery.first_batch,
            device=evidence.run.device,
        )

    def judge(self, observation: Observation, params: Params) -> CheckResult:
        """See `checks.api.Check.judge`."""
        if observation.served is not None:
            return served_batch.judge(observation.served, observation.first_batch, params.min_batch, params.dimensions)
        batch = observation.batch
        if batch is None or observation.graph is None:
            return undecided(
                Outcome.ERROR, "observation.invalid", "The observation holds neither `batch` nor `served`."
            )
        seen = (
            f"The batch that the grader drew from `{observation.pipeline}` is {batch.dtype.lower()} {list(batch.shape)}"
        )
        details = {
            "batch": batch.model_dump(mode="json"),
            "first_batch": observation.first_batch.model_dump(mode="json"),
        }
        if len(batch.shape) != params.dimensions:
            return failed(
                "batch.not_4d",
                f"{seen}, which has {len(batch.shape)} dimensions; expected {params.dimensions}: batch, channels, "
                "height and width.",
                tier=Tier.GRAPH,
                details=details,
            )
        if batch.shape[0] < params.min_batch:
            return failed(
                "batch.too_small",
                f"{seen}: {batch.shape[0]} images per batch; at least {params.min_batch} are needed. "
                "Raise batch_size of the pipeline.",
                tier=Tier.GRAPH,
                details=details,
            )
        if not self._on_gpu(observation):
            return failed(
                "batch.not_cuda",
                f"{seen}, but it lies on the CPU. {self._why_cpu(observation.graph)}",
                tier=Tier.GRAPH,
                details=details,
            )
        if not batch.finite:
            return failed(
                "batch.not_finite",
                f"{seen}, and it holds NaN or infinite values. Check std and scale of the normalisation.",
                tier=Tier.GRAPH,
                details=details,
            )
        if batch.constant:
            return failed(
                "batch.constant",
                f"{seen}, and every value in it is {batch.low:g}, although the images differ. "
                "Check what the pipeline returns: it should be the decoded images.",
                tier=Tier.GRAPH,
                details=details,
            )
        place = "on CUDA" if batch.device == "cuda" else "placed on the GPU by your graph (rehearsed on the CPU)"
        return passed(
            "batch.ok",
            f"{seen}, {place}; {params.dimensions} dimensions and at least {params.min_batch} images were needed.",
            tier=Tier.GRAPH,
            details=details,
        )

    @staticmethod
    def _on_gpu(observation: Observation) -> bool:
        batch = observation.batch
        if batch is None:
            return False
        return batch.device == "cuda" if observation.device == "cuda" else batch.declared_device == "gpu"

    @staticmethod
    def _why_cpu(graph: GraphFacts) -> str:
        if "mixed" not in graph.decoder_devices:
            return (
                "The decoder runs with device='cpu'. Use fn.decoders.image(..., device='mixed'), so that decoding and "
                "everything after it happens on the GPU."
            )
        return "Something after the decoder brings the images back to the CPU; leave out .cpu() and device='cpu'."


CHECK = CudaBatchCheck()
