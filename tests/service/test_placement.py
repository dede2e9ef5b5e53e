"""Runs go to devices that have what their lab asks for."""

import pytest

from grader_service.host import Gpu
from grader_service.labs.specs import lab_text, read_lab
from grader_service.model.lab import Placement
from grader_service.service.placement import left_to_others, unfit
from grader_service.service.runner import RunEnd
from grader_service.store.tables import RunState

H100 = Gpu(0, "NVIDIA H100 80GB HBM3", "GPU-1", "580.1", 81_559)


@pytest.mark.parametrize(
    ("wanted", "reason"),
    [
        (Placement(), None),
        (Placement(gpu_models=("A100", "h100"), gpu_memory_mib=80_000, cpus=16), None),
        (Placement(gpu_models=("A100", "H200")), "it asks for a GPU of A100 or H200, this is NVIDIA H100 80GB HBM3"),
        (Placement(gpu_memory_mib=100_000), "it asks for 100000 MiB of GPU memory, this GPU has 81559"),
        (Placement(cpus=17), "it asks for 17 cores, this worker may use 16"),
    ],
)
def test_what_a_lab_asks_for(wanted, reason):
    """Model, memory and cores, each with its reason."""
    assert unfit(wanted, H100, 16) == reason


def test_rehearsals_run_anywhere():
    """A worker without a GPU leaves nothing to others."""
    lab = read_lab(lab_text("dali-pipelines"), "lab")
    picky = lab.model_copy(update={"placement": Placement(gpu_models=("B200",))})
    assert left_to_others([picky], None, 1) == {}
    assert list(left_to_others([picky], H100, 16)) == ["dali-pipelines"]


def test_runs_of_other_labs_are_left_alone(bench):
    """A worker that is not fit for a lab claims what comes next of the others; a fit one takes what was left."""
    submission = bench.submit()
    assert bench.run_all(bench.desk(without_labs=("dali-pipelines", "another"))) == []
    assert bench.run(submission).state == RunState.RUN_QUEUED
    assert bench.run_all(bench.desk(without_labs=("another",))) == [RunEnd.STORED]
