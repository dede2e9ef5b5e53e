"""What does not fit together in a measurement, for a person to look at: never a reason to pass or to fail; pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from grader_service.model.base import Device
from grader_service.model.measurement import GPU_IDLE, REFERENCES, Arm, Corroboration, GpuUse

IDLE_PERCENT = 1.0
"""Below this an engine did not move: one decoded batch in a window is more."""
BUSY_PERCENT = 20.0
"""SM use that copying batches to the GPU does not reach."""
MEMORY_JUMP_MIB = 4096.0
"""Every arm is warm before the first block, so that memory hardly changes from then on."""
PIXELS_PER_CORE = 6e8
"""Source pixels a second that no core decodes: about three times libjpeg-turbo's best."""
PIXELS_PER_GPU = 2e10
"""The same of a GPU: 30,000 images/s of 500 × 375 pixels, the best seen on an H200, are 5.6e9."""
_MOST_NOTES = 20


@dataclass(frozen=True)
class Setting:
    """What a measurement's figures are held against."""

    device: Device
    cpus: int
    pixels_per_image: float
    """Mean over the held-out images, at full size."""
    decodes_on_gpu: bool
    """Whether the graph has a decoder that uses the GPU."""


def corroborate(
    uses: tuple[GpuUse, ...], notes: Sequence[str], dali_rate: float | None, setting: Setting
) -> Corroboration | None:
    """The record beside the rates; None where nothing was watched and nothing is strange.

    Args:
        notes: what the host noted while blocks ran.
        dali_rate: images/s of the DALI arm; None when it was not timed.
    """
    flags = [*_contradictions(uses, setting), *_ceiling(dali_rate, setting), *notes[:_MOST_NOTES]]
    if len(notes) > _MOST_NOTES:
        flags.append(f"{len(notes) - _MOST_NOTES} more notes are not shown")
    return Corroboration(uses=uses, flags=tuple(flags)) if uses or flags else None


def _contradictions(uses: tuple[GpuUse, ...], setting: Setting) -> list[str]:
    flags = []
    for use in uses:
        if use.arm is Arm.DALI and setting.decodes_on_gpu and _idle(use):
            flags.append(
                f"{GPU_IDLE} in the windows of the DALI arm (SM {_percent(use.sm_percent)}, "
                f"JPEG engine {_percent(use.jpg_percent)}, {use.samples} samples)"
            )
        if use.arm in REFERENCES and use.sm_percent is not None and use.sm_percent > BUSY_PERCENT:
            flags.append(
                f"the GPU was busy ({_percent(use.sm_percent)} SM) in the windows of {use.arm.value}, "
                "which only copies batches to it"
            )
    memory = {use.arm: use.memory_mib for use in uses if use.memory_mib is not None}
    if memory:
        most, least = max(memory, key=lambda arm: memory[arm]), min(memory, key=lambda arm: memory[arm])
        if memory[most] - memory[least] > MEMORY_JUMP_MIB:
            flags.append(
                f"the GPU's memory jumped: {memory[most]:,.0f} MiB in use in the windows of {most.value}, "
                f"{memory[least]:,.0f} MiB in those of {least.value}"
            )
    return flags


def _ceiling(dali_rate: float | None, setting: Setting) -> list[str]:
    ceiling = setting.cpus * PIXELS_PER_CORE + (PIXELS_PER_GPU if setting.device == "cuda" else 0.0)
    rate = (dali_rate or 0.0) * setting.pixels_per_image
    if rate <= ceiling:
        return []
    return [
        f"the DALI arm read {rate / 1e9:,.1f} thousand million source pixels a second; more than "
        f"{ceiling / 1e9:,.1f} are not to be expected of {setting.cpus} cores"
        + (" and a GPU" if setting.device == "cuda" else "")
    ]


def _idle(use: GpuUse) -> bool:
    return use.sm_percent is not None and use.sm_percent < IDLE_PERCENT and (use.jpg_percent or 0.0) < IDLE_PERCENT


def _percent(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.0f} %"
