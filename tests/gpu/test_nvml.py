"""NVML's answers and refusals, as the driver gives them; the driver itself is replaced."""

from types import SimpleNamespace

import pynvml
import pytest

from grader_service.gpu.monitor import GpuGone
from grader_service.gpu.nvml import NvmlGpu


@pytest.fixture
def driver(monkeypatch):
    """Answers of a busy GPU; a test may replace some of them."""
    answers = {
        "nvmlInit": None,
        "nvmlShutdown": None,
        "nvmlDeviceGetHandleByUUID": "handle",
        "nvmlEventSetCreate": "events",
        "nvmlEventSetFree": None,
        "nvmlDeviceRegisterEvents": None,
        "nvmlDeviceGetMemoryInfo": SimpleNamespace(used=3 << 30, total=80 << 30),
        "nvmlDeviceGetComputeRunningProcesses": [SimpleNamespace(pid=41), SimpleNamespace(pid=42)],
        "nvmlDeviceGetUtilizationRates": SimpleNamespace(gpu=63, memory=10),
        "nvmlDeviceGetJpgUtilization": [28, 1_000_000],
        "nvmlDeviceGetCurrentClocksEventReasons": 0,
        "nvmlDeviceGetFieldValues": [SimpleNamespace(nvmlReturn=1)],
    }
    calls = []

    def answer(name):
        def call(*_):
            calls.append(name)
            found = answers[name]
            if isinstance(found, Exception):
                raise found
            return found

        return call

    for name in answers:
        monkeypatch.setattr(pynvml, name, answer(name))
    return SimpleNamespace(answers=answers, calls=calls)


def test_a_busy_gpu_in_one_look(driver):
    """Percentages, memory in MiB, process ids; what is given out may show what was two averaging times ago."""
    use = NvmlGpu("GPU-1").utilisation()
    assert (use.sm_percent, use.jpg_percent, use.memory_used_mib, use.processes) == (63.0, 28.0, 3072, (41, 42))
    assert (use.period_s, use.throttled) == (2.0, None)


def test_what_a_gpu_does_not_have_is_none(driver):
    """MIG has no SM figure, older GPUs have no JPEG engine; both can be watched."""
    driver.answers["nvmlDeviceGetUtilizationRates"] = pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)
    driver.answers["nvmlDeviceGetJpgUtilization"] = pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)
    use = NvmlGpu("GPU-1").utilisation()
    assert (use.sm_percent, use.jpg_percent) == (None, None)
    assert 0 < use.period_s < 1


def test_heat_is_named(driver):
    """The bit of a thermal slowdown becomes a word; a power cap alone is how such GPUs always work."""
    driver.answers["nvmlDeviceGetCurrentClocksEventReasons"] = pynvml.nvmlClocksEventReasonSwThermalSlowdown
    assert NvmlGpu("GPU-1").utilisation().throttled == "heat"
    driver.answers["nvmlDeviceGetCurrentClocksEventReasons"] = pynvml.nvmlClocksEventReasonSwPowerCap
    assert NvmlGpu("GPU-1").utilisation().throttled is None


def test_a_gpu_that_falls_off_the_bus_is_gone_and_connected_to_anew(driver):
    """Both looks say so, and the next one opens the driver again."""
    gpu = NvmlGpu("GPU-1")
    gpu.utilisation()
    driver.answers["nvmlDeviceGetMemoryInfo"] = pynvml.NVMLError(pynvml.NVML_ERROR_GPU_IS_LOST)
    for look in (gpu.utilisation, gpu.snapshot):
        with pytest.raises(GpuGone, match="GPU-1"):
            look()
    assert driver.calls.count("nvmlShutdown") == 2
    driver.answers["nvmlDeviceGetMemoryInfo"] = SimpleNamespace(used=0, total=80 << 30)
    assert gpu.snapshot().processes == (41, 42)
    assert driver.calls.count("nvmlInit") == 3
