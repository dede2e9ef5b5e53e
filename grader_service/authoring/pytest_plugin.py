"""Fixtures for authors of checks, as a plugin of pytest; nothing of the grader is imported until one is used.

`evidence_builder`   valid evidence, see `checks.authoring.evidence.EvidenceBuilder`
`judge_check`        `judge_check(check, evidence, **params)` gives the check's result
`run_submission`     `run_submission(submission, check, **params)` runs one in a sandbox and gives the evidence
`judged_control`     with `@judged_controls(check)`: a control submission that was run and judged

A check is the object, its id, or the path of its file or project.
"""

import shutil
import tempfile
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from checks.api import Result
    from checks.authoring.evidence import EvidenceBuilder
    from grader_service.authoring.controls import JudgedControl
    from grader_service.model.evidence import Evidence
    from sandbox.api import SandboxRunner


@pytest.fixture
def evidence_builder() -> "EvidenceBuilder":
    """Builds evidence of a run in which all went well; each method replaces a part and gives a new builder."""
    from checks.authoring.evidence import EvidenceBuilder  # noqa: PLC0415 - costs nothing where it is not used

    return EvidenceBuilder()


@pytest.fixture
def judge_check() -> "Callable[..., Result]":
    """`judge_check(check, evidence, **params)`: what a check answers, in this process."""

    def judge(check: object, evidence: "Evidence", **params: Any) -> "Result":
        from checks.authoring.target import target_of  # noqa: PLC0415 - see above
        from grader_service.authoring.trying import judge_evidence  # noqa: PLC0415 - see above

        return judge_evidence(target_of(check).loaded, evidence, params)

    return judge


@pytest.fixture(scope="session")
def grader_process_runner() -> "Iterator[SandboxRunner]":
    """Pods as plain processes, in a folder that goes away at the end. For code that you trust."""
    from grader_service.host.sandboxes import open_runner  # noqa: PLC0415 - see above
    from grader_service.settings import Settings  # noqa: PLC0415 - see above

    # Sockets lie in there, whose paths must be short.
    folder = Path(tempfile.mkdtemp(prefix="grader-", dir="/var/tmp"))
    yield open_runner("process", "", Settings(state_dir=folder), None)
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def run_submission(tmp_path: Path, grader_process_runner: "SandboxRunner") -> "Callable[..., Evidence]":
    """`run_submission(submission, check, **params)`: runs a file, or source code, with the check's probes, on the CPU.

    Takes some seconds: torch and DALI are imported in the pods.
    """

    def run(submission: Path | str, check: object, **params: Any) -> "Evidence":
        from checks.authoring.target import target_of  # noqa: PLC0415 - see above
        from grader_service.authoring import trying  # noqa: PLC0415 - see above

        path = submission if isinstance(submission, Path) else Path(submission) if "\n" not in submission else None
        if path is None:
            path = tmp_path / "submission.py"
            path.write_text(textwrap.dedent(str(submission)), encoding="utf-8")
        return trying.run_submission(target_of(check), path, params, runner=grader_process_runner)

    return run


def judged_controls(check: object) -> pytest.MarkDecorator:
    """Runs a test once for each control submission of a check; the test takes `judged_control`."""
    from checks.authoring.target import target_of  # noqa: PLC0415 - see above
    from grader_service.authoring.controls import control_cases  # noqa: PLC0415 - see above

    cases = [pytest.param(case, id=case.name) for case in control_cases(target_of(check))]
    return pytest.mark.parametrize("judged_control", cases, indirect=True)


@pytest.fixture
def judged_control(request: pytest.FixtureRequest, grader_process_runner: "SandboxRunner") -> "JudgedControl":
    """A control that was run and judged; its `problem` is empty where it came out as expected."""
    from grader_service.authoring.controls import judge_control  # noqa: PLC0415 - see above

    return judge_control(request.param, runner=grader_process_runner)
