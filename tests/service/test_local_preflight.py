"""Preflights: what is told of evidence, and what a run for one collects."""

import contextlib

import pytest

from checks.registry import Registry
from checks.wanted_names import ITERATOR, LOADER
from grader_service.errors import SandboxUnavailable, SubmissionRejected
from grader_service.ingest.artifact import artifact_at
from grader_service.judging.preflighting import preflight_needs, preflight_of
from grader_service.labs.catalogue import load_lab
from grader_service.model.discovery import Claim, FirstBatch, LearnerException, NameFacts, PathClaim, TextList
from grader_service.model.evidence import CleanRoom, Ending, Need, PodRole
from grader_service.model.place import Place
from grader_service.model.preflight import NamePart, Preflight, Presence
from grader_service.run import execution as run
from grader_service.run.pod_set import PodSet
from grader_service.run.progress import Silent
from grader_service.service.local import preflight
from tests.factories import WINS, a_batch, a_clean_room, a_discovery, a_pipeline, a_run, a_scan, an_evidence, ended

REGISTRY = Registry()
LAB = load_lab("dali-pipelines", REGISTRY)
TRAINING = load_lab("dali-classification-training", REGISTRY)
ROOM = a_clean_room(batch=a_batch(device="cpu"))
"""As a rehearsal finds it: the graph says `gpu`, and is run on the CPU."""


def told(lab=LAB, **changes):
    """The preflight of such evidence."""
    values = {"run": a_run(device="cpu"), "clean_room": ROOM, "measurement": None}
    return preflight_of(an_evidence(**values | changes), lab, lab.steps, REGISTRY)


def name(found, wanted):
    """What is told of one name."""
    (part,) = [part for part in found.names if part.wanted.name == wanted]
    return part


def states(found):
    """Of all parts that are not as they should be: what it is, and its state."""
    bad = [part for part in found.parts if part.state is not Presence.OK]
    return {part.wanted.name if isinstance(part, NamePart) else type(part).__name__: part.state for part in bad}


def test_nothing_is_missing():
    """Every part is there, and says what was seen."""
    found = told()
    assert found.ready is True
    assert states(found) == {}
    assert (found.data.images, found.data.needed) == (160, 100)
    assert (found.graph.carried, found.graph.pipeline) == (True, "dali_iter")
    assert "fn.decoders.image (mixed)" in found.graph.told.seen
    assert found.batch.facts.shape == (32, 3, 224, 224)
    assert [(one.name, one.counted, one.needed) for one in found.lists] == [
        ("where_dali_wins", 3, 3), ("where_dali_loses", 2, 2),
    ]  # fmt: skip
    assert found.text == "Nothing is missing. Nothing was measured or graded."
    assert Preflight.model_validate_json(found.model_dump_json()) == found


def test_it_needs_no_measurement():
    """But for that, what the steps ask for; a lab of lists needs no DALI."""
    assert preflight_needs(LAB.steps, REGISTRY) == {Need.DISCOVERY, Need.SCAN, Need.CLEAN_ROOM}
    assert preflight_needs(LAB.selected(("reflection",)), REGISTRY) == {Need.DISCOVERY}


def test_near_misses_are_named_with_the_line_to_add():
    """A folder of JPEGs and a batch under other names."""
    near = (NameFacts(name="batch0", kind="batch", count=32), NameFacts(name="data_root", kind="folder", count=128))
    discovery = a_discovery(
        dataset_dir=PathClaim(status="missing"), first_batch=FirstBatch(status="missing"), names=near
    )
    found = told(discovery=discovery, scan=None)
    assert found.ready is False
    assert states(found) == {"dataset_dir": Presence.MISSING, "first_batch": Presence.MISSING}
    folder = name(found, "dataset_dir").told
    assert "`data_root`, a folder with 128 JPEG files" in folder.seen
    assert folder.next.code == "dataset_dir = data_root"
    assert name(found, "first_batch").told.next.code == "first_batch = batch0"
    assert found.data is None, "what is said of the name is not said again"
    assert found.batch.state is Presence.OK, "the batch is looked at all the same"


