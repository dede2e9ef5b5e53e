"""The check `gpu_decode`: JPEGs are decoded on the GPU."""

from checks.api import CleanRoom, Graph, Measurement, Result, Run, check, failed, inconclusive, passed
from checks.dali_operators import row_of
from checks.operator_names import fn_name, where
from grader_service.model.evidence import GraphFacts, OperatorFacts
from grader_service.model.measurement import GPU_IDLE, Arm, GpuUse
from grader_service.model.verdict import Tier

_ON_GPU = ("mixed", "gpu")
_IDLE_PERCENT = 1.0
"""An engine below it was idle; one decoded batch in a window gives more."""
_MOST_NAMED = 3
_WINDOW = """\
images = fn.decoders.image_random_crop(jpegs, device="mixed")
images = fn.resize(images, size=(224, 224))"""


@check(
    version="1.1.0",
    title="Decoding on the GPU",
    word="decode",
    tier=Tier.GRAPH,  # the graph is always there; the measurement only stands beside it
    codes={
        "on_cpu": "every decoder of the graph runs on the CPU",
        "some_on_cpu": "some decoders of the graph run on the CPU",
    },
)
def gpu_decode(
    graph: Graph, room: CleanRoom, run: Run, measurement: Measurement | None, *, fused: bool = False
) -> Result:
    """Judges whether every image decoder of the learner's graph runs on the GPU.

    Evidence:
        graph.operators: name, device and line of each decoder, read in the learner's graph by the grader (a fact).
        measurement: mean use of the SMs and of the JPEG engine in the windows of the DALI side, in percent, by NVML on
            the host. Where it contradicts the graph, nothing is decided and a person has to look. Labs that judge no
            throughput measure only briefly.
    Points: all or nothing.
    Errors: 0 false accepts on 12 failing and 0 false rejects on 10 passing graphs in
        `tests/checks/claims/test_gpu_decode.py`.
    Cannot detect: which share of the images the JPEG engine took, and which a CUDA kernel or, for rare kinds of JPEG,
        the CPU: `mixed` leaves that to the decoder.

    Args:
        fused: Whether the decoder has to cut out the window itself: decoders.image_random_crop, image_crop or
            image_slice.
    """
    decoders = [operator for operator in graph.operators if row_of(operator.name).role == "decoder"]
    use, flag = _use_and_flag(measurement)
    figures = {"samples", "sm_percent", "jpg_percent"}
    seen = use.model_dump(include=figures) | {"flag": flag} if use is not None else None
    details = {"decoders": [f"{decoder.name}: {decoder.device}" for decoder in decoders[:20]], "seen": seen}
    if not decoders:
        return failed(
            "no_decoder",
            f"`{room.pipeline}` decodes no JPEG.",
            wanted="The images should be decoded on the GPU, inside the pipeline.",
            next="Decode what the reader gives:",
            write='images = fn.decoders.image(jpegs, device="mixed")',
            details=details,
        )
    on_cpu = [decoder for decoder in decoders if decoder.device not in _ON_GPU]
    if on_cpu:
        several = len(on_cpu) > 1
        return failed(
            "on_cpu" if len(on_cpu) == len(decoders) else "some_on_cpu",
            f"{len(on_cpu)} decoders run on the CPU." if several else f"{_decoder_text(on_cpu[0])} runs on the CPU.",
            seen=_which_decoders(on_cpu, graph),
            next="Decode on the GPU:",
            write=f'images = {fn_name(on_cpu[0].name)}(jpegs, device="mixed")',
            numbers={"decoders": len(on_cpu)} if several else {},
            details=details,
        )
    first = decoders[0]
    if fused and not any(row_of(decoder.name).window for decoder in decoders):
        return failed(
            "not_fused",
            f"{_decoder_text(first)} decodes whole images.",
            wanted="The decoder should cut out the window that is used.",
            next="Decode only a window, then resize it:",
            write=_WINDOW,
            details=details,
        )
    if run.device == "cuda" and (flag or _idle(use)):
        busy = "" if flag or use is None else f" (its SMs {use.sm_percent:.1f} % busy)"
        return inconclusive(
            "gpu_idle",
            "Your graph decodes on the GPU, but the GPU was seen idle while it ran, so nothing is counted.",
            seen=f"The decoder is {_decoder_text(first)}; the GPU hardly worked{busy}.",
            next="Hand it in again; if the answer stays the same, ask a person to look at it.",
            details=details,
        )
    good = f'{_decoder_text(first)} decodes on the GPU (device="{first.device}").'
    return passed(good, seen=_corroborated(use, rehearsal=run.device != "cuda"), details=details)


def _decoder_text(decoder: OperatorFacts) -> str:
    return f"`{fn_name(decoder.name)}`{where(decoder.file, decoder.line)}"


def _which_decoders(on_cpu: list[OperatorFacts], graph: GraphFacts) -> str:
    """Which decoders they are, where there are several; what a copy to the GPU does not change, where there is one."""
    if len(on_cpu) > 1:
        more = f" and {len(on_cpu) - _MOST_NAMED} more" if len(on_cpu) > _MOST_NAMED else ""
        return f"They are {', '.join(map(_decoder_text, on_cpu[:_MOST_NAMED]))}{more}."
    if "gpu" not in graph.output_devices:
        return ""
    return "Sending decoded pixels on by .gpu() leaves the decoding on the CPU, and copies about ten times the bytes."


def _corroborated(use: GpuUse | None, *, rehearsal: bool) -> str:
    if rehearsal:
        return "This is told from the graph alone, since a rehearsal has no GPU to watch."
    if use is None or use.sm_percent is None or not use.samples:
        return "This is told from the graph alone: the host's look at the GPU gave nothing in this run."
    engine = f", its JPEG engine {use.jpg_percent:.0f} %" if use.jpg_percent is not None else ""
    return f"While it ran, the host saw the GPU's SMs {use.sm_percent:.0f} % busy{engine}."


def _idle(use: GpuUse | None) -> bool:
    if use is None or not use.samples or use.sm_percent is None:
        return False
    return max(use.sm_percent, use.jpg_percent or 0.0) < _IDLE_PERCENT


def _use_and_flag(measurement: Measurement | None) -> tuple[GpuUse | None, str]:
    """What NVML saw while the graph was timed, if it looked, and the run's own note that the GPU did not move."""
    seen = measurement.corroboration if measurement is not None else None
    if seen is None:
        return None, ""
    use = next((use for use in seen.uses if use.arm is Arm.DALI), GpuUse(arm=Arm.DALI, samples=0))
    return use, next((flag for flag in seen.flags if flag.startswith(GPU_IDLE)), "")
