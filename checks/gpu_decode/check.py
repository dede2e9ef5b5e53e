"""The check `gpu_decode`: JPEGs are decoded on the GPU."""

from checks.api import Check, Result, failed, passed, undecided
from checks.codes import NO_DALI, NOT_CARRIED, common
from checks.not_carried import no_dali, not_carried
from checks.operator_names import fn_name, where
from checks.stopped import not_reached
from grader_service.model.base import Count, LongText, ShortText, Wire
from grader_service.model.evidence import Evidence, GraphFacts, Need, OperatorFacts
from grader_service.model.feedback import Feedback, NextStep
from grader_service.model.measurement import Arm, GpuUse, Measurement
from grader_service.model.verdict import Outcome, Tier

_ON_GPU = ("mixed", "gpu")
_IDLE_PERCENT = 1.0
"""Below this an engine did not move; one decoded batch in a window is more."""
_FUSED = ("Crop", "RandomCrop", "Slice")
_MOST_NAMED = 3


class Params(Wire):
    """What the lab asks for."""

    fused: bool = False
    """Whether the decoder has to cut out the window itself: decoders.image_random_crop, image_crop or image_slice."""


class Seen(Wire):
    """What NVML saw while the graph was timed."""

    samples: Count
    sm_percent: float | None = None
    jpg_percent: float | None = None
    flag: LongText = ""
    """The run's own note that the GPU did not move; empty when there is none."""


class Observation(Wire):
    """The learner's graph, and what the host saw of the GPU."""

    pipeline: ShortText
    graph: GraphFacts
    official: bool
    """False in a rehearsal, which has no GPU."""
    seen: Seen | None = None
    """Null where nothing was timed or watched."""


class GpuDecodeCheck(Check[Params, Observation]):
    """Judges whether every image decoder of the learner's graph runs on the GPU.

    Evidence:
        graph.operators: name, device and line of each decoder, read in the learner's graph by the grader (a fact).
        seen: mean use of the SMs and of the JPEG engine in the windows of the DALI side, in percent, by NVML on the
            host. Where it contradicts the graph nothing is decided, for a person has to look. A lab that judges no
            throughput keeps its measurement short.
    Points: all or nothing.
    Errors: 0 false accepts on 12 failing and 0 false rejects on 10 passing graphs in
        `tests/builtin_claims/test_gpu_decode.py`.
    Cannot detect: which share of the images the JPEG engine took, and which a CUDA kernel or, for rare kinds of JPEG,
        the CPU: `mixed` leaves that to the decoder.
    """

    id = "gpu_decode"
    version = "1.1.0"
    title = "Decoding on the GPU"
    word = "decode"
    needs = frozenset({Need.DISCOVERY, Need.CLEAN_ROOM, Need.MEASUREMENT})
    codes = common("decode", NO_DALI, NOT_CARRIED) | {
        "decode.ok": "every decoder of the graph runs on the GPU",
        "decode.no_decoder": "the graph decodes no JPEG",
        "decode.on_cpu": "every decoder of the graph runs on the CPU",
        "decode.some_on_cpu": "some decoders of the graph run on the CPU",
        "decode.not_fused": "no decoder cuts out the window itself",
        "decode.gpu_idle": "inconclusive: the host saw an idle GPU while the graph ran",
    }
    params_model = Params
    observation_model = Observation

    def observe(self, evidence: Evidence) -> Observation | Result:
        """See `checks.api.Check.observe`."""
        discovery, room = evidence.discovery, evidence.clean_room
        if discovery is None:
            return not_reached()
        if (result := no_dali("decode", discovery)) is not None:
            return result
        if room is None:
            return not_reached()
        if room.graph is None:
            return not_carried("decode", room)
        return Observation(
            pipeline=room.pipeline,
            graph=room.graph,
            official=evidence.run.device == "cuda",
            seen=_seen(evidence.measurement),
        )

    def judge(self, observation: Observation, params: Params) -> Result:
        """See `checks.api.Check.judge`."""
        decoders = [operator for operator in observation.graph.operators if is_decoder(operator.name)]
        details = {
            "decoders": [f"{decoder.name}: {decoder.device}" for decoder in decoders[:20]],
            "seen": observation.seen.model_dump(mode="json") if observation.seen is not None else None,
        }
        if not decoders:
            return failed("decode.no_decoder", _no_decoder(observation.pipeline), tier=Tier.GRAPH, details=details)
        on_cpu = [decoder for decoder in decoders if decoder.device not in _ON_GPU]
        if on_cpu:
            code = "decode.on_cpu" if len(on_cpu) == len(decoders) else "decode.some_on_cpu"
            return failed(code, _on_cpu(on_cpu, observation.graph), tier=Tier.GRAPH, details=details)
        if params.fused and not any(_is_fused(decoder.name) for decoder in decoders):
            return failed("decode.not_fused", _not_fused(decoders[0]), tier=Tier.GRAPH, details=details)
        if observation.official and observation.seen is not None and _idle(observation.seen):
            feedback = _gpu_idle(decoders[0], observation.seen)
            return undecided(Outcome.INCONCLUSIVE, "decode.gpu_idle", feedback, tier=Tier.GRAPH, details=details)
        feedback = Feedback(
            outcome=f'{_told(decoders[0])} decodes on the GPU (device="{decoders[0].device}").',
            seen=_corroborated(observation),
        )
        return passed(feedback, tier=Tier.GRAPH, details=details)


