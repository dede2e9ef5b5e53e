"""Whole gradings through real Docker: misbehaving submissions, notebooks, archives; the corpus has the rest."""

import io

import pytest
from PIL import Image

from grader_service.model.verdict import Outcome, Status
from tests.e2e.conftest import ENDINGS, EXAMPLES, check_of, judged_ending
from tests.ingest.packing import code_cell, notebook, zip_bytes

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("nothing_left")]


def test_a_submission_that_stops_half_way_keeps_what_it_reached(docker_runner, grade_with):
    """An exception after the pipeline costs the later steps only, and is quoted at the learner's line."""
    graded = grade_with(
        docker_runner, EXAMPLES / "failing" / "stops_half_way.py", ["baseline", "pipeline", "reflection"]
    )
    assert check_of(graded, "jpeg_dataset").outcome is Outcome.PASSED
    assert check_of(graded, "cuda_batch").outcome is Outcome.PASSED
    reflections = check_of(graded, "reflections")
    assert (reflections.outcome, reflections.code, reflections.score) == (Outcome.SKIPPED, "run.not_reached", 0.0)
    assert 'first_batch["label"]' in graded.verdict.run.traceback
    assert graded.verdict.status is Status.FAILED


@pytest.mark.parametrize(("code", "expected"), ENDINGS)
def test_a_pod_that_ends_without_a_word_is_never_a_pass(docker_runner, grade_with, code, expected):
    """However the code ends the process, the verdict says so, and everything is removed."""
    assert judged_ending(grade_with, docker_runner, code, expected).code == expected


def test_a_polite_endless_loop_is_stopped_at_its_line(docker_runner, grade_with):
    """The soft stop leaves the evidence of what ran before."""
    code = """
    dataset_dir = "nowhere"
    pytorch_throughput = 5.0
    n = 0
    while True:
        n += 1
    """
    graded = grade_with(docker_runner, code, ["baseline"], learner_timeout_s=2.0)
    result = check_of(graded, "jpeg_dataset")
    assert result.code == "jpeg.not_found"
    assert "was still running at submission.py, line" in graded.verdict.run.outcome


def test_a_notebook_runs_as_a_notebook(docker_runner, grade_with):
    """Magics, shell lines, stored outputs and a failing cell behave as documented; the line is the cell's."""
    cells = [
        "%matplotlib inline\n!echo hello\n%pip install something",
        "%%time\npytorch_throughput = 2.0",
        "dataset_dir = '/workspace/none'",
        "\n\nraise RuntimeError('stop here')",
        "where_dali_wins = ['never reached']",
    ]
    claim = {"output_type": "stream", "name": "stdout", "text": "where_dali_wins = 3"}
    stored = [code_cell(source, number, [claim]) | {"execution_count": 9} for number, source in enumerate(cells)]
    content = notebook(*stored, metadata={})
    graded = grade_with(docker_runner, content, ["baseline", "reflection"], filename="nb.ipynb")
    assert check_of(graded, "jpeg_dataset").code == "jpeg.not_found"
    assert check_of(graded, "reflections").code == "run.not_reached"
    assert "cell 4, line 3" in graded.verdict.run.outcome
    assert "stop here" in graded.verdict.run.outcome
    assert "hello" in graded.verdict.run.output_tail


def test_an_archive_brings_its_own_images(docker_runner, grade_with):
    """Files of the archive lie in the working directory; the entry point is found below one enclosing folder."""
    source = (
        "import helper\nfrom torch.utils.data import DataLoader\n"
        "dataset_dir = helper.ROOT\npytorch_throughput = 3\nloader = DataLoader([1, 2, 3])\n"
    )
    members = [("project/submission.py", source), ("project/helper.py", "ROOT = 'images'\n")]
    for i in range(101):
        data = io.BytesIO()
        Image.new("RGB", (40 + i, 40), (i, 2 * i % 256, 7)).save(data, "JPEG")
        members.append((f"project/images/ü {i}.JPG", data.getvalue()))
    members.append(("__MACOSX/project/._submission.py", b"\x00"))
    graded = grade_with(docker_runner, zip_bytes(members), ["baseline"], filename="work.zip")
    result = check_of(graded, "jpeg_dataset")
    assert result.outcome is Outcome.PASSED, result.feedback
    assert result.details["distinct"] == 101