def test_names_of_other_checks_are_found_by_their_spelling():
    """Whatever they hold; advice makes nobody unready."""
    found = told(lab=TRAINING, discovery=a_discovery(defined=("acceptance_metrics", "placement", "model")))
    assert name(found, "placement").state is Presence.OK
    near = name(found, "acceptance_metric")
    assert near.state is Presence.MISSING
    assert near.told.next.code == "acceptance_metric = acceptance_metrics"
    assert name(found, "build_rank_iterator").state is Presence.MISSING
    assert found.ready is False
    assert told(lab=TRAINING, discovery=a_discovery(defined=("acceptance_metric", "placement"))).ready is True


def test_what_holds_something_else_is_wrong():
    """A rate that is none, and a path that is none."""
    discovery = a_discovery(
        pytorch_throughput=Claim(status="unreadable", shown="a dict"),
        dataset_dir=PathClaim(status="unreadable", shown="5"),
    )
    found = told(discovery=discovery, scan=None)
    assert states(found) == {"pytorch_throughput": Presence.WRONG, "dataset_dir": Presence.WRONG}
    assert name(found, "pytorch_throughput").told.outcome == "`pytorch_throughput` holds a dict."
    zero = told(discovery=a_discovery(pytorch_throughput=Claim(status="present", value=0.0, shown="0.0")))
    assert states(zero) == {"pytorch_throughput": Presence.WRONG}


def test_without_loader_and_iterator():
    """Both are looked for by their types; factories are as good."""
    none = a_discovery(loaders=(), pipelines=())
    found = told(discovery=none, clean_room=CleanRoom(pipeline="", problem="no_pipeline", problem_text="None."))
    assert states(found) == {LOADER: Presence.MISSING, ITERATOR: Presence.MISSING}
    assert found.graph is None, "what is said of the iterator is not said again"
    made = none.model_copy(update={"factories": ("build_pytorch_loader", "build_dali_iterator")})
    room = CleanRoom(pipeline="", problem="no_pipeline", problem_text="None.")
    assert LOADER not in states(told(discovery=made, clean_room=room))


def test_too_few_images_and_a_small_batch():
    """In the words of the checks themselves."""
    small = a_clean_room(batch=a_batch(device="cpu", shape=(8, 3, 224, 224)))
    found = told(scan=a_scan(distinct=90), clean_room=small)
    assert (found.data.state, found.batch.state, found.ready) == (Presence.WRONG, Presence.WRONG, False)
    assert "10 too few" in found.data.told.outcome
    assert "holds 8 images" in found.batch.told.outcome


@pytest.mark.parametrize(
    ("problem", "factories", "state", "ready"),
    [
        ("not_serializable", (), Presence.WRONG, False),
        ("not_serializable", ("build_dali_iterator",), Presence.OK, True),
        ("no_image_output", ("build_dali_iterator",), Presence.WRONG, False),
        ("needs_gpu", (), Presence.NOT_REACHED, None),
    ],
)
def test_a_graph_that_was_not_carried(problem, factories, state, ready):
    """Is wrong, but where the learner's own function is measured in its place, or only a GPU could tell."""
    room = CleanRoom(pipeline="dali_iter", problem=problem, problem_text="Because.")
    found = told(clean_room=room, discovery=a_discovery(factories=factories))
    assert (found.graph.state, found.graph.carried, found.graph.problem, found.ready) == (state, False, problem, ready)
    assert found.batch is None
    assert "Because." in found.graph.told.text


def test_lists_are_counted_by_their_form():
    """And what they say is not judged."""
    found = told(discovery=a_discovery(where_dali_wins=TextList(status="present", items=("TODO", WINS[0]))))
    wins = found.lists[0]
    assert (wins.entries, wins.counted, wins.needed, wins.state) == (2, 1, 3, Presence.WRONG)
    assert wins.told.next.text.startswith("Write 2 more")
    assert [one.code for one in wins.told.advice] == ["advice.entry_unfilled"]
    idle = told(discovery=a_discovery(where_dali_wins=TextList(status="present", items=("The sun rises again.",))))
    assert idle.lists[0].counted == 1


