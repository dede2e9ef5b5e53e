"""What is told of a whole GPU, and when it is gone; the driver is an NVML in memory."""

from types import SimpleNamespace

import pynvml
import pytest

from grader_service.host.gpu.monitor import GpuGone
from grader_service.host.gpu.nvml import NvmlGpu
from tests.host.gpu.nvml_memory import InMemoryCard, InMemoryNvml


@pytest.fixture
def card():
    """A busy GPU."""
    return InMemoryCard("GPU-1", used_mib=3072, processes=[41, 42], sm_percent=63)


@pytest.fixture
def nvml(card):
    return InMemoryNvml(card)


def test_a_busy_gpu_in_one_look(nvml, monkeypatch):
    """Percentages, memory in MiB, process ids; what is given out may show what was two averaging times ago."""
    monkeypatch.setattr(nvml, "nvmlDeviceGetJpgUtilization", lambda _: [28, 1_000_000])
    use = NvmlGpu("GPU-1", nvml).utilisation()
    assert (use.sm_percent, use.jpg_percent, use.memory_used_mib, use.processes) == (63.0, 28.0, 3072, (41, 42))
    assert (use.period_s, use.throttled) == (2.0, None)


def test_what_a_gpu_does_not_have_is_none(nvml, monkeypatch):
    """Older GPUs have no JPEG engine, older drivers no advice; both can be watched."""

    def refuse(_):
        raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)

    monkeypatch.setattr(nvml, "nvmlDeviceGetJpgUtilization", refuse)
    monkeypatch.setattr(nvml, "nvmlDeviceGetFieldValues", lambda *_: [SimpleNamespace(nvmlReturn=1)])
    gpu = NvmlGpu("GPU-1", nvml)
    assert gpu.utilisation().jpg_percent is None
    assert gpu.snapshot().recovery_action is None


def test_a_power_cap_is_how_such_gpus_always_work(nvml, card):
    """Clocks that it holds down are not told as held down."""
    card.clocks_held = pynvml.nvmlClocksEventReasonSwPowerCap
    assert NvmlGpu("GPU-1", nvml).utilisation().throttled is None


def test_a_gpu_that_falls_off_the_bus_is_gone_and_connected_to_anew(nvml, card):
    """Both looks say so and let go of the driver, and the next one opens it again."""
    gpu = NvmlGpu("GPU-1", nvml)
    for look in (gpu.utilisation, gpu.snapshot):
        look()
        assert nvml.opened == 1
        card.lost = True
        with pytest.raises(GpuGone, match="GPU-1"):
            look()
        assert nvml.opened == 0
        card.lost = False
    assert gpu.snapshot().processes == (41, 42)
