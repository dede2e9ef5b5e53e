"""Datasets and readers over real files, the same ones and others."""

import pytest

from checks.same_data.check import same_data
from grader_service.model.verdict import Outcome, Tier
from tests.checks.claims.jpegs import READER, START
from tests.checks.judged import judged
from tests.factories import a_discovery, an_evidence

CHECK = same_data
FOLDER = "train_loader = DataLoader(ImageFolder(dataset_dir, transform), batch_size=8)\n"
DALI = READER + 'dali_iter = DALIGenericIterator(pipeline(dict(ARGS)), ["data", "label"], reader_name="Reader")\n'
PATHS = "import glob\npaths = sorted(glob.glob(dataset_dir + '/*/*.jpg'))\n"
RAISES = """pass
    def __getattribute__(self, name):
        if name == "__dict__":
            raise SystemExit
        return object.__getattribute__(self, name)
"""
OWN = """
class Pictures(Dataset):
    def __init__(self, paths):
        ATTRIBUTE
    def __len__(self):
        return 24
    def __getitem__(self, index):
        raise RuntimeError("not called")
"""


def dali(arguments):
    """A pipeline whose reader gets these arguments."""
    return DALI.replace("ARGS", arguments)


def own(attribute, made="Pictures(paths)"):
    """A dataset class of the learner's own that keeps its files in this attribute."""
    return PATHS + OWN.replace("ATTRIBUTE", attribute) + f"train_loader = DataLoader({made}, batch_size=8)\n"


ROOT = dali("file_root=dataset_dir")
COPY = "import shutil\nshutil.copytree(dataset_dir, 'copy')\n"
GOOD = {
    "folder and root": FOLDER + ROOT,
    "files": FOLDER + PATHS + dali("files=paths"),
    "files and labels": FOLDER + PATHS + dali("files=paths, labels=[int('dogs' in p) for p in paths]"),
    "file list": FOLDER + PATHS
    + "open('list.txt', 'w').writelines(f\"{p} {int('dogs' in p)}\\n\" for p in paths)\n"
    + dali("file_list='list.txt'"),
    "relative root": FOLDER.replace("dataset_dir", "'dataset'") + dali("file_root='./dataset/'"),
    "own dataset with paths": own("self.paths = paths") + ROOT,
    "own dataset with an odd name": own("self.wanted = [(p, 'dogs' in p) for p in paths]") + ROOT,
    "own dataset with Path objects": own("from pathlib import Path; self.files = [Path(p) for p in paths]") + ROOT,
    "own dataset with a root": own("self.root = paths", "Pictures(dataset_dir)") + ROOT,
    "subsets of everything": "whole = ImageFolder(dataset_dir, transform)\n"
    "train_loader = DataLoader(ConcatDataset([Subset(whole, range(12)), Subset(whole, range(12, 24))]), batch_size=8)\n"
    + ROOT,
    "a copy of the folder": COPY + FOLDER + dali("file_root='copy'"),
    "two shards, one per GPU": FOLDER + READER
    + "pipes = [pipeline(dict(file_root=dataset_dir, shard_id=n, num_shards=2)) for n in (0, 1)]\n"
    + "dali_iter = DALIGenericIterator(pipes,"
    " ['data', 'label'], reader_name='Reader')\n",
}  # fmt: skip
BAD = {
    "another folder": ("make('other', 100, 24)\n" + FOLDER + dali("file_root='other'"), "nothing_shared"),
    "fewer files": (FOLDER + PATHS + dali("files=paths[:10]"), "different_files"),
    "more files": (FOLDER + COPY + "make('copy', 100, 10)\n" + dali("file_root='copy'"), "different_files"),
    "a subset": (
        "train_loader = DataLoader(Subset(ImageFolder(dataset_dir, transform), range(8)), batch_size=8)\n" + ROOT,
        "different_files",
    ),
    "one class only": (FOLDER + dali("file_root=dataset_dir, dir_filters=['cats']"), "different_files"),
    "labels the other way round": (
        FOLDER + PATHS + dali("files=paths, labels=[int('cats' in p) for p in paths]"),
        "different_classes",
    ),
    "labels of another order": (
        FOLDER
        + PATHS
        + "open('list.txt', 'w').writelines(f'{p} 7\\n' for p in paths)\n"
        + dali("file_list='list.txt'"),
        "different_classes",
    ),
    "a shard of two": (FOLDER + dali("file_root=dataset_dir, num_shards=2"), "sharded"),
    "no loader": (ROOT, "no_loader"),
    "files in memory": (own("self.pictures = [open(p, 'rb').read() for p in paths]") + ROOT, "unknown_dataset"),
    "a dataset that raises": (own(RAISES) + ROOT, "unknown_dataset"),
    "an external source": (
        FOLDER + "@pipeline_def(batch_size=2, num_threads=1, device_id=0)\ndef p():\n"
        "    return fn.external_source(lambda: [np.zeros(3)] * 2)\ndali_pipe = p()\n",
        "unknown_reader",
    ),
}  # fmt: skip
GOOD = {name: START + source for name, source in GOOD.items()}
BAD = {name: (START + source, code) for name, (source, code) in BAD.items()}


