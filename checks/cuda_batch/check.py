"""The check `cuda_batch`: the DALI iterator delivers 4-D batches of images on the GPU."""

from typing import Annotated, Literal

from pydantic import Field

from checks.api import Check, Result, failed, passed, undecided
from checks.codes import NO_DALI, NOT_CARRIED, common
from checks.cuda_batch import served_batch, wording
from checks.not_carried import no_dali, not_carried
from checks.probing import our_fault
from checks.silent_advice import silent_advice
from checks.stopped import absent, missing, not_reached
from grader_service.model.base import ShortText, Wire
from grader_service.model.discovery import FirstBatch
from grader_service.model.evidence import BatchFacts, Evidence, GraphFacts, Need, ServedBatch
from grader_service.model.feedback import Advice
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
    silent: Annotated[tuple[Advice, ...], Field(max_length=64)] = ()
    """Mistakes that raised nothing; never an input to the outcome."""


class CudaBatchCheck(Check[Params, Observation]):
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

    id = "cuda_batch"
    version = "1.3.0"
    title = "DALI batch on the GPU"
    word = "batch"
    needs = frozenset({Need.DISCOVERY, Need.CLEAN_ROOM})
    codes = common("batch", NO_DALI, NOT_CARRIED) | {
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

    def observe(self, evidence: Evidence) -> Observation | Result:
        """See `checks.api.Check.observe`."""
        discovery, room = evidence.discovery, evidence.clean_room
        if discovery is None:
            return not_reached()
        if (result := no_dali("batch", discovery)) is not None:
            return result
        if discovery.first_batch.status == "missing":
            wanted = "the first batch that your DALI iterator delivered"
            return missing(absent(discovery, "first_batch"), wanted)
        if room is not None and room.served is not None:
            return Observation(
                pipeline="build_dali_iterator",
                served=room.served,
                first_batch=discovery.first_batch,
                device=evidence.run.device,
                silent=tuple(silent_advice(evidence, "batch")),
            )
        if room is None or room.batch is None or room.graph is None:
            return not_carried("batch", room) if room is not None else not_reached()
        return Observation(
            pipeline=room.pipeline,
            batch=room.batch,
            graph=room.graph,
            first_batch=discovery.first_batch,
            device=evidence.run.device,
            silent=tuple(silent_advice(evidence, "batch")),
        )

    def judge(self, observation: Observation, params: Params) -> Result:
        """See `checks.api.Check.judge`."""
        least, dimensions = params.min_batch, params.dimensions
        first_batch = observation.first_batch
        silent = (*wording.own_first_batch(first_batch, dimensions), *observation.silent)
        if observation.served is not None:
            return served_batch.judge(observation.served, first_batch, least, dimensions, silent)
        batch = observation.batch
        if batch is None or observation.graph is None:
            return undecided(Outcome.ERROR, "observation.invalid", our_fault("The grader has no batch to look at."))
        advice = (*wording.advice(batch), *silent)
        details = {
            "batch": batch.model_dump(mode="json"),
            "first_batch": first_batch.model_dump(mode="json"),
            "advice": [one.code for one in advice],
        }
        rehearsed = observation.device == "cpu"
        shown = wording.drawn(observation.pipeline, batch, least, dimensions, advice, rehearsed=rehearsed)
        problem = self._problem(observation, batch, observation.graph, params)
        if problem is None:
            return passed(wording.good(shown), tier=Tier.GRAPH, details=details)
        code, what = problem
        return failed(code, wording.bad(shown, what), tier=Tier.GRAPH, details=details)

    @classmethod
    def _problem(
        cls, observation: Observation, batch: BatchFacts, graph: GraphFacts, params: Params
    ) -> tuple[str, wording.Problem] | None:
        """Code, and what is wrong; None when nothing is wrong."""
        if len(batch.shape) != params.dimensions:
            return "batch.not_4d", wording.dimensions(len(batch.shape), params.dimensions)
        if batch.shape[0] < params.min_batch:
            return "batch.too_small", wording.too_small(batch.shape[0], params.min_batch)
        if not cls._on_gpu(observation):
            return "batch.not_cuda", wording.on_cpu(graph)
        if not batch.finite:
            return "batch.not_finite", wording.NOT_FINITE
        if batch.constant:
            return "batch.constant", wording.constant(batch.low)
        return None

    @staticmethod
    def _on_gpu(observation: Observation) -> bool:
        batch = observation.batch
        if batch is None:
            return False
        return batch.device == "cuda" if observation.device == "cuda" else batch.declared_device == "gpu"


CHECK = CudaBatchCheck()
