"""The table of operators: right about the DALI that is installed, and complete for all that is made of it."""

import pytest

from sandbox.guest.graph import operators
from sandbox.guest.graph.operators import OPERATORS, row_of

ALLOWED = {name for name, row in OPERATORS.items() if row.role != "container" and not row.refused}
"""What may run in the clean room."""
OLD = {"ArithmeticGenericOp", "MakeContiguous", "SubscriptDimCheck", "TensorSubscript"}
"""Spellings of other versions of DALI."""


@pytest.fixture(scope="module")
def registered(lab_child):
    """Names of the operators of the installed DALI, by backend."""

    def names():
        from nvidia.dali import backend

        return {
            "cpu": backend.RegisteredCPUOps(),
            "gpu": backend.RegisteredGPUOps(),
            "mixed": backend.RegisteredMixedOps(),
        }

    return {device: set(found) for device, found in lab_child(names).items()}


def test_the_table_names_operators_that_dali_has(registered):
    """Except for old spellings, each allowed operator exists in this DALI; no reader of Python objects is there."""
    assert ALLOWED - set.union(*registered.values()) <= OLD
    risky = ("Python", "Numba", "External", "Dump", "io__", "inputs__", "Video", "Numpy", "TFRecord")
    assert not [name for name in ALLOWED if any(word in name for word in risky)]


def test_what_needs_a_gpu_is_what_dali_has_no_cpu_implementation_of(registered):
    """For every allowed name that this DALI knows."""
    known = ALLOWED & set.union(*registered.values())
    assert {name for name in known if OPERATORS[name].gpu_only} == known - registered["cpu"]


def test_a_neutral_operator_takes_an_image_first(lab_child):
    """Each has an input to give in place of its output."""
    names = sorted(name for name, row in OPERATORS.items() if row.neutral)

    def least_inputs():
        from nvidia.dali import backend

        return [backend.GetSchema(name).MinNumInput() for name in names]

    assert min(lab_child(least_inputs)) >= 1


def test_every_operator_stands_once():
    """In two rows it would have the columns of one of them, and nobody would see which."""
    names = [name for row in operators._TABLE for name in row.split()]
    assert sorted(names) == sorted(OPERATORS)


def test_roles_are_those_of_the_names():
    """Readers, decoders and windows as DALI calls them; an old name has a new one with the same role."""
    assert OPERATORS["readers___TFRecord"].title == "readers.tfrecord"
    for name, row in OPERATORS.items():
        assert (row.role == "decoder") == ("Decoder" in name or "decoders__" in name), name
        assert row.reads == ("readers__" in name or name.endswith("Reader")), name
        assert row.window == (row.role == "decoder" and name.endswith(("Crop", "Slice"))), name
        assert not row.old or "__" not in name, name
    old = {row.role for row in OPERATORS.values() if row.old and not row.refused}
    assert old == {row.role for row in OPERATORS.values() if not row.old} & {"reader", "container", "decoder"}


def test_columns_do_not_contradict_each_other():
    """Only what may run is neutral or work; only decoders have windows, and only containers titles."""
    for name, row in OPERATORS.items():
        assert not (row.refused and (row.neutral or row.work or row.augments or row.passes or row.mixes)), name
        assert not row.window or (row.role == "decoder" and row.cuts), name
        assert bool(row.title) == (row.role == "container"), name
        assert row.role == "container" or not (row.label or row.named_by), name
        assert not row.passes or not (row.work or row.stage), name
        assert (row.branch in ("split", "merge")) == (row.passes == "by_choice"), name
        assert not row.neutral or row.role == "operator", name
        assert row.work not in ("colour", "turn", "blur", "mirror") or row.neutral, name


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("ExternalSource", "fn.external_source feeds the graph from Python code"),
        ("DLTensorPythonFunctionImpl", "runs Python code inside the graph"),
        ("io__file__Read", "DALI Proxy"),
        ("readers__Numpy", "Numpy reads a container format"),
        ("readers__Sequence", "Sequence reads a container format"),
        ("experimental__readers__Video", "Video reads a container format"),
        ("PythonFunction", "not among the native image operators"),
        *((name, "not among") for name in ("NumbaFuncImpl", "DumpImage", "decoders__Audio", "Readers__File", "")),
        ("readers__File ", "File  reads a container format"),
        ("readers__File", ""),
        ("readers__MXNet", ""),
        ("decoders__ImageSlice", ""),
    ],
)
def test_a_refusal_has_its_reason(name, words):
    """An operator that runs Python, reads something else or is unknown; names are compared exactly.

    Empty for what may be in a graph.
    """
    assert words in row_of(name).refused
    assert bool(row_of(name).refused) == bool(words)
    assert f"{name} " not in OPERATORS
