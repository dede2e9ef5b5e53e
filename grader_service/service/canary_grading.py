"""A submission of ours that a device grades as expected, or should not grade at all."""

import secrets
from pathlib import Path

from grader_service.errors import InfrastructureError, NotBegun
from grader_service.host.facts import Gpu
from grader_service.ingest.artifact import artifact_at
from grader_service.labs.specs import grader_lab
from grader_service.measure.measuring import measure
from grader_service.model.base import Device
from grader_service.model.evidence import Evidence, Need, RunTask
from grader_service.run.execution import execute
from grader_service.run.progress import Silent
from sandbox.api import SandboxRunner
from sandbox.run_folder import OwnedFolder

_IMAGES = 64
_SIDE = 128
_MOST_S = 120
# Sums of products of small whole numbers come out the same in any order and in any precision that a GPU works in.
SUBMISSION = f"""
from pathlib import Path

import numpy as np
import torch
from nvidia.dali import fn, pipeline_def, types
from nvidia.dali.plugin.pytorch import DALIGenericIterator
from PIL import Image

dataset_dir = Path("canary")
(dataset_dir / "ramps").mkdir(parents=True)
down, right = np.mgrid[0:{_SIDE}, 0:{_SIDE}]
for number in range({_IMAGES}):
    pixels = np.stack([down + number, right + number, (down + right) // 2 + number], axis=2).astype(np.uint8)
    Image.fromarray(pixels).save(dataset_dir / "ramps" / f"{{number:02d}}.jpg", quality=95, subsampling=0)


@pipeline_def(batch_size={_IMAGES}, num_threads=2, device_id=0)
def decoded():
    jpegs, labels = fn.readers.file(file_root=str(dataset_dir), name="Reader")
    return fn.decoders.image(jpegs, device="mixed", output_type=types.RGB), labels


batches = DALIGenericIterator(decoded(), ["data", "label"], reader_name="Reader")
first_batch = next(batches)[0]["data"]
files = sorted((dataset_dir / "ramps").iterdir())
images = torch.stack([torch.from_numpy(np.array(Image.open(file))) for file in files])
apart = (first_batch.cpu().float() - images.float()).abs().mean().item()
assert apart < 2, f"DALI's pixels lie {{apart:.2f}} from those of the CPU's decoder"

left, right = (torch.randint(0, 8, (2048, 2048)).float() for _ in range(2))
product = left @ right
for _ in range(8):
    assert torch.equal((left.cuda() @ right.cuda()).cpu(), product), "a product of matrices comes out wrong"
"""
"""Decodes on the GPU and computes there, and raises where the CPU comes to something else."""


def grade_canary(runner: SandboxRunner, device: Device, gpu: Gpu | None, state_dir: Path) -> None:
    """Executes the submission as any other one, its graph in the clean room included. Keeps nothing.

    Args:
        gpu: that pods have; None in a rehearsal.
        state_dir: where the submission lies meanwhile.

    Raises:
        InfrastructureError: something went wrong, or what came is not as expected.
    """
    lab = grader_lab()
    lab = lab.model_copy(update={"limits": lab.limits.model_copy(update={"learner_timeout_s": _MOST_S})})
    run_id = f"canary-{secrets.token_hex(8)}"
    folder = OwnedFolder(state_dir, run_id)
    try:
        folder.create()
        path = folder.root / "canary.py"
        path.write_text(SUBMISSION)
        task = RunTask(needs=(Need.DISCOVERY, Need.SCAN, Need.CLEAN_ROOM))
        sandbox = runner.of_image(lab.image)
        artifact = artifact_at(path)
        outcome = execute(artifact, lab, task, sandbox, device, Silent(), run_id=run_id, measure=measure, gpu=gpu)
    except OSError as error:
        raise NotBegun(f"no canary can be kept in {state_dir}: {error}") from error
    finally:
        folder.remove()
    problem = unexpected(outcome.evidence)
    if problem is not None:
        raise InfrastructureError(problem)


def unexpected(evidence: Evidence) -> str | None:
    """What in the evidence is not as it is where a GPU works; None where all is."""
    found, scan, room = evidence.discovery, evidence.scan, evidence.clean_room
    if found is None or found.ran != "completed":
        said = found.exception.message if found is not None and found.exception is not None else ""
        return f"the submission {'said nothing' if found is None else found.ran}: {said}"
    if scan is None or scan.distinct != _IMAGES:
        return f"expected {_IMAGES} images, the scanner counted {scan.distinct if scan else 'none'}"
    if room is None or room.problem is not None or room.batch is None:
        return f"the graph did not run in the clean room: {room.problem_text if room else 'nothing was heard of it'}"
    batch = room.batch
    if batch.device != evidence.run.device or not batch.finite or batch.constant:
        seen = f"{batch.low:g} to {batch.high:g} on {batch.device}"
        return f"expected pictures on {evidence.run.device}, the clean room drew {seen}"
    return None
