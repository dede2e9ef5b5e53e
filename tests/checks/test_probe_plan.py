"""Probes get the lab's parameters; those that are hidden stay out of the process of learner code."""

import pytest
from pydantic import Field

from checks.probe_files import ProbeFiles
from checks.registry import LoadedCheck, Registry
from grader_service.judging.probe_plan import wanted_probes
from grader_service.model.base import Wire
from grader_service.model.lab import LabCheck, LabStep
from tests.checks.test_probe_files import GOOD
from tests.checks.test_registry import GoodCheck


class Params(Wire):
    """One parameter that learners must not read, and one that they may."""

    answers: tuple[str, ...] = Field(default=(), json_schema_extra={"hidden": True})
    least: int = 1


class Asking(GoodCheck):
    """Wants one probe."""

    id = "asking"
    probes = ("looks",)
    params_model = Params


@pytest.mark.parametrize(("site", "seen"), [("graph", {"answers": ["42"], "least": 3}), ("learner", {"least": 3})])
def test_hidden_parameters_stay_out_of_learners_processes(tmp_path, site, seen):
    """The graph's pod holds no learner code and gets all of them."""
    (tmp_path / "looks.py").write_text(GOOD.replace('"graph"', f'"{site}"'))
    registry = Registry([])
    registry._loaded["asking"] = LoadedCheck(Asking(), "test", "1")
    check = LabCheck(id="asking", points=1, params={"answers": ["42"], "least": 3})
    steps = [LabStep(id="s", title="S", checks=(check,))]
    (task,) = wanted_probes(steps, registry, ProbeFiles([], folders=[tmp_path]))
    assert task.ref.params == {"asking": seen}
    assert task.ref.sha256 == ProbeFiles([], folders=[tmp_path]).load("looks").sha256
