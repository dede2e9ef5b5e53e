"""A lab written as TOML reads back as the same lab."""

from hypothesis import given, settings
from hypothesis import strategies as st

from grader_service.labs.specs import read_lab
from grader_service.labs.toml_text import lab_as_toml
from grader_service.model.lab import LabSpec

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r"), max_size=20)
NUMBERS = st.integers(-(2**60), 2**60) | st.floats(allow_nan=False, allow_infinity=False)
PARAMS = st.recursive(
    st.booleans() | NUMBERS | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
CHECK = st.fixed_dictionaries(
    {"points": st.floats(0.5, 100) | st.integers(1, 100)},
    optional={
        "params": st.dictionaries(TEXT, PARAMS, max_size=3),
        "feedback": st.sampled_from(["full", "outcome", "hidden"]),
    },
)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.tuples(TEXT, st.lists(CHECK, min_size=1, max_size=2)), min_size=1, max_size=3),
    TEXT,
    st.dictionaries(st.sampled_from(["pids", "memory_mib"]), st.integers(1000, 9000)),
)
def test_reading_back_gives_the_same_lab(steps, text, limits):
    """Whatever its parameters and texts hold."""
    document = {"schema": "grader.lab/v1", "id": "any", "version": "1.0.0", "title": text, "summary": text}
    document["steps"] = [
        {"id": f"s{n}", "title": title, "checks": [{"id": f"c{n}.{m}", **check} for m, check in enumerate(checks)]}
        for n, (title, checks) in enumerate(steps)
    ]
    lab = LabSpec.model_validate(document | ({"limits": limits} if limits else {}))
    assert read_lab(lab_as_toml(lab), "lab") == lab
