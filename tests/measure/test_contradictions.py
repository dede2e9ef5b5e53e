"""Contradictions become flags for staff; what fits together is left alone."""

from dataclasses import replace

import pytest

from grader_service.measure.contradictions import Setting, corroborate
from grader_service.model.measurement import Arm, GpuUse

GPU = Setting(device="cuda", cpus=8, pixels_per_image=500 * 375, decodes_on_gpu=True)


def use(arm, sm, *, jpg=0.0, memory=6000.0):
    return GpuUse(arm=arm, samples=20, sm_percent=sm, jpg_percent=jpg, memory_mib=memory, processes=3)


def flags(*uses, notes=(), rate=9500.0, setting=GPU):
    found = corroborate(uses, notes, rate, setting)
    return found.flags if found is not None else ()


HONEST = (use(Arm.DALI, 35.0, jpg=25.0), use(Arm.LEARNER, 12.0), use(Arm.DECLARED, 2.0), use(Arm.FAIR, 3.0))


def test_an_honest_measurement_has_no_flags():
    """The figures are recorded all the same."""
    found = corroborate(HONEST, (), 9500.0, GPU)
    assert found.flags == ()
    assert found.uses == HONEST


@pytest.mark.parametrize(
    ("sm", "jpg", "on_gpu", "flagged"),
    [
        (0.0, 0.0, True, True),
        (0.4, None, True, True),
        (0.0, 20.0, True, False),
        (15.0, 0.0, True, False),
        (None, 0.0, True, False),
        (0.0, 0.0, False, False),
    ],
)
def test_a_gpu_decoder_that_leaves_the_gpu_idle_is_flagged(sm, jpg, on_gpu, flagged):
    """Either engine is enough, an unknown figure accuses nobody, and a decoder on the CPU claims nothing else."""
    found = flags(use(Arm.DALI, sm, jpg=jpg), *HONEST[1:], setting=replace(GPU, decodes_on_gpu=on_gpu))
    assert bool(found) == flagged
    assert all("neither its SMs nor its JPEG engine moved" in flag for flag in found)


@pytest.mark.parametrize(("arm", "flagged"), [(Arm.DECLARED, True), (Arm.FAIR, True), (Arm.LEARNER, False)])
def test_a_busy_gpu_is_flagged_while_only_a_reference_runs(arm, flagged):
    """A learner's own loader may use the GPU; ours only copies to it."""
    uses = (*(row for row in HONEST if row.arm is not arm), use(arm, 55.0))
    assert bool(flags(*uses)) == flagged


def test_a_memory_jump_is_flagged_with_both_arms():
    """Every arm was warm before the first block."""
    (flag,) = flags(use(Arm.DALI, 35.0, memory=30_000.0), *HONEST[1:])
    assert "30,000 MiB" in flag
    assert "dali" in flag


@pytest.mark.parametrize(
    ("device", "rate", "flagged"),
    [("cuda", 30_000.0, False), ("cuda", 200_000.0, True), ("cpu", 4_000.0, False), ("cpu", 40_000.0, True)],
)
def test_a_rate_above_what_hardware_can_is_flagged(device, rate, flagged):
    """The best rate seen on an H200 is not."""
    found = flags(rate=rate, setting=replace(GPU, device=device, decodes_on_gpu=False))
    assert bool(found) == flagged
    assert all("source pixels a second" in flag for flag in found)


def test_notes_of_the_host_are_flags_and_bounded():
    """An Xid is for staff to see; a thousand of them are not."""
    found = flags(*HONEST, notes=[f"in a block: Xid 31 ({number})" for number in range(100)])
    assert len(found) == 21
    assert found[0].endswith("(0)")
    assert "80 more" in found[-1]


def test_nothing_to_say_is_null():
    """A plain rehearsal has no corroboration."""
    assert corroborate((), (), None, Setting("cpu", 2, 187_500.0, decodes_on_gpu=False)) is None