@pytest.mark.parametrize("name", GOOD)
def test_the_same_files_pass_however_they_are_named(evidence, name):
    """Roots, lists, subsets and copies are the same data."""
    result = judged(CHECK, evidence[name], classes=name != "files")
    assert (result.code, result.tier) == ("data.ok", Tier.CLAIMS), result.feedback


@pytest.mark.parametrize("name", BAD)
def test_other_files_and_classes_do_not(evidence, name):
    """Other, fewer and more files, other classes and shards are told apart."""
    result = judged(CHECK, evidence[name])
    assert result.code == f"data.{BAD[name][1]}", result.feedback
    assert result.outcome is (Outcome.UNVERIFIED if "unknown" in result.code else Outcome.FAILED)


def test_the_feedback_shows_files_of_one_side_only(evidence):
    """A learner sees counts and examples; the score is the share that both read."""
    result = judged(CHECK, evidence["fewer files"])
    assert "They read 24 files below " in result.parts.seen
    assert "/dataset/cats; 10 are the same." in result.parts.seen
    assert "only the DataLoader reads dataset/" in result.parts.seen
    assert result.score == pytest.approx(10 / 24)
    assert judged(CHECK, evidence["fewer files"], min_overlap=0.4, classes=False).outcome is Outcome.PASSED


def test_files_listed_without_labels_have_other_classes(evidence):
    """DALI numbers files that are listed without labels; that is not their class."""
    result = judged(CHECK, evidence["files"])
    assert result.code == "data.different_classes"
    assert result.parts.next is not None
    assert "labels=labels" in result.parts.next.code


def test_other_folders_are_named(evidence):
    """Where no file is shared, the folders say more than examples."""
    result = judged(CHECK, evidence["another folder"])
    assert "/dataset and 24 below " in result.parts.seen
    assert "/other; 0 are the same." in result.parts.seen
    assert "For example" not in result.parts.seen


@pytest.mark.parametrize(
    ("reader", "root"),
    [
        ("file_root=dataset_dir", "dataset"),
        ("file_root='./dataset/../dataset'", "dataset"),
        ("files=paths", ""),
        ("file_root=dataset_dir, dir_filters=['cats']", ""),
        ("file_root=dataset_dir, files=['cats/000.jpg']", ""),
    ],
)
def test_a_run_itself_knows_folders_and_the_policy(learner, reader, root):
    """Of the data set its root, of a pipeline the folder that its reader reads whole, without any probe."""
    answer = learner.run(START + FOLDER + PATHS + dali(reader))
    assert answer["exception"] is None
    (loader,), (pipeline,) = answer["loaders"], answer["pipelines"]
    assert loader["dataset_root"].endswith("/dataset")
    assert pipeline["reader_root"] == (loader["dataset_root"] if root else "")
    assert pipeline["last_batch"] == "FILL"


def test_a_data_set_without_a_folder_and_a_bare_pipeline_say_nothing(learner):
    """What is not there is empty."""
    bare = READER + "pipe = pipeline(dict(file_root=dataset_dir))\n"
    answer = learner.run(START + own("self.root = 5") + bare)
    assert answer["exception"] is None
    assert answer["loaders"][0]["dataset_root"] == ""
    assert answer["pipelines"][0].get("last_batch", "") == ""


def test_a_stopped_run_is_not_reached():
    """What stopped the code is told once, in the verdict's `run`."""
    stopped = a_discovery(ran="raised", loaders=(), pipelines=())
    result = judged(CHECK, an_evidence(discovery=stopped))
    assert (result.outcome, result.code, result.score) == (Outcome.SKIPPED, "run.not_reached", 0.0)
