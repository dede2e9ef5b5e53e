"""Pipelines given as source text, probed by the real probes, as the evidence that a check judges."""

import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from checks.api import Result
from grader_service.model.discovery import PipelineFacts
from grader_service.model.evidence import Evidence
from tests.checks.claims.conftest import Learner
from tests.checks.judged import a_record, judged
from tests.factories import a_discovery, an_evidence

BUDGET_S = 200.0
"""Far more than a probe needs, on a machine that does other things besides."""

START = """
import random
from nvidia.dali import Pipeline, fn, pipeline_def, types
from nvidia.dali.plugin.pytorch import DALIClassificationIterator, DALIGenericIterator, LastBatchPolicy

dataset_dir = {folder!r}
MEAN, STD = [0.485 * 255, 0.456 * 255, 0.406 * 255], [0.229 * 255, 0.224 * 255, 0.225 * 255]
"""

PIPELINE = """
@pipeline_def(batch_size=4, num_threads=2, device_id=0{options})
def {name}_pipeline({arguments}):
    jpegs, labels = fn.readers.file(file_root=dataset_dir, name="Reader"{reader})
    images = fn.decoders.{decode}(jpegs, device="mixed"{decoder})
{body}
    return {returned}

"""


def pipeline(
    *steps: str,
    name: str = "train",
    reader: str = ", random_shuffle=True",
    decode: str = "image",
    decoder: str = "",
    options: str = "",
    arguments: str = "",
    returned: str = "images, labels.gpu()",
) -> str:
    """The source of one `@pipeline_def` function, `<name>_pipeline`, written for the GPU."""
    body = "\n".join(f"    {line}" for step in steps for line in step.splitlines())
    return PIPELINE.format(
        name=name, reader=reader, decode=decode,
        decoder=decoder, options=options, arguments=arguments, returned=returned,
        body=body,
    )  # fmt: skip


def iterator(
    *steps: str,
    name: str = "train",
    iterate: str = 'reader_name="Reader", last_batch_policy=LastBatchPolicy.PARTIAL, auto_reset=True',
    **options: Any,
) -> str:
    """A pipeline in an iterator, in a variable `<name>_iter`."""
    made = f'{name}_iter = DALIGenericIterator({name}_pipeline(), ["data", "label"], {iterate})\n'
    return pipeline(*steps, name=name, **options) + made


def bare(*steps: str, name: str = "train", **options: Any) -> str:
    """A pipeline that is only built, in a variable `<name>_pipe`."""
    return pipeline(*steps, name=name, **options) + f"{name}_pipe = {name}_pipeline()\n"


class Workshop:
    """The child process and what it has answered so far."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="grader-workshop-")
        for number in range(10):
            folder = Path(self._folder.name) / f"class_{number % 2}"
            folder.mkdir(exist_ok=True)
            picture = np.full((48, 64, 3), 20 * number, dtype=np.uint8)
            Image.fromarray(picture).save(folder / f"{number}.jpg")
        self._child = Learner("graphs")
        self._known: dict[str, dict[str, Any]] = {}

    def close(self) -> None:
        """Ends the child."""
        self._child.close()
        self._folder.cleanup()

    def _run(self, source: str, *probes: str, **options: Any) -> dict[str, Any]:
        """What the child says of a submission of this text, behind the usual imports."""
        request = json.dumps([source, probes, options])
        if request not in self._known:
            text = START.format(folder=self._folder.name) + source
            found = self._child.run(text, *probes, **options)
            assert found["exception"] is None, found["exception"]
            self._known[request] = found
        return self._known[request]

    def result(self, source: str) -> Any:
        """The variable `result` that the source leaves behind."""
        return self._run(source, variable="result")["variable"]

    def evidence(self, source: str, check: Any, params: dict[str, Any] | None = None) -> Evidence:
        """What a run of this submission would hand to the judge of a check with these parameters."""
        probes = check.probes
        whole = {check.id: check.params_model.model_validate(params or {}).model_dump(mode="json")}
        asked = whole if set(NEED_PARAMS).intersection(probes) else {}
        found = self._run(source, *probes, params=asked, budget_s=BUDGET_S)
        return evidence_of(found["probes"], found["pipelines"])

    def judge(self, source: str, check: Any, **params: Any) -> Result:
        """The check's result on this submission."""
        return judged(check, self.evidence(source, check, params), **params)


NEED_PARAMS = ("torchvision_agreement",)
"""Probes whose observations depend on the lab's parameters."""


def evidence_of(answers: dict[str, dict[str, Any]], pipelines: list[dict[str, Any]]) -> Evidence:
    """Evidence with these probes' answers."""
    facts = tuple(PipelineFacts(**pipe) for pipe in pipelines)
    records = tuple(a_record(probe, **answer) for probe, answer in answers.items())
    return an_evidence(discovery=a_discovery(pipelines=facts, loaders=()), probes=records)


def judged_alone(check: Any, observation: dict[str, Any], **params: Any) -> Result:
    """The result on one probe's observations, of a submission with one pipeline."""
    answers = {check.probes[0]: {"observations": observation}}
    return judged(check, evidence_of(answers, [PIPELINE_FACTS]), **params)


PIPELINE_FACTS = {"name": "train_iter", "batch_size": 4, "num_threads": 2, "graph": 0}