def test_a_run_that_stopped_is_told_once():
    """What was not reached says nothing of its own, and what was is told all the same."""
    error = LearnerException(type="NameError", message="name 'x' is not defined", place=Place(file="s.py", line=3))
    stopped = a_discovery(
        ran="raised", exception=error, first_batch=FirstBatch(status="missing"), pipelines=(), loaders=()
    )
    found = told(discovery=stopped, clean_room=CleanRoom(pipeline="", problem="no_pipeline", problem_text="None."))
    assert found.ready is False
    assert set(states(found).values()) == {Presence.NOT_REACHED}
    assert found.data.state is Presence.OK
    assert found.text.count("s.py, line 3") == 1
    assert "first_batch" not in found.text


def test_a_killed_run_and_one_that_needs_a_gpu():
    """Of the first nothing is known; the second may be right."""
    found = preflight_of(ended(Ending.OUT_OF_MEMORY), LAB, LAB.steps, REGISTRY)
    assert (found.ready, found.run.code) == (False, "run.out_of_memory")
    assert {part.state for part in found.parts} == {Presence.NOT_REACHED}
    error = LearnerException(type="RuntimeError", message="Found no NVIDIA driver", place=Place(file="s.py", line=3))
    needs = a_discovery(ran="raised", exception=error, needs_gpu="Found no NVIDIA driver", pipelines=(a_pipeline(),))
    assert told(discovery=needs).ready is None


def test_hidden_checks_are_not_told():
    """Nor their names."""
    steps = tuple(
        step.model_copy(update={"checks": tuple(c.model_copy(update={"feedback": "hidden"}) for c in step.checks)})
        for step in LAB.steps
    )
    found = preflight_of(an_evidence(measurement=None), LAB, steps, REGISTRY)
    assert (found.names, found.data, found.batch, found.lists) == ((), None, None, ())


SMALL = """
from pathlib import Path
import numpy as np
from PIL import Image

data_root = Path("photos")
data_root.mkdir()
for number in range(3):
    Image.fromarray(np.full((64, 64, 3), 60 * number, np.uint8)).save(data_root / f"{number}.jpg")
dataset_dir = data_root
pytorch_throughput = 12.5
print("done")
"""


class Started:
    """What runs of the process runner started: pods in their order, and folders; how many asked for quiet."""

    def __init__(self):
        self.pods, self.folders, self.quiet = [], [], 0

    @contextlib.contextmanager
    def asked(self):
        self.quiet += 1
        yield

    def roles(self, *, alive=False):
        return [pod.spec.role for pod in self.pods if not alive or pod.alive()]

    def nothing_left(self):
        """Whether all pods and folders are gone."""
        return not self.roles(alive=True) and not any(folder.exists() for folder in self.folders)


@pytest.fixture
def started(process_runner, monkeypatch):
    """Watches what runs start."""
    found = Started()
    opened = type(process_runner).open_run

    def watched(self, run_id, limits):
        space = opened(self, run_id, limits)
        start = space.start
        space.start = lambda spec: found.pods.append(start(spec)) or found.pods[-1]
        space.quiet = found.asked
        found.folders.append(space.submission_dir.parent)
        return space

    monkeypatch.setattr(type(process_runner), "open_run", watched)
    return found


def sent(folder, text, filename="submission.py"):
    """A submission of these bytes."""
    path = folder / filename
    path.write_text(text)
    return artifact_at(path)


def test_a_run_looks_and_measures_nothing(process_runner, tmp_path, started):
    """Three pods, few images, no reference, and no code of the learner's but the submission itself."""
    found = preflight(sent(tmp_path, SMALL), LAB, REGISTRY, process_runner, Silent())
    assert sorted(started.roles()) == sorted([PodRole.LEARNER, PodRole.SCANNER, PodRole.CLEAN_ROOM])
    assert "measure" not in found.timings_s
    assert (found.data.images, found.data.state) == (3, Presence.WRONG)
    assert name(found, "dataset_dir").state is Presence.OK
    assert name(found, "where_dali_wins").state is Presence.MISSING
    assert (found.run.state, found.isolated, found.ready) == ("completed", False, False)
    assert started.nothing_left()


