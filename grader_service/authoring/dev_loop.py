"""An author's inner loop: one run of a submission is kept, and judged again whenever the check's file changes."""

import hashlib
import json
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from checks.api import Result
from checks.authoring.target import Target, load_anew
from checks.raising import Raised, raised
from grader_service.authoring.recording import record_control
from grader_service.authoring.trying import parsed_params, run_submission
from grader_service.errors import ConfigurationError, UsageError
from grader_service.model.evidence import Evidence, Need
from grader_service.run.progress import Progress
from sandbox.api import SandboxRunner

POLL_S = 0.1
"""How often a file is looked at."""


@dataclass(frozen=True)
class Looked:
    """What came of one save."""

    seconds: float
    """From the file's text to the result, without a run of the submission."""
    ran_s: float | None
    """Seconds of the run that was needed before; None where the kept evidence was enough."""
    target: Target | None = None
    evidence: Evidence | None = None
    observation: BaseModel | None = None
    result: Result | None = None
    problem: Raised | None = None
    """What the file or the check raised in place of a result."""

    @property
    def printed(self) -> Mapping[str, str]:
        """Probe → what it printed, of those that printed something."""
        return {record.id: record.printed for record in self._records if record.printed}

    @property
    def probes_raised(self) -> Mapping[str, str]:
        """Probe → traceback of what it raised."""
        return {record.id: record.traceback for record in self._records if record.traceback}

    @property
    def _records(self) -> tuple[Any, ...]:
        return self.evidence.probes if self.evidence is not None else ()


@dataclass(frozen=True)
class _Kept:
    """The evidence of a run, and what it was made for."""

    evidence: Evidence
    needs: frozenset[Need]
    probes: Mapping[str, tuple[str, str]]
    """Id → digest of its source, and the parameters where it reads them."""
    submission: str
    """Digest of the file, as it was before the run."""


class DevLoop:
    """Judges one submission by one check's file, as often as that changes."""

    def __init__(
        self,
        file: Path,
        submission: Path,
        params: Mapping[str, Any],
        *,
        runner: SandboxRunner,
        progress: Callable[[], AbstractContextManager[Progress]],
    ) -> None:
        """Takes what `run_submission` takes, and what opens a display of a run's stages; nothing is run yet."""
        self._file = file.resolve()
        self._submission = submission
        self.params = params
        self._runner = runner
        self._progress = progress
        self._kept: _Kept | None = None

    def forget(self) -> None:
        """The next look runs the submission anew."""
        self._kept = None

    def keep(self, looked: Looked) -> Path:
        """Records the submission and the result as a control of the check; returns the control's file.

        Raises:
            UsageError: there is no result, the submission is not what was run, or see `record_control`.
        """
        if looked.target is None or looked.result is None or self._kept is None:
            raise UsageError("there is no result to keep")
        content = _content(self._submission)
        if hashlib.sha256(content).hexdigest() != self._kept.submission:
            raise UsageError(f"{self._submission} has changed since its run; press r to run it again, then c")
        return record_control(looked.target, self._submission.name, content, self.params, looked.result)

    def look(self) -> Looked:
        """Loads the file as it is now and judges; runs the submission first where the kept evidence does not do.

        Raises:
            SubmissionRejected: it is no submission.
            InfrastructureError: ours.
        """
        started, ran_s = time.monotonic(), None
        target, evidence = None, None

        def looked(**found: Any) -> Looked:
            return Looked(time.monotonic() - started - (ran_s or 0.0), ran_s, target, evidence, **found)

        try:
            target = load_anew(self._file)
            check = target.loaded.check
            params = parsed_params(target.loaded, self.params)
            probes = _probes(target, params)
            if not self._does(target, probes):
                before = time.monotonic()
                self._kept = self._run(target, probes)
                ran_s = time.monotonic() - before
            assert self._kept is not None  # noqa: S101 - it was made above
            evidence = self._kept.evidence
            result, observation = check.answer(evidence, params)
        except ConfigurationError as error:
            why = raised(error.__cause__, self._file).traceback if error.__cause__ is not None else ""
            return looked(problem=Raised(str(error), why))
        except (Exception, SystemExit) as error:
            if evidence is None and not isinstance(error, SystemExit):
                raise  # of a run, and not the author's
            return looked(problem=raised(error))
        return looked(observation=observation, result=result)

    def changed(self, since: float) -> bool:
        """Whether the file was written after this time; one that is away for a moment was not."""
        return self.written() not in (0.0, since)

    def written(self) -> float:
        """When the file was written last; 0 while it is away."""
        try:
            return self._file.stat().st_mtime
        except OSError:
            return 0.0

    def _does(self, target: Target, probes: Mapping[str, tuple[str, str]]) -> bool:
        """Whether the kept evidence holds what the check asks for now."""
        kept = self._kept
        return kept is not None and target.loaded.check.needs <= kept.needs and probes.items() <= kept.probes.items()

    def _run(self, target: Target, probes: Mapping[str, tuple[str, str]]) -> _Kept:
        digest = hashlib.sha256(_content(self._submission)).hexdigest()
        with self._progress() as progress:
            evidence = run_submission(target, self._submission, self.params, runner=self._runner, progress=progress)
        return _Kept(evidence, target.loaded.check.needs, probes, digest)


def _content(submission: Path) -> bytes:
    try:
        return submission.read_bytes()
    except OSError as error:
        raise UsageError(f"{submission} cannot be read: {error}") from error


def _probes(target: Target, params: BaseModel) -> dict[str, tuple[str, str]]:
    """See `_Kept.probes`."""
    found = {}
    for probe_id in target.loaded.check.probes:
        probe = target.probe(probe_id)
        found[probe_id] = (probe.lines_sha256, params.model_dump_json() if b"params" in probe.source else "")
    return found


def shown(observation: BaseModel | None, most: int = 4000) -> str:
    """An observation as JSON, for a terminal."""
    if observation is None:
        return ""
    text = json.dumps(observation.model_dump(mode="json"), indent=2, ensure_ascii=False)
    return text if len(text) <= most else f"{text[:most]}\n… ({len(text)} characters)"
