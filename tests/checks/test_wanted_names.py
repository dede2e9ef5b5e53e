"""What a lab's checks ask a submission to define."""

import pytest

from checks.registry import Registry
from checks.wanted_names import _BUILT_IN, ITERATOR, LOADER, wanted_names
from grader_service.errors import JudgeFailed
from grader_service.labs.catalogue import load_lab
from grader_service.labs.specs import lab_ids
from grader_service.model.lab import LabCheck, LabStep

REGISTRY = Registry()


def step(*checks):
    return LabStep(id="one", title="One", checks=checks)


def names(*steps):
    return {one.name: one for one in wanted_names(steps, REGISTRY)}


@pytest.mark.parametrize("lab_id", lab_ids())
def test_every_name_stands_in_the_labs_handout(lab_id):
    """What the checks ask for and what the course's text says are the same names."""
    lab = load_lab(lab_id, REGISTRY)
    for wanted in wanted_names(lab.steps, REGISTRY):
        assert wanted.any_name or f"`{wanted.name}`" in lab.handout, wanted.name


def test_the_lab_of_the_contract():
    """Its names in the order of its steps, with the lab's own figures; the claim that nothing needs is optional."""
    found = names(*load_lab("dali-pipelines", REGISTRY).steps)
    assert list(found) == [
        "dataset_dir", LOADER, "pytorch_throughput", ITERATOR, "first_batch", "dali_throughput",
        "where_dali_wins", "where_dali_loses",
    ]  # fmt: skip
    assert "at least 100" in found["dataset_dir"].holds
    assert found[LOADER].steps == ("baseline", "benchmark")
    assert [name for name, one in found.items() if one.optional] == ["dali_throughput"]


def test_parameters_decide():
    """Names that a lab chooses, and those that it does without."""
    data = LabCheck(id="jpeg_dataset", points=1, params={"min_images": 7, "baseline": False})
    table = LabCheck(id="placement_table", points=1, params={"name": "stages"})
    named = LabCheck(id="random_augmentation", points=1, params={"graph": "train_pipe"})
    losses = LabCheck(id="training_loop", points=1, params={"losses": ["history.loss", "val_losses"]})
    found = names(step(data, table, named, losses))
    assert list(found) == ["dataset_dir", "stages", "train_pipe", "history", "val_losses"]
    assert "at least 7" in found["dataset_dir"].holds


def test_advice_is_optional_until_a_check_needs_the_name():
    """And a hidden check gives nothing away."""
    advice = LabCheck(id="cuda_batch", points=0, optional=True)
    needed = LabCheck(id="throughput_ratio", points=1)
    found = names(step(advice, needed))
    assert (found["first_batch"].optional, found[ITERATOR].optional) == (True, False)
    hidden = LabCheck(id="cuda_batch", points=1, feedback="hidden")
    assert names(step(hidden)) == {}


def test_every_built_in_check_is_in_the_table():
    """But for DALI Proxy, whose parts no name and no type that is looked for tells."""
    ours = {one for one in REGISTRY.ids() if REGISTRY.origin(one).startswith("grader-service ")}
    assert ours - set(_BUILT_IN) == {"dali_proxy"}


SAYS = """
from checks.api import Check
from checks.cuda_batch.check import cuda_batch

class Says(Check):
    id, version, title = "says", "1.0.0", "Says"
    params_model, observation_model = cuda_batch.params_model, cuda_batch.observation_model
    observe, judge = cuda_batch.observe, cuda_batch.judge

    def names(self, params):
        return {answer}

CHECK = Says()
"""


def test_other_checks_say_it_themselves(tmp_path):
    """By an optional function of their parameters; one that fails is named."""
    good, bad = tmp_path / "good.py", tmp_path / "bad.py"
    good.write_text(SAYS.format(answer='{"curve": "a list"} if params.min_batch == 3 else {}'))
    bad.write_text(SAYS.format(answer="1 / 0"))
    check = LabCheck(id="says", points=1, params={"min_batch": 3})
    (wanted,) = wanted_names([step(check)], Registry(files=[good]))
    assert (wanted.name, wanted.holds, wanted.steps) == ("curve", "a list", ("one",))
    with pytest.raises(JudgeFailed, match=r"'says'.*ZeroDivisionError"):
        wanted_names([step(check)], Registry(files=[bad]))
    silent = REGISTRY.load("cuda_batch")
    assert silent.check.names(silent.parse_params({})) == {}
