"""What a runner works with, as its settings say."""

import pytest

from grader_service.host.facts import Gpu
from grader_service.settings import Settings
from grader_service.wiring import open_store, runner_deps
from sandbox.warm.runner import WarmRunner

GPU = Gpu(index=0, model="NVIDIA H100", uuid="GPU-0a1b", driver="580.1", memory_mib=81_920)


@pytest.mark.parametrize(
    ("gpu", "more", "prepares", "keeps"),
    [
        (GPU, {}, True, True),
        (GPU, {"warm_runs": 0}, False, True),
        (GPU, {"reference_minutes": 0.0}, True, False),
        (None, {}, True, False),
    ],
    ids=["by default", "nothing prepared", "no reference kept", "a rehearsal's ratio does not pass by two blocks"],
)
def test_the_fast_path(tmp_path, gpu, more, prepares, keeps):
    """Runs are prepared, and the reference of a GPU is kept, unless somebody turned it off."""
    settings = Settings(state_dir=tmp_path, sandbox="process", **more)
    deps = runner_deps(settings, open_store(settings), gpu, "here", gate=None)
    assert isinstance(deps.sandbox, WarmRunner) is prepares
    assert (deps.references is not None) is keeps