def is_decoder(name: str) -> bool:
    """Whether an operator decodes images, by its schema name; such as `decoders__ImageRandomCrop`."""
    plain = name.removeprefix("experimental__").removeprefix("legacy__")
    return plain.startswith(("decoders__Image", "ImageDecoder"))


def _is_fused(name: str) -> bool:
    return name.endswith(_FUSED)


def _told(decoder: OperatorFacts) -> str:
    return f"`{fn_name(decoder.name)}`{where(decoder.file, decoder.line)}"


def _no_decoder(pipeline: str) -> Feedback:
    return Feedback(
        outcome=f"`{pipeline}` decodes no JPEG.",
        wanted="The images should be decoded on the GPU, inside the pipeline.",
        next=NextStep(text="Decode what the reader gives:", code='images = fn.decoders.image(jpegs, device="mixed")'),
    )


def _on_cpu(on_cpu: list[OperatorFacts], graph: GraphFacts) -> Feedback:
    outcome, seen = f"{_told(on_cpu[0])} runs on the CPU.", ""
    if len(on_cpu) > 1:
        more = f" and {len(on_cpu) - _MOST_NAMED} more" if len(on_cpu) > _MOST_NAMED else ""
        outcome = f"{len(on_cpu)} decoders run on the CPU."
        seen = f"They are {', '.join(map(_told, on_cpu[:_MOST_NAMED]))}{more}."
    elif "gpu" in graph.output_devices:
        seen = (
            "Sending decoded pixels on by .gpu() leaves the decoding on the CPU, and copies about ten times the bytes."
        )
    return Feedback(
        outcome=outcome,
        seen=seen,
        next=NextStep(text="Decode on the GPU:", code=f'images = {fn_name(on_cpu[0].name)}(jpegs, device="mixed")'),
        numbers={"decoders": len(on_cpu)} if len(on_cpu) > 1 else {},
    )


def _not_fused(decoder: OperatorFacts) -> Feedback:
    return Feedback(
        outcome=f"{_told(decoder)} decodes whole images.",
        wanted="The decoder should cut out the window that is used.",
        next=NextStep(
            text="Decode only a window, then resize it:",
            code='images = fn.decoders.image_random_crop(jpegs, device="mixed")\n'
            "images = fn.resize(images, size=(224, 224))",
        ),
    )


def _gpu_idle(decoder: OperatorFacts, seen: Seen) -> Feedback:
    busy = "" if seen.flag or seen.sm_percent is None else f" (its SMs {seen.sm_percent:.1f} % busy)"
    return Feedback(
        outcome="Your graph decodes on the GPU, but the GPU was seen idle while it ran, so nothing is counted.",
        seen=f"The decoder is {_told(decoder)}; the GPU hardly worked{busy}.",
        next=NextStep(text="Hand it in again; if the answer stays the same, ask a person to look at it."),
    )


def _idle(seen: Seen) -> bool:
    if seen.flag:
        return True
    return (
        seen.samples > 0
        and seen.sm_percent is not None
        and seen.sm_percent < _IDLE_PERCENT
        and (seen.jpg_percent or 0.0) < _IDLE_PERCENT
    )


def _corroborated(observation: Observation) -> str:
    if not observation.official:
        return "This is told from the graph alone, since a rehearsal has no GPU to watch."
    seen = observation.seen
    if seen is None or seen.sm_percent is None or not seen.samples:
        return "This is told from the graph alone: the host's look at the GPU gave nothing in this run."
    engine = f", its JPEG engine {seen.jpg_percent:.0f} %" if seen.jpg_percent is not None else ""
    return f"While it ran, the host saw the GPU's SMs {seen.sm_percent:.0f} % busy{engine}."


def _seen(measurement: Measurement | None) -> Seen | None:
    corroboration = measurement.corroboration if measurement is not None else None
    if corroboration is None:
        return None
    use = next((use for use in corroboration.uses if use.arm is Arm.DALI), None) or GpuUse(arm=Arm.DALI, samples=0)
    flag = next((flag for flag in corroboration.flags if flag.startswith("the graph decodes on the GPU, but")), "")
    return Seen(samples=use.samples, sm_percent=use.sm_percent, jpg_percent=use.jpg_percent, flag=flag)


CHECK = GpuDecodeCheck()
