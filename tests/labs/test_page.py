"""`docs/labs.md` says what the models and the command say."""

import json
import re
from typing import get_args

from grader_service.labs.documents import Form
from grader_service.labs.mistakes import Code
from grader_service.labs.specs import read_lab
from grader_service.model.base import Wire
from grader_service.model.lab import LabCheck, LabSpec, LabStep, MeasurementPlan, Placement, PodLimits
from tests.labs.texts import inspected
from tests.levels.parts import ROOT

PAGE = (ROOT / "docs" / "labs.md").read_text()
TABLES = {
    "": LabSpec,
    "steps[].": LabStep,
    "steps[].checks[].": LabCheck,
    "placement.": Placement,
    "limits.": PodLimits,
    "measurement.": MeasurementPlan,
}


def blocks(language):
    """Fenced blocks of one language, in the order of the page."""
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)


def default_text(field):
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True)
    return "all defaults" if isinstance(value, Wire) else f"`{json.dumps(value)}`"


def test_every_field_stands_with_its_default():
    """The table has each field of the models, with the default that it has, and no other."""
    section = PAGE[PAGE.index("## Fields") : PAGE.index("### What learners read")]
    written = dict(re.findall(r"^\| `([a-z_\[\].]+)` \| ([^|]+) \|", section, re.MULTILINE))
    written = {name: default.strip() for name, default in written.items()}
    expected = {
        prefix + (field.alias or name): default_text(field)
        for prefix, model in TABLES.items()
        for name, field in model.model_fields.items()
    }
    assert written == expected


def test_the_small_lab_is_valid_in_both_languages():
    """What authors copy works, and both are the same lab."""
    small = inspected(blocks("toml")[0])
    assert small.lab is not None
    assert small.mistakes == ()
    assert inspected(blocks("yaml")[0], Form.YAML).lab == small.lab


def test_the_printed_mistakes_are_real():
    """The page shows what the command prints; the list of installed checks is cut."""
    wrong = blocks("toml")[1]
    printed = [mistake.text("lab.toml") for mistake in inspected(wrong).mistakes]
    cut = [re.sub(r"(Installed checks: ).*", r"\1…", line) for line in printed]
    assert cut == blocks("text")[0].splitlines()


def test_the_printed_hint_is_real():
    """The same file, mended."""
    mended = (
        blocks("toml")[1]
        .replace('"1.0"', '"1.0.0"')
        .replace("titel", "title")
        .replace("datasets", "dataset")
        .replace("points = 0", "points = 1")
        .replace('"many"', "16")
    )
    inspection = inspected(mended)
    lines = [mistake.text("lab.toml") for mistake in inspection.mistakes]
    assert lines == blocks("text")[1].splitlines()[:-1]
    assert read_lab(mended, "lab").version == "1.0.0"


def test_every_code_is_explained():
    """The table holds the codes that there are, and no other."""
    rows = re.findall(r"^\| (`.*?) \| ", PAGE[PAGE.index("| code |") :], re.MULTILINE)
    explained = re.findall(r"`([a-z_.]+)`", " ".join(rows))
    assert sorted(explained) == sorted(get_args(Code))
