"""Styles of pipelines, found in code that really ran."""

import pytest

from checks.legacy_pipeline.check import legacy_pipeline
from grader_service.model.verdict import Outcome, Tier
from tests.checks.brief import assert_brief
from tests.checks.figures import figures
from tests.checks.judged import judged
from tests.factories import a_discovery

CHECK = legacy_pipeline
IMPORTS = "from nvidia.dali import fn, ops, pipeline_def, types\nfrom nvidia.dali.pipeline import Pipeline\n"
OLD = """
class SimplePipeline(Pipeline):
    def __init__(self, batch_size, num_threads, device_id):
        super().__init__(batch_size, num_threads, device_id)
        self.input = ops.readers.File(file_root="data")
        self.decode = ops.decoders.Image(device="mixed")

    def define_graph(self):
        jpegs, labels = self.input()
        return self.decode(jpegs), labels
"""
NEW = """
@pipeline_def(batch_size=4, num_threads=1, device_id=0)
def train_pipeline(root):
    jpegs, labels = fn.readers.file(file_root=root)
    return fn.decoders.image(jpegs, device="mixed"), labels
"""
MODERN = {
    "decorated": IMPORTS + NEW,
    "built": IMPORTS + NEW + "pipe = train_pipeline('.')\n",
    "without brackets": IMPORTS + "@pipeline_def\ndef p():\n    return fn.readers.file(file_root='.')\n",
    "context manager": IMPORTS
    + "pipe = Pipeline(4, 1, 0)\nwith pipe:\n    pipe.set_outputs(*fn.readers.file(file_root='.'))\n",
    "made by a function": IMPORTS + "def make():\n    @pipeline_def(batch_size=2, num_threads=1, device_id=0)\n"
    "    def inner():\n        return fn.readers.file(file_root='.')\n    return inner()\n",
    "a class that is no pipeline": IMPORTS + NEW + "class Trainer:\n    def define_graph(self):\n        return 1\n",
    "whole module": "import nvidia.dali as dali\n@dali.pipeline_def(batch_size=2)\ndef p():\n"
    "    return dali.fn.readers.file(file_root='.')\n",
    "cells": [IMPORTS, NEW, "pipe = train_pipeline('.')"],
    "a variable called ops": IMPORTS.replace("ops, ", "")
    + "class Ops:\n    File = dict\nops = Ops()\nops.File()\n"
    + NEW,
}
LEGACY = {
    "the old blog's class": IMPORTS + OLD,
    "built": IMPORTS + OLD + "pipe = SimplePipeline(4, 1, 0)\n",
    "derived twice": IMPORTS + OLD + "class Mine(SimplePipeline):\n    pass\n",
    "fn inside define_graph": IMPORTS
    + "class P(Pipeline):\n    def define_graph(self):\n        return fn.readers.file(file_root='.')\n",
    "cells": [IMPORTS, OLD, "pipe = SimplePipeline(4, 1, 0)"],
    "both styles": IMPORTS + OLD + NEW,
    "another name for ops": IMPORTS.replace("ops,", "ops as o,") + OLD.replace("ops.", "o."),
    "qualified base": "import nvidia.dali.pipeline\nimport nvidia.dali.ops as ops\n"
    + OLD.replace("(Pipeline)", "(nvidia.dali.pipeline.Pipeline)"),
}
OPERATORS_ONLY = (
    IMPORTS
    + "pipe = Pipeline(4, 1, 0)\nwith pipe:\n    reader = ops.readers.File(file_root='.')\n"
    + "    pipe.set_outputs(*reader())\n"
)


@pytest.fixture(scope="module")
def evidence(learner):
    """Evidence of every control, by name."""
    sources = {**{f"modern {name}": text for name, text in MODERN.items()}, "operators": OPERATORS_ONLY}
    sources |= {f"legacy {name}": text for name, text in LEGACY.items()}
    return {name: learner.evidence(source, "legacy_pipeline") for name, source in sources.items()}


@pytest.mark.parametrize("name", MODERN)
def test_modern_pipelines_pass_and_are_not_taken_for_legacy_ones(evidence, name):
    """A function under @pipeline_def is modern, however it is written."""
    seen = evidence[f"modern {name}"]
    assert (judged(CHECK, seen).code, judged(CHECK, seen).tier) == ("style.ok", Tier.CLAIMS)
    old = judged(CHECK, seen, style="legacy")
    assert old.code == "style.no_legacy_class"
    assert_brief(old)


@pytest.mark.parametrize("name", LEGACY)
def test_classes_with_define_graph_are_found(evidence, name):
    """A class is old style, and passes only where the lab asks for that."""
    seen = evidence[f"legacy {name}"]
    result = judged(CHECK, seen)
    assert result.code == "style.legacy_class"
    assert_brief(result)
    assert judged(CHECK, seen, style="legacy").code == "style.ok"
    either = judged(CHECK, seen, style="any")
    assert either.outcome is Outcome.PASSED
    assert [advice.code for advice in either.parts.advice] == ["advice.old_style"]
    assert_brief(either)


def test_the_figures_of_the_docstring():
    """It counts the submissions above under both styles, and old operators; each has its test, so none is an error."""
    both = len(MODERN) + len(LEGACY)
    assert figures(CHECK) == (0, both + 1, 0, both)


def test_the_class_is_named_with_its_line_and_what_to_write_instead(evidence):
    """Feedback leads to the class, in a module and in a notebook."""
    assert "`SimplePipeline` (submission.py, line 4)" in judged(CHECK, evidence["legacy built"]).feedback
    assert "(cell 2, line 2)" in judged(CHECK, evidence["legacy cells"]).feedback


def test_old_operators_without_a_class_are_found(evidence):
    """nvidia.dali.ops inside a context manager is old style as well."""
    result = judged(CHECK, evidence["operators"])
    assert result.code == "style.legacy_operators"
    assert "ops.readers.File is now fn.readers.file" in result.feedback
    assert_brief(result)


def test_operators_that_are_gone_get_their_successor(learner):
    """What the old posts use, and DALI has no more, is translated."""
    source = IMPORTS + OLD.replace("ops.readers.File", "ops.FileReader").replace(
        "ops.decoders.Image", "ops.HostDecoder"
    )
    result = judged(CHECK, learner.evidence(source, "legacy_pipeline"))
    assert result.parts.seen == "ops.FileReader is now fn.readers.file and ops.HostDecoder is now fn.decoders.image."


def test_objects_that_raise_do_not_stop_the_look(learner):
    """A namespace may hold anything."""
    source = IMPORTS + NEW + "class E:\n    def __getattribute__(self, name):\n        raise SystemExit\nodd = E()\n"
    source += "class M(type):\n    def __getattribute__(cls, name):\n        raise RuntimeError\n"
    source += "class C(metaclass=M):\n    pass\n"
    assert judged(CHECK, learner.evidence(source, "legacy_pipeline")).code == "style.ok"


def test_a_submission_without_dali_fails(learner):
    """No pipeline at all is said to be missing."""
    found = learner.evidence("x = 1", "legacy_pipeline")
    result = judged(CHECK, found)
    assert result.code == "style.no_pipeline"
    assert_brief(result)
    stopped = found.model_copy(update={"discovery": a_discovery(ran="raised", pipelines=())})
    assert judged(CHECK, stopped).code == "run.not_reached"
