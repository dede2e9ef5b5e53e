"""What is known of an operator of DALI stands in its row, and nowhere else."""

import ast
import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import get_args, get_type_hints

import pytest

from checks import dali_operators
from checks.dali_operators import OPERATORS, Row, row_of
from checks.fair_baseline.transforms import _STEPS, differences
from checks.placement_table.stages import _MEANINGS, stage_of
from sandbox.guest.graph import edit, operators
from sandbox.guest.graph.edit import GraphRefused
from sandbox.guest.graph.model import Edge, Graph, Operator
from sandbox.guest.trusted.graph_context import GraphContext
from tests.levels.parts import ROOT

PACKAGES = ("grader_service", "sandbox", "checks", "images")
TABLE = ROOT / "sandbox" / "guest" / "graph" / "operators.py"
LINK = ROOT / "checks" / "dali_operators.py"
ELSEWHERE = {
    "checks/authoring/evidence.py": "an example of a graph, for tests of checks",
    "checks/diagnosis/silent.py": "transforms of torchvision with the same names",
    "checks/fair_baseline/transforms.py": "transforms of torchvision with the same names",
    "checks/legacy_pipeline/check.py": "classes of nvidia.dali.ops, as old notebooks spell them",
}
"""Files that have names of operators, and why that is no knowledge of operators."""
MODULES = re.compile(r"(?:readers|decoders|random|noise|reductions|transforms|_conditional|io)__")


def texts(path: Path) -> Iterator[str]:
    """Every text of a module but its docstrings."""
    tree = ast.parse(path.read_bytes())
    described = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in described:
            yield node.value


def names_operators(text: str) -> bool:
    """Whether a text is a name, a list of names or a pattern of names; a sentence for a learner is none of these."""
    words = text.split()
    if len(words) > 1:
        return all(word in OPERATORS for word in words)
    return bool(MODULES.search(text)) or any(word in OPERATORS for word in re.findall(r"\w+", text))


def test_no_other_file_names_operators():
    """A second list would have to be kept in step with the table by hand."""
    found = {
        path.relative_to(ROOT).as_posix()
        for package in PACKAGES
        for path in (ROOT / package).rglob("*.py")
        if path not in (TABLE, LINK) and any(map(names_operators, texts(path)))
    }
    assert found == set(ELSEWHERE)


@pytest.mark.parametrize(
    "text", ["Resize", "Hue Saturation", "readers__", r"(experimental__)?decoders__.*", "Crop|Pad"]
)
def test_a_name_is_found_in_every_form(text):
    """The test above would be empty otherwise."""
    assert names_operators(text)
    assert not names_operators(f"Resize the images, then give {text} what it needs.")


def test_checks_and_pods_read_one_file():
    """By a link: a copy could be changed alone."""
    assert LINK.is_symlink()
    assert LINK.resolve() == TABLE.resolve()
    assert not [node for node in ast.walk(ast.parse(TABLE.read_bytes())) if isinstance(node, ast.ImportFrom)
                and (node.level or node.module not in ("dataclasses", "typing"))]  # fmt: skip


def test_every_column_and_value_is_used():
    """By a row, and outside the table."""
    source = "".join(path.read_text() for package in PACKAGES for path in (ROOT / package).rglob("*.py")
                     if path not in (TABLE, LINK))  # fmt: skip
    members = {name for name, member in vars(Row).items() if isinstance(member, property)}
    within = TABLE.read_text()
    for name in {field.name for field in fields(Row)} | members:
        assert re.search(rf"\.{name}\b", source) or f"self.{name}" in within, name
    for name, hint in get_type_hints(Row).items():
        used = {getattr(row, name) for row in [*OPERATORS.values(), row_of("readers__New")]}
        assert set(get_args(hint)) <= used, name
        assert len(used) > 1, name


def test_checks_have_words_for_every_stage_and_step():
    """What the table calls a stage or a step is what the checks know."""
    assert {row.stage for row in OPERATORS.values()} - {""} <= set(_MEANINGS)
    assert {row.step for row in OPERATORS.values()} - {""} == set(_STEPS)


@pytest.fixture
def added(monkeypatch):
    """Adds one row under both names of the table."""

    def add(name, *role, **columns):
        for module in (operators, dali_operators):
            monkeypatch.setitem(module.OPERATORS, name, module.Row(*role, **columns))

    return add


def with_operator(name: str) -> Graph:
    """Files, decoded, through this operator."""
    edges = [[Edge(edge, "cpu", []) for edge in names] for names in (("files", "labels"), ("decoded",), ("made",))]
    parts = [Operator("readers__File", [], edges[0]), Operator("decoders__Image", edges[0][:1], edges[1])]
    return Graph([*parts, Operator(name, edges[1], edges[2])], [], edges[2], 8, 2, None, (2, 2), [])


def test_another_operator_is_one_row(added):
    """The clean room, the probes and the checks know it then, and not before."""
    graph = with_operator("Sepia")
    with pytest.raises(GraphRefused, match="Sepia"):
        edit.check(graph)
    assert (stage_of("Sepia"), edit.random_operators(graph)) == (None, [])
    added("Sepia", stage="colour", step="colour", random="draws", gpu_only=True)
    edit.check(graph)
    with pytest.raises(GraphRefused, match="Sepia has no CPU implementation"):
        edit.require_cpu(graph)
    assert (stage_of("Sepia"), edit.random_operators(graph)) == ("colour", ["Sepia"])
    assert differences("Compose(ToTensor())", ["Sepia"]) == ([], ["colour"])
    context = GraphContext([], device="cpu", params={}, folder="", budget_s=1.0)
    assert context.operator_row("Sepia").varies


def test_another_decoder_and_another_container_are_one_row_each(added):
    """A container says which of its outputs is a label; the graph then reads files in its place."""
    added("decoders__Quick", "decoder", "decode", window=True)
    added("readers__Tar", "container", "read", title="readers.tar", label="others")
    graph = with_operator("Resize")
    graph.operators[0].name, graph.operators[1].name = "readers__Tar", "decoders__Quick"
    edit.check(graph)
    assert edit.repoint(graph, ["a.jpg"], [0]) == ["readers.tar replaced by readers.file on 1 held-out images"]
    assert graph.operators[0].name == "readers__File"
    assert row_of("decoders__Quick").role == "decoder"
