"""The NVML in memory offers what pynvml does, and refuses what NVIDIA's documentation says that it refuses."""

import inspect

import pynvml
import pytest

from tests.host.gpu.nvml_memory import InMemoryCard, InMemoryInstance, InMemoryNvml

REFUSED_TO_INSTANCES = (
    "nvmlDeviceGetUtilizationRates",
    "nvmlDeviceGetJpgUtilization",
    "nvmlDeviceGetCurrentClocksEventReasons",
)


@pytest.fixture
def card():
    """Two GPU instances, one of them shared by two compute instances."""
    return InMemoryCard(
        "GPU-1",
        mig=True,
        instances={
            0: InMemoryInstance("MIG-a", gpu_instance=7, used_mib=100, processes=[1]),
            1: InMemoryInstance("MIG-b", "1c.2g.35gb", gpu_instance=3, used_mib=200, processes=[2]),
            4: InMemoryInstance("MIG-c", "1c.2g.35gb", gpu_instance=3, compute_instance=1, used_mib=300, processes=[3]),
        },
    )


@pytest.fixture
def nvml(card):
    driver = InMemoryNvml(card)
    driver.nvmlInit()
    return driver


def refused(code):
    return pytest.raises(pynvml.NVMLError, match=str(pynvml.NVMLError(code)))


def test_functions_are_those_of_pynvml():
    """By name and number of arguments that they need: what runs here runs with the driver's library."""
    names = [name for name in vars(InMemoryNvml) if name.startswith("nvml")]
    assert len(names) > 20
    for name in names:
        ours = inspect.signature(getattr(InMemoryNvml(), name)).parameters
        theirs = inspect.signature(getattr(pynvml, name)).parameters
        needed = [one for one in theirs.values() if one.default is one.empty]
        assert len(ours) == len(needed), name


def test_numbers_are_those_of_pynvml_and_functions_never_are():
    """A function that it lacks must not reach the real driver."""
    assert InMemoryNvml().NVML_ERROR_NOT_FOUND == pynvml.NVML_ERROR_NOT_FOUND
    with pytest.raises(AttributeError, match="nvmlDeviceGetTemperature"):
        InMemoryNvml().nvmlDeviceGetTemperature  # noqa: B018 - asked for


def test_nothing_is_answered_before_it_is_opened(card):
    """Nor after it was closed."""
    driver = InMemoryNvml(card)
    with refused(pynvml.NVML_ERROR_UNINITIALIZED):
        driver.nvmlDeviceGetCount()
    driver.nvmlInit()
    assert driver.nvmlDeviceGetCount() == 1
    driver.nvmlShutdown()
    with refused(pynvml.NVML_ERROR_UNINITIALIZED):
        driver.nvmlDeviceGetUUID(card)


def test_a_gpu_counts_what_its_instances_have(nvml, card):
    """Memory and processes, these with the numbers of their instance."""
    assert nvml.nvmlDeviceGetMemoryInfo(card).used >> 20 == 500 + 600
    processes = nvml.nvmlDeviceGetComputeRunningProcesses(card)
    assert [(one.pid, one.gpuInstanceId, one.computeInstanceId) for one in processes] == [
        (1, 7, 0),
        (2, 3, 0),
        (3, 3, 1),
    ]


def test_compute_instances_share_memory_and_keep_their_processes(nvml, card):
    """As their GPU instance owns the memory."""
    second, third = card.instances[1], card.instances[4]
    assert {nvml.nvmlDeviceGetMemoryInfo(one).used >> 20 for one in (second, third)} == {500}
    assert nvml.nvmlDeviceGetMemoryInfo(card.instances[0]).used >> 20 == 100
    assert [one.pid for one in nvml.nvmlDeviceGetComputeRunningProcesses(third)] == [3]


@pytest.mark.parametrize("name", REFUSED_TO_INSTANCES)
def test_what_an_instance_does_not_say(nvml, card, name):
    """Neither does a GPU in MIG mode say how busy it is."""
    with refused(pynvml.NVML_ERROR_NOT_SUPPORTED):
        getattr(nvml, name)(card.instances[0])
    if "Utilization" in name:
        with refused(pynvml.NVML_ERROR_NOT_SUPPORTED):
            getattr(nvml, name)(card)


def test_events_are_the_gpus(nvml, card):
    """Whoever registered hears of each once, until the set is freed."""
    events, others = nvml.nvmlEventSetCreate(), nvml.nvmlEventSetCreate()
    with refused(pynvml.NVML_ERROR_NOT_SUPPORTED):
        nvml.nvmlDeviceRegisterEvents(card.instances[0], 0, events)
    for one in (events, others):
        nvml.nvmlDeviceRegisterEvents(card, 0, one)
    card.report(31, 7, 0)
    for one in (events, others):
        event = nvml.nvmlEventSetWait_v2(one, 0)
        assert (event.eventData, event.gpuInstanceId, event.computeInstanceId) == (31, 7, 0)
    with refused(pynvml.NVML_ERROR_TIMEOUT):
        nvml.nvmlEventSetWait_v2(events, 0)
    nvml.nvmlEventSetFree(events)
    card.report(48)
    assert len(events) == 0
    assert nvml.nvmlEventSetWait_v2(others, 0).eventData == 48


def test_instances_are_found_by_number_and_uuid(nvml, card):
    """Numbers have gaps; a lost GPU takes its instances along."""
    assert nvml.nvmlDeviceGetMigDeviceHandleByIndex(card, 4).uuid == "MIG-c"
    with refused(pynvml.NVML_ERROR_NOT_FOUND):
        nvml.nvmlDeviceGetMigDeviceHandleByIndex(card, 2)
    assert nvml.nvmlDeviceGetHandleByUUID("MIG-b") is card.instances[1]
    with refused(pynvml.NVML_ERROR_NOT_FOUND):
        nvml.nvmlDeviceGetHandleByUUID("MIG-d")
    card.lost = True
    with refused(pynvml.NVML_ERROR_GPU_IS_LOST):
        nvml.nvmlDeviceGetHandleByUUID("MIG-b")
