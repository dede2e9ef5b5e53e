"""The steward lets runs onto clean GPUs only, and takes untrustworthy ones out of service."""

import threading
import time

import pytest

from grader_service.host.gpu.steward import GpuUnfit, Steward
from grader_service.host.gpu.xid import APPLICATION
from tests.host.gpu.memory import InMemoryGpu


@pytest.fixture
def gpu():
    return InMemoryGpu()


@pytest.fixture
def retired():
    return []


@pytest.fixture
def steward(gpu, retired):
    return Steward(gpu, retired.append, patience_s=0.3)


def test_a_clean_gpu_is_admitted_and_released(steward, retired):
    """Nothing on it, nothing reported: in service."""
    steward.admit()
    health = steward.release()
    assert (health.xids, health.memory_used_before_mib, retired) == ((), 500, [])


UNCLEAN = pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"processes": [4711]}, "4711"),
        ({"memory_used_mib": 9000}, "9000 MiB"),
        ({"recovery_action": "a GPU reset"}, "a GPU reset"),
        ({"gone": True}, "does not answer"),
    ],
)


@UNCLEAN
def test_an_unclean_gpu_is_quarantined_with_its_reason(steward, gpu, retired, change, reason):
    """Residual processes or memory, a pending recovery and a lost GPU keep runs off it."""
    for name, value in change.items():
        setattr(gpu, name, value)
    with pytest.raises(GpuUnfit, match=f"{gpu.uuid} was taken out of service: .*{reason}"):
        steward.admit()
    assert reason in retired[0]


def test_a_gpu_that_is_gone_is_not_waited_for(gpu, retired):
    """No patience brings it back."""
    gpu.gone = True
    with pytest.raises(GpuUnfit):
        Steward(gpu, retired.append, patience_s=3600.0).admit()
    assert len(retired) == 1


def test_a_dying_process_is_waited_for(gpu, retired):
    """Memory of a run that was just killed may take a moment to be freed."""
    gpu.processes = [1]
    threading.Timer(0.3, gpu.processes.clear).start()
    started = time.monotonic()
    Steward(gpu, retired.append, patience_s=5.0).admit()
    assert time.monotonic() - started < 5.0
    assert retired == []


@UNCLEAN
def test_a_look_has_no_consequences(gpu, retired, change, reason):
    """Whoever can wait learns that it is not free, at once; nobody is told, and no fault is taken from the next run."""
    del reason
    steward = Steward(gpu, retired.append, patience_s=3600.0)
    assert steward.is_free()
    gpu.xids = [79]
    for name, value in change.items():
        setattr(gpu, name, value)
    began = time.monotonic()
    assert not steward.is_free()
    assert time.monotonic() - began < 60
    assert (retired, gpu.xids) == ([], [79])


@pytest.mark.parametrize("xid", sorted(APPLICATION))
def test_an_application_error_is_the_learners_and_the_gpu_stays(steward, gpu, retired, xid):
    """The Xid is noted beside the run."""
    steward.admit()
    gpu.xids = [xid]
    health = steward.release()
    assert health.xids == (xid,)
    assert f"Xid {xid}" in health.notes[0]
    assert retired == []


@pytest.mark.parametrize("xid", [48, 63, 64, 74, 79, 94, 95, 119, 999])
def test_a_hardware_fault_voids_the_run_and_retires_the_gpu(steward, gpu, retired, xid):
    """So does any Xid that nobody has sorted."""
    steward.admit()
    gpu.xids = [31, xid]
    with pytest.raises(GpuUnfit, match=f"Xid {xid}"):
        steward.release()
    assert len(retired) == 1


def test_a_fault_between_runs_is_met_before_the_next(steward, gpu, retired):
    """What the driver reported while nobody ran keeps the next run off."""
    gpu.xids = [79]
    with pytest.raises(GpuUnfit):
        steward.admit()
    assert retired
