"""Runs go to devices that have what their lab asks for."""

import pytest

from grader_service.host.facts import Gpu, Mig
from grader_service.labs.specs import lab_text, read_lab
from grader_service.model.lab import Placement
from grader_service.service.pipeline import StageEnd
from grader_service.service.placement import left_to_others, unfit
from grader_service.store.tables import RunState

pytestmark = pytest.mark.integration

H100 = Gpu(0, "NVIDIA H100 80GB HBM3", "GPU-1", "580.1", 81_559)
SEVENTH = Gpu(
    0,
    "NVIDIA H100 80GB HBM3 MIG 1g.10gb",
    "MIG-1",
    "580.1",
    9_728,
    Mig("GPU-1", "1g.10gb", 0, alone=True, jpeg_engines=1),
)


@pytest.mark.parametrize(
    ("gpu", "wanted", "reason"),
    [
        (H100, Placement(), None),
        (H100, Placement(gpu_models=("A100", "h100"), gpu_memory_mib=80_000, cpus=16), None),
        (
            H100,
            Placement(gpu_models=("A100", "H200")),
            "it asks for a GPU of A100 or H200, this is NVIDIA H100 80GB HBM3",
        ),
        (H100, Placement(gpu_models=("MIG",)), "it asks for a GPU of MIG, this is NVIDIA H100 80GB HBM3"),
        (H100, Placement(gpu_memory_mib=100_000), "it asks for 100000 MiB of GPU memory, this GPU has 81559"),
        (H100, Placement(cpus=17), "it asks for 17 cores, this worker may use 16"),
        (SEVENTH, Placement(gpu_memory_mib=9_000), None),
        (SEVENTH, Placement(gpu_memory_mib=10_000), "it asks for 10000 MiB of GPU memory, this GPU has 9728"),
    ],
)
def test_what_a_lab_asks_for(gpu, wanted, reason):
    """Model, memory and cores, each with its reason; an instance has its own memory, not that of its GPU."""
    assert unfit(wanted, gpu, 16) == reason


@pytest.mark.parametrize(
    ("models", "fits"),
    [
        ((), True),
        (("H100",), False),
        (("h100 80gb",), False),
        (("MIG",), True),
        (("mig 1g.10gb",), True),
        (("1g.10gb",), True),
        (("HBM3 MIG 1g",), True),
        (("MIG 3g.40gb",), False),
        (("A100", "MIG 1g.10gb"), True),
        (("A100 MIG",), False),
    ],
)
def test_an_instance_is_asked_for_as_one(models, fits):
    """A lab that asks for an H100 gets a whole one: thresholds tried on it say nothing of a seventh."""
    reason = unfit(Placement(gpu_models=models), SEVENTH, 16)
    assert (reason is None) == fits
    if not fits:
        assert reason.endswith("this is NVIDIA H100 80GB HBM3 MIG 1g.10gb")


def test_rehearsals_run_anywhere():
    """A worker without a GPU leaves nothing to others."""
    lab = read_lab(lab_text("dali-pipelines"), "lab")
    picky = lab.model_copy(update={"placement": Placement(gpu_models=("B200",))})
    assert left_to_others([picky], None, 1) == {}
    assert list(left_to_others([picky], H100, 16)) == ["dali-pipelines"]


def test_runs_of_other_labs_are_left_alone(local):
    """A worker that is not fit for a lab claims what comes next of the others; a fit one takes what was left."""
    submission = local.submit()
    assert local.run_all(local.deps(without_labs=("dali-pipelines", "another"))) == []
    assert local.run(submission).state == RunState.RUN_QUEUED
    assert local.run_all(local.deps(without_labs=("another",))) == [StageEnd.STORED]
