"""Probes in real pods: what they see, and that one which hangs, dies or lies costs nothing but itself."""

import textwrap
import uuid

import pytest

from grader_service.ingest.artifact import artifact_at
from grader_service.labs.specs import lab_text, read_lab
from grader_service.measure.measuring import measure
from grader_service.model.evidence import Need, PodRole, ProbeRef, ProbeSite, ProbeTask, RunTask
from grader_service.run import probing
from grader_service.run.execution import execute
from grader_service.run.progress import Silent

pytestmark = pytest.mark.integration

SUBMISSION = """
import os
import numpy as np
from PIL import Image
from nvidia.dali import fn, pipeline_def, types
from nvidia.dali.plugin.pytorch import DALIGenericIterator

dataset_dir = "dataset"
os.makedirs("dataset/a")
for number in range(20):
    Image.fromarray(np.full((60, 80, 3), number, np.uint8)).save(f"dataset/a/{number}.jpg")


@pipeline_def(batch_size=4, num_threads=2, device_id=0, seed=7)
def training():
    jpegs, labels = fn.readers.file(file_root=dataset_dir, name="Reader", random_shuffle=True, pad_last_batch=True)
    images = fn.decoders.image(jpegs, device="mixed")
    images = fn.resize(images, size=(32, 48))
    images = fn.crop_mirror_normalize(images, std=[255.0] * 3, output_layout="CHW")
    return images, labels.gpu()


dali_iter = DALIGenericIterator(training(), ["data", "label"], reader_name="Reader")
hostile = type("Hostile", (), {"__str__": lambda self: 1 / 0})()
"""

READER = next(line.strip() for line in SUBMISSION.splitlines() if "fn.readers.file" in line)

COLOURS = """
def probe(context):
    import numpy as np

    files = context.write_jpegs([np.full((64, 64, 3), c, np.uint8) for c in [(255, 0, 0), (0, 255, 0), (0, 0, 255)]])
    run = context.graph.run(files, [10, 11, 12], batches=2, batch_size=3, random_shuffle=False)
    means = [sample.mean(axis=(1, 2)) for sample in run.output(0)[:3]]
    return {
        "means": means,
        "labels": [int(label[0]) for label in run.output(1)],
        "layouts": run.layouts,
        "devices": run.devices,
        "readers": context.graph.readers,
        "decoder": next(o for o in context.graph.operators if o["name"].startswith("decoders"))["device"],
        "line": next(o for o in context.graph.operators if o["name"].startswith("decoders"))["line"],
        "params": context.params,
        "batch_size": context.graph.batch_size,
        "device": context.device,
    }
"""
NAMESPACE = """
def probe(context):
    return {
        "iterators": [name for name, _ in context.iterators],
        "loaders": [name for name, _ in context.loaders],
        "hostile": context.text(context.names["hostile"]),
        "dataset_dir": context.dataset_dir is not None,
        "left": context.remaining_s > 0,
        "factory": context.factory("training") is not None,
    }
"""
TOO_LARGE_CROP = """
def probe(context):
    import numpy as np

    broken = context.folder + "/broken.jpg"
    with open(broken, "wb") as file:
        file.write(b"no image")
    return {"batches": len(context.graph.run([broken], batches=1).batches)}
"""
RAISES = "def probe(context):\n    raise KeyError('mine')\n"
SET = "def probe(context):\n    return {'found': {1, 2}}\n"
LARGE = "def probe(context):\n    return {'found': 'x' * 300_000}\n"
SLOW = "import time\n\n\ndef probe(context):\n    time.sleep(60)\n"
STUBBORN = """
import time


def probe(context):
    while True:
        try:
            time.sleep(60)
        except BaseException:
            pass
"""
DIES = "import os\n\n\ndef probe(context):\n    os._exit(9)\n"
LIES = """
import sys


def probe(context):
    # As a learner's code could have done before.
    next(m for n, m in sys.modules.items() if n.endswith(".probes.running")).MAX_BYTES = 1 << 30
    return {"padding": "x" * 400_000}
"""


def task(name, source, site=ProbeSite.GRAPH, budget_s=20.0, **params):
    ref = ProbeRef(id=name, version="1.0.0", site=site, sha256="0" * 64, budget_s=budget_s, params=params)
    return ProbeTask(ref, textwrap.dedent(source).encode())


@pytest.fixture
def probed(forked_runner, tmp_path):
    """`probed(tasks, code)` → evidence of a rehearsal in the process sandbox."""
    return lambda tasks, code=SUBMISSION: run_in(forked_runner, tmp_path, tasks, code)