def test_no_more_images_are_counted_than_the_lab_asks_for(process_runner, tmp_path):
    """A folder of thousands takes no longer than a small one; the answer says that there may be more."""
    steps = tuple(
        step.model_copy(
            update={"checks": tuple(check.model_copy(update={"params": {"min_images": 2}}) for check in step.checks)}
        )
        for step in LAB.steps
        if step.id == "baseline"
    )
    lab = LAB.model_copy(update={"steps": steps})
    found = preflight(sent(tmp_path, SMALL), lab, REGISTRY, process_runner, Silent())
    assert (found.data.images, found.data.needed, found.data.state) == (2, 2, Presence.OK)
    assert "2 or more" in found.data.told.text


def test_the_answer_does_not_wait_for_pods_to_end(process_runner, tmp_path, started):
    """They end when whoever asked has it."""
    with contextlib.ExitStack() as afterwards:
        found = preflight(sent(tmp_path, SMALL), LAB, REGISTRY, process_runner, Silent(), afterwards)
        assert found.data.images == 3
        assert PodRole.LEARNER in started.roles(alive=True)
    assert started.nothing_left()


def test_a_submission_that_cannot_be_opened_leaves_nothing(process_runner, tmp_path, started):
    """The learner's pod is started while it is unpacked; the others are not."""
    artifact = sent(tmp_path, "no notebook", "submission.ipynb")
    with contextlib.ExitStack() as afterwards, pytest.raises(SubmissionRejected, match="not valid JSON"):
        preflight(artifact, LAB, REGISTRY, process_runner, Silent(), afterwards)
    assert started.roles() == [PodRole.LEARNER]
    assert started.nothing_left()


def test_a_pod_of_ours_that_does_not_start(process_runner, tmp_path, started, monkeypatch):
    """It is our failure, also where the learner's code runs already, and nothing of either is left."""

    def none(self):
        raise SandboxUnavailable("no room for another pod")

    monkeypatch.setattr(PodSet, "start_others", none)
    with pytest.raises(SandboxUnavailable, match="no room"):
        preflight(sent(tmp_path, SMALL), LAB, REGISTRY, process_runner, Silent())
    assert started.nothing_left()


def test_a_process_that_ends_is_told_with_its_status(process_runner, tmp_path, started):
    """How the learner's pod ended is part of that answer, so that it waits for the end."""
    with contextlib.ExitStack() as afterwards:
        artifact = sent(tmp_path, "import os\nos._exit(7)\n")
        found = preflight(artifact, LAB, REGISTRY, process_runner, Silent(), afterwards)
        assert not started.roles(alive=True)
    assert "exit status 7" in found.run.outcome
    assert found.ready is False


@pytest.mark.parametrize(("cpus", "quiet"), [((0, 1), 1), (range(16), 0)])
def test_beside_it_nothing_is_prepared_where_processors_are_few(
    process_runner, tmp_path, started, monkeypatch, cpus, quiet
):
    """A host of many has some to spare, and the next preflight would miss what was not prepared."""
    monkeypatch.setattr(run, "usable_cpus", lambda _: cpus)
    preflight(sent(tmp_path, "x = 1\n"), LAB, REGISTRY, process_runner, Silent())
    assert started.quiet == quiet


@pytest.mark.slow
def test_the_reference_is_ready(process_runner):
    """Its graph is carried, and its first batch drawn from 32 images of ours."""
    from tests.e2e.conftest import EXAMPLES

    found = preflight(artifact_at(EXAMPLES / "reference_submission.ipynb"), LAB, REGISTRY, process_runner, Silent())
    assert found.ready is True, found.text
    assert found.graph.carried
    assert found.batch.facts.declared_device == "gpu"
    assert (found.data.state, found.data.images) == (Presence.OK, 100)
    assert "100 or more" in found.data.told.text
