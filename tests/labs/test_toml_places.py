"""Every key and value of any TOML document is found where it stands."""

import tomllib

from hypothesis import example, given, settings
from hypothesis import strategies as st

from grader_service.labs.toml_places import toml_places
from tests.labs.texts import locations
from tests.labs.toml_writer import Writer

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8) | st.sampled_from(
    ["#", "]", "[[a]]", '"', "'", '"""', "\\", "a = 1", "=", ",", "}", "\n", "''"]
)
NAMES = st.text("ab_-1", min_size=1, max_size=3) | TEXT
LEAVES = st.integers(-(2**40), 2**40) | st.booleans() | st.floats(allow_nan=False, allow_infinity=False) | TEXT
VALUES = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3))
DOCUMENTS = st.dictionaries(NAMES, VALUES, max_size=5)


def offset(text, position):
    lines = text.split("\n")
    return sum(len(line) + 1 for line in lines[: position.line - 1]) + position.column - 1


@settings(max_examples=400, deadline=None)
@given(DOCUMENTS, st.randoms(use_true_random=False))
def test_positions_are_those_of_the_text(data, random):
    """Whatever the style: each place of the parsed document has a position, and each value's text begins there."""
    written = Writer(data, random)
    text = written.text.replace("\r\n", "\n")
    assert tomllib.loads(text) == data
    places = toml_places(text)
    for location, value in locations(data):
        assert location in places.values, location
        if not isinstance(location[-1], int):
            name = text[offset(text, places.keys[location]) :]
            assert name.startswith((location[-1], '"', "'"))
        if not isinstance(value, (dict, list)):
            literal = written.literals[location]
            assert text.startswith(literal, offset(text, places.values[location]))
    assert set(places.values) == {location for location, _ in locations(data)}


@given(st.text("[]{}\"'=.,#ab1 \n\\", max_size=40))
@example("a = '''''''x'''")
@example('a = """a""""\nb = 1')
@example("[[a]]\n[[a.b]]\n[a.b.c]\nd.e = 1\n[[a]]\n[[a.b]]")
def test_every_valid_text_is_scanned(text):
    """Any text that `tomllib` takes has a position for each place, and for nothing else."""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return
    assert set(toml_places(text).values) == {location for location, _ in locations(data)}