def run_in(runner, tmp_path, tasks, code=SUBMISSION):
    path = tmp_path / "submission.py"
    path.write_text(code)
    lab = read_lab(lab_text("dali-pipelines"), "lab")
    plan, options = RunTask(needs=(Need.DISCOVERY,)), {"run_id": uuid.uuid4().hex, "measure": measure, "probes": tasks}
    outcome = execute(artifact_at(path), lab, plan, runner, "cpu", Silent(), **options)
    assert outcome.evidence.discovery.ran == "completed", outcome.evidence.discovery.exception
    return outcome.evidence


def statuses(evidence):
    """What became of each probe."""
    return {record.id: record.status for record in evidence.probes}


def test_probes_see_graphs_and_namespaces_and_fail_alone(probed, monkeypatch):
    """Each failure has its own word, and the probes after it run all the same."""
    monkeypatch.setattr(probing, "GRACE_S", 8.0)
    tried = [
        (task("raises", RAISES), "raised"),
        (task("colours", COLOURS, some_check={"k": 3}), "ok"),
        (task("broken_file", TOO_LARGE_CROP), "graph_failed"),
        (task("set", SET), "unreadable"),
        (task("large", LARGE), "unreadable"),
        (task("slow", SLOW, budget_s=0.5), "timed_out"),
        (task("stubborn", STUBBORN, budget_s=0.5), "timed_out"),
        (task("after_stubborn", COLOURS), "ok"),
        (task("dies", DIES), "pod_ended"),
        (task("after_death", COLOURS), "ok"),
        (task("slow_there", SLOW, ProbeSite.LEARNER, budget_s=0.5), "timed_out"),
        (task("namespace", NAMESPACE, ProbeSite.LEARNER), "ok"),
        (task("raises_there", RAISES, ProbeSite.LEARNER), "raised"),
        (task("lies_there", LIES, ProbeSite.LEARNER), "unreadable"),
    ]
    evidence = probed([one for one, _ in tried])
    assert statuses(evidence) == {one.ref.id: status for one, status in tried}
    seen = evidence.probe("colours").observations
    for channel, mean in enumerate(seen["means"]):
        assert mean[channel] == pytest.approx(1.0, abs=0.02)
        assert sum(mean) == pytest.approx(1.0, abs=0.04)
    assert seen["labels"] == [10, 11, 12] * 2
    assert (seen["layouts"], seen["devices"]) == (["CHW", ""], ["gpu", "gpu"])
    assert seen["readers"] == [
        {"operator": "readers__File", "name": "Reader", "pad_last_batch": True, "random_shuffle": True}
    ]
    assert (seen["decoder"], seen["batch_size"], seen["device"]) == ("mixed", 4, "cpu")
    assert SUBMISSION.splitlines()[seen["line"] - 1].strip().startswith("images = fn.decoders.image")
    assert seen["params"] == {"some_check": {"k": 3}}
    named = evidence.probe("namespace").observations
    assert named["iterators"] == ["dali_iter"]
    assert (named["dataset_dir"], named["left"], named["factory"]) == (True, True, True)
    assert named["hostile"] == "<Hostile whose str() raised ZeroDivisionError>"
    rooms = [pod.role for pod in evidence.run.pods].count(PodRole.PROBE_ROOM)
    assert rooms == 4  # those of the slow, the stubborn and the dead one were replaced
    assert "'mine'" in evidence.probe("raises").text
    for name in ("raises", "raises_there"):
        assert f'File "<probe {name}>", line 2, in probe\n    raise KeyError' in evidence.probe(name).traceback
    assert {record.id for record in evidence.probes if record.traceback} == {"raises", "raises_there"}


def test_without_a_graph_no_pod_is_asked(probed):
    """A graph that cannot be carried, and none at all, are said in words for the learner."""
    external = SUBMISSION.replace(
        READER,
        "jpegs = fn.external_source(source=FEED, batch=True, dtype=types.UINT8); labels = jpegs.shape()",
    ).replace("dali_iter = DALIGenericIterator", "FEED = lambda: None\ndali_iter = lambda *a, **k: training() # ")
    evidence = probed([task("colours", COLOURS)], external + "\nfound = training()\n")
    record = evidence.probe("colours")
    assert record.status == "no_graph"
    assert "external" in record.text.lower()
    nothing = probed(
        [task("colours", COLOURS), task("namespace", "def probe(c):\n    return {}", ProbeSite.LEARNER)], "x = 1"
    )
    assert nothing.probe("colours").status == "no_graph"
    assert nothing.probe("namespace").status == "ok"


@pytest.mark.slow
def test_probes_run_in_docker_pods(docker_runner, tmp_path, nothing_left):
    """The same in containers without network and with a read-only root."""
    tasks = [
        task("colours", COLOURS),
        task("namespace", NAMESPACE, ProbeSite.LEARNER),
        task("slow", SLOW, budget_s=0.5),
    ]
    evidence = run_in(docker_runner, tmp_path, tasks)
    assert statuses(evidence) == {"colours": "ok", "namespace": "ok", "slow": "timed_out"}
