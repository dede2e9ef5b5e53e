"""One learner's process for all tests of this folder: torch and DALI are imported once."""

import importlib.util
import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from grader_service.model.evidence import Evidence, ProbeRecord
from tests.checks.judged import a_record, probe_file
from tests.conftest import missing
from tests.factories import a_discovery, a_run, an_evidence
from tests.levels.parts import ROOT


class Learner:
    """A process in which submissions run and are probed, one after another; see `learner_process` for `options`."""

    def __init__(self, *options: str) -> None:
        if any(importlib.util.find_spec(name) is None for name in ("torch", "torchvision", "nvidia")):
            missing("torch, torchvision or DALI is not installed (the `lab` extra)")
        self._process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-m", "tests.checks.claims.learner_process", *options],
            cwd=ROOT,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def run(
        self,
        source: str | list[str],
        *probes: str,
        params: Mapping[str, Mapping[str, object]] | None = None,
        variable: str = "",
        budget_s: float | None = None,
    ) -> dict[str, Any]:
        """Runs a module, or the cells of a notebook, and then probes; the answer as the process gives it.

        Args:
            source: what the learner handed in.
            probes: their names.
            params: of the checks that ask for the probes.
            variable: a name of which the value is wanted; it must be plain.
            budget_s: of each probe, in place of its own.
        """
        texts = source if isinstance(source, list) else [source]
        found = [probe_file(name) for name in probes]
        request = {
            "texts": [textwrap.dedent(text) for text in texts],
            "notebook": texts is source,
            "params": params or {},
            "variable": variable,
            "probes": [
                {
                    "id": probe.id,
                    "site": probe.site,
                    "source": probe.source.decode(),
                    "budget_s": budget_s or probe.budget_s,
                }
                for probe in found
            ],
        }
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, "the learner's process ended"
        return json.loads(line)

    def evidence(self, source: str | list[str], probe: str, **options: Any) -> Evidence:
        """Evidence of a submission that ran to its end, with what one probe made of it."""
        answer = self.run(source, probe, **options)
        assert answer["exception"] is None, answer["exception"]
        return evidence_of(a_record(probe, **answer["probes"][probe]))

    def close(self) -> None:
        """Ends the process."""
        self._process.kill()
        self._process.communicate()


def evidence_with(probe: str, status: str = "ok", text: str = "", observations: Any = None, **changes: Any) -> Evidence:
    """Evidence of a run with these parts, in which a probe ended so."""
    return evidence_of(a_record(probe, status, text=text, observations=observations), **changes)


def evidence_of(record: ProbeRecord, **changes: Any) -> Evidence:
    """Evidence that holds this record of a probe."""
    values = {"discovery": a_discovery(), "run": a_run(device="cpu")} | changes
    return an_evidence(**values, probes=(record,))


@pytest.fixture(scope="session")
def learner() -> Iterator[Learner]:
    """The process; see `Learner`."""
    process = Learner()
    yield process
    process.close()


@pytest.fixture(scope="module")
def evidence(request: pytest.FixtureRequest, learner: Learner) -> dict[str, Evidence]:
    """Evidence of every control of the module that asks, by name: sources in `GOOD`, and first in what `BAD` holds."""
    module = request.module
    sources = {**module.GOOD, **{name: control[0] for name, control in reversed(module.BAD.items())}}
    return {name: learner.evidence(source, *module.CHECK.probes) for name, source in sources.items()}
