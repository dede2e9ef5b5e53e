"""Authors are told every mistake with its line, in words that say what to write."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from checks.registry import Registry
from grader_service.labs.catalogue import MOST_MISTAKES
from grader_service.labs.documents import Form
from grader_service.model.base import neutralise
from tests.labs.texts import TOML, YAML, inspected, lines


@pytest.mark.parametrize(("text", "form"), [(TOML, Form.TOML), (YAML, Form.YAML)])
def test_a_right_lab_has_no_mistakes(text, form):
    """Both languages describe the same lab."""
    inspection = inspected(text, form)
    assert inspection.mistakes == ()
    assert inspection.lab == inspected(TOML).lab


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (
            "min_images = 100",
            'min_images = "many"',
            'lab:13:25: steps[0].checks[0].params.min_images: expected an integer from 1 to 1024, got "many"',
        ),
        (
            "min_images = 100",
            "min_image = 100",
            'lab:13:12: steps[0].checks[0].params.min_image: unknown field; did you mean "min_images"? Fields here: ',
        ),
        (
            "threshold = 1.1",
            "threshold = 0",
            "lab:23:13: steps[1].checks[0].params.threshold: expected a number above 0, got 0",
        ),
        (
            "points = 25",
            "points = 0",
            "lab:12:10: steps[0].checks[0].points: a check needs points above 0, unless it says optional = true",
        ),
        (
            "points = 25",
            "points = 2000",
            "lab:12:10: steps[0].checks[0].points: expected a number from 0 to 1000, got 2000",
        ),
        (
            "points = 25",
            "points = [1]",
            "lab:12:10: steps[0].checks[0].points: expected a number from 0 to 1000, got a list of 1",
        ),
        ("points = 25\n", "", "lab:10:9: steps[0].checks[0].points: missing; expected a number from 0 to 1000"),
        (
            "points = 25",
            'points = 25\nfeedback = "none"',
            'lab:13:12: steps[0].checks[0].feedback: expected one of "full", "outcome", "hidden", got "none"',
        ),
        (
            "points = 25",
            "points = 25\noptional = true",
            "lab:10:9: steps[0].checks: a step needs a check that is not optional: advice alone decides nothing",
        ),
        (
            'title = "A small lab"',
            'titel = "A small lab"',
            'lab:4:1: titel: unknown field; did you mean "title"? Fields '
            "here: grader, handout, id, image, limits, measurement, placement, schema, steps, summary, title, version",
        ),
        (
            'id = "small"',
            'id = "a b"',
            'lab:2:6: id: expected an id: 1 to 128 of the characters A-Z a-z 0-9 . _ : -, got "a b"',
        ),
        (
            'version = "1.0.0"',
            'version = "1"',
            'lab:3:11: version: expected a version of three numbers, such as "1.0.0", got "1"',
        ),
        ('"grader.lab/v1"', '"grader.lab/v2"', 'lab:1:10: schema: expected "grader.lab/v1", got "grader.lab/v2"'),
        (
            'id = "benchmark"',
            'id = "baseline"',
            'lab:16:6: steps[1].id: step id "baseline" stands twice; the first one is in line 7',
        ),
        (
            '"throughput_ratio"',
            '"jpeg_dataset"',
            'lab:20:6: steps[1].checks[0].id: check id "jpeg_dataset" stands twice; the first one is in line 11',
        ),
        (
            "learner_timeout_s = 900",
            "learner_timeout_s = nan",
            "lab:26:21: limits.learner_timeout_s: a number must be finite",
        ),
        (
            "learner_timeout_s = 900",
            "learner_timeout_s = 2026-01-01",
            "lab:26:21: limits.learner_timeout_s: a date or time; a lab has none, so write text in quotes",
        ),
        ("learner_timeout_s = 900", "pids = 1.5", "lab:26:8: limits.pids: expected an integer of at least 64, got 1.5"),
        ("[limits]", "[limits\n]", "lab:25:8: not valid TOML: Expected ']' at the end of a table declaration"),
        ("[limits]", 'id = "x"\nid = "y"', "lab:26:9: not valid TOML: a key stands twice"),
        (
            "[limits]",
            "[measurement]\nlooks = [4, 4]\n[limits]",
            "lab:25:2: measurement: looks must increase strictly and start at 2 or more, got [4, 4]",
        ),
        (
            "[limits]",
            '[measurement]\nlooks = [4, "x"]\n[limits]',
            'lab:26:13: measurement.looks[1]: expected an integer, got "x"',
        ),
        (
            'id = "small"',
            'id = "small"\ngrader = "0.1"',
            'lab:3:10: grader: expected the oldest version, such as ">=0.1", got "0.1"',
        ),
    ],
)
def test_each_mistake_names_its_line(old, new, expected):
    """Line, column, place, what was expected and what came."""
    assert TOML.count(old) == 1
    assert [line for line in lines(TOML.replace(old, new)) if line.startswith(expected)]


def test_an_unknown_check_lists_the_close_and_the_installed_ones():
    """The typo is found from the message."""
    (found,) = lines(TOML.replace('"jpeg_dataset"', '"jpeg_datasets"'))
    assert found.startswith(
        'lab:11:6: steps[0].checks[0].id: no check "jpeg_datasets" is installed; did you mean "jpeg_dataset"? '
        "Installed checks: "
    )
    for check_id in Registry().ids():
        assert check_id in found


def test_all_mistakes_are_collected_in_the_order_of_lines():
    """Not the first one only, and not twice."""
    text = TOML.replace("points = 25", 'points = "x"').replace('"1.0.0"', "1").replace("threshold = 1.1", "limit = 2")
    found = lines(text.replace("title = ", "titel = "))
    assert [int(line.split(":")[1]) for line in found] == sorted(int(line.split(":")[1]) for line in found)
    places = [line.split(": ")[1] for line in found]
    assert len(places) == len(set(places))
    assert set(places) == {
        "title", "version", "titel", "steps[0].title", "steps[0].titel", "steps[0].checks[0].points",
        "steps[1].title", "steps[1].titel", "steps[1].checks[0].params.limit",
    }  # fmt: skip


def test_steps_without_checks():
    """An empty list, and none at all."""
    head = TOML[: TOML.index("[[steps]]")]
    assert lines(head + '[[steps]]\nid = "a"\ntitle = "A"\nchecks = []\n') == [
        "lab:9:10: steps[0].checks: expected a list with at least 1 item, got an empty list"
    ]
    assert lines(head + '[[steps]]\nid = "a"\ntitle = "A"\n') == [
        "lab:6:3: steps[0].checks: missing; expected a list with at least 1 item"
    ]
    assert lines(head + "steps = []") == ["lab:6:9: steps: expected a list with at least 1 item, got an empty list"]


def test_a_grader_that_is_too_old_says_so_first():
    """A field of a newer grader is not called a typo: the lab is meant for another grader."""
    text = TOML.replace('id = "small"', 'id = "small"\ngrader = ">=99.1"\nfrom_the_future = 1')
    (found,) = inspected(text).mistakes
    assert (found.line, found.path, found.code) == (3, "grader", "grader.too_old")
    assert "needs grader 99.1 or newer" in found.message
    assert inspected(TOML.replace('id = "small"', 'id = "small"\ngrader = ">=0.1"')).lab is not None


@pytest.mark.parametrize(
    ("old", "new", "path"),
    [
        ("threshold = 1.1", "threshold = 0.9", "steps[1].checks[0].params.threshold"),
        ("learner_timeout_s = 900", "learner_timeout_s = 30", "limits.learner_timeout_s"),
        ("learner_timeout_s = 900", "memory_mib = 1024\nshm_mib = 1024", "limits.shm_mib"),
        ("learner_timeout_s = 900", "max_cpus = 2\n[measurement]\nfair_workers = 4", "measurement.fair_workers"),
        ("[limits]", "[measurement]\nalpha_pass = 0.2\n[limits]", "measurement.alpha_pass"),
        ("points = 25", 'points = "25"', "steps[0].checks[0].points"),
        ("points = 25", 'points = 25\nfeedback = "hidden"', "steps[0]"),
        ("points = 75", 'points = 75\nfeedback = "outcome"', "steps[1].checks[0].feedback"),
    ],
)
def test_hints_do_not_fail(old, new, path):
    """What can be graded is valid; what is probably not meant is a warning."""
    inspection = inspected(TOML.replace(old, new))
    assert inspection.lab is not None
    assert path in {mistake.path for mistake in inspection.mistakes}
    assert {mistake.severity for mistake in inspection.mistakes} == {"warning"}


def test_a_plan_that_nothing_uses_is_hinted_at():
    """A lab that measures nothing needs no plan."""
    start, end = TOML.index('[[steps]]\nid = "benchmark"'), TOML.index("[limits]")
    inspection = inspected(TOML[:start] + TOML[end:] + "[measurement]\nblock_s = 2\n")
    assert [mistake.path for mistake in inspection.mistakes] == ["measurement"]


def test_a_list_of_mistakes_has_an_end():
    """Nobody reads ten thousand lines."""
    found = inspected(TOML + "".join(f"k{number} = 1\n" for number in range(5000))).mistakes
    assert len(found) == MOST_MISTAKES
    assert found[-1].message == "4801 mistakes more are not listed"


@settings(max_examples=200, deadline=None)
@given(st.integers(0, len(TOML.split("\n")) - 1), st.sampled_from(["zz_unknown = 1", "zz_unknown = { a = [1] }"]))
def test_an_unknown_field_is_found_wherever_it_stands(index, field):
    """One line more is one mistake more, in that line."""
    rows = TOML.split("\n")
    rows.insert(index, field)
    (found,) = inspected("\n".join(rows)).mistakes
    assert (found.line, found.column, found.code) == (index + 1, 1, "field.unknown")
    assert found.path.endswith("zz_unknown")


@settings(max_examples=300, deadline=None)
@given(
    st.sampled_from([(TOML, Form.TOML), (YAML, Form.YAML)]),
    st.integers(0, 600),
    st.integers(0, 40),
    st.binary(max_size=8)
    | st.sampled_from([b"[", b"{", b'"', b"no", b"1", b"&a ", b"*a", b"!x ", b"\n", b": ", b"=", b"["]),
)
def test_any_damage_is_answered(lab, start, length, put):
    """Whatever a file holds: a lab, or mistakes whose lines are lines of the file; never an exception."""
    text, form = lab
    content = text.encode()
    content = content[:start] + put + content[start + length :]
    inspection = inspected(content, form)
    assert (inspection.lab is None) == any(mistake.severity == "error" for mistake in inspection.mistakes)
    for mistake in inspection.mistakes:
        assert 1 <= mistake.line <= content.count(b"\n") + 2
        shown = mistake.text("lab")
        assert neutralise(shown) == shown
        assert "\n" not in shown


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=200), st.sampled_from(Form))
def test_any_bytes_are_answered(content, form):
    """Files of any kind are refused in words."""
    assert inspected(content, form).lab is None
