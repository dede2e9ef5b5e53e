"""YAML that PyYAML writes is read as the same values, and every part is found where it stands."""

import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from grader_service.labs.yaml_reader import YamlReading
from tests.labs.texts import locations

TEXT = st.text(st.characters(exclude_categories=["Cs", "Cc", "Cn"], exclude_characters="\ufeff"), max_size=8)
WORDS = TEXT | st.sampled_from(
    ["no", "on", "1.0", "010", "1:30", "~", "null", "=", "<<", "&a", "*a", "!x", "- a", "a: b"]
)
LEAVES = WORDS | st.booleans() | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False) | st.none()
VALUES = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3))


class Plain(yaml.SafeDumper):
    """Writes equal values out each time."""

    def ignore_aliases(self, data):
        return True


@settings(max_examples=300, deadline=None)
@given(st.dictionaries(WORDS, VALUES, max_size=4), st.sampled_from([None, True, False]), st.booleans())
@example({"?": [], "": {}}, None, True)
def test_what_was_written_is_read(data, flow, unicode):
    """In block style, in flow style and mixed; text that looks like something else stays text."""
    text = yaml.dump(data, Dumper=Plain, default_flow_style=flow, allow_unicode=unicode, sort_keys=False)
    reading = YamlReading(text)
    assert reading.mistakes == []
    assert reading.value == data
    rows = text.split("\n")
    found = dict(locations(data))
    assert set(reading.places.values) == {(), *found}
    for location, value in found.items():
        position = reading.places.values[location]
        rest = rows[position.line - 1][position.column - 1 :]
        if isinstance(value, str):
            assert rest.startswith((value[:1], '"', "'", "|", ">", "?"))
        elif isinstance(value, int):
            assert yaml.safe_load(rest.split(",")[0].rstrip("]} ")) == value
    # Words that were written without quotes and are no text, and only those, have their spelling kept.
    assert set(reading.spellings) == {
        place for place, value in found.items() if not isinstance(value, (str, dict, list))
    }
