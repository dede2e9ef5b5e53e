"""Numbers and names as they are shown."""

import re
from datetime import UTC, datetime, timedelta, timezone
from importlib.resources import files

import pytest
from markupsafe import Markup

from grader_service.model.measurement import Arm, ClaimBesideMeasurement, LoaderSettings
from grader_service.report import formats, words
from tests.report.factories import block


@pytest.mark.parametrize(
    ("value", "expected"),
    [(None, "no score"), (0.0, "0"), (75.0, "75"), (33.3333, "33.33"), (12.5, "12.5"), (1e9, "1e+09")],
)
def test_points(value, expected):
    """Absent is not zero; whole numbers have no decimals."""
    assert formats.points(value) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (1.3866, "1.39×"),
        (1.0997, "1.0997×"),
        (1.1, "1.10×"),
        (1.1004, "1.1004×"),
        (130.5, "130.5×"),
        (12345.6, "1.23e+04×"),
        (0.0004, "0.0004×"),
    ],
)
def test_ratio_beside_the_threshold(value, expected):
    """More digits where fewer would look like the threshold."""
    assert formats.ratio(value, 1.1) == expected


@pytest.mark.parametrize(
    ("value", "expected"), [(None, "–"), (817.04, "817"), (12345.6, "12,346"), (0.25, "0.25"), (1e12, "1e+12")]
)
def test_rate(value, expected):
    """Thousands are grouped; a lost arm has a dash."""
    assert formats.rate(value) == expected


@pytest.mark.parametrize(
    ("claimed", "measured", "stated", "share"),
    [
        (9000.0, 900.0, "9,000", "10.00×"),
        (None, 900.0, "–", "–"),
        (900.0, None, "900", "–"),
        (-5.0, 900.0, "-5", "–"),
        (0.0, 900.0, "0", "–"),
        (1e308, 1e-5, "1e+308", "–"),
    ],
)
def test_claims(claimed, measured, stated, share):
    """Any number may be claimed; the share is given where both numbers mean something."""
    claim = ClaimBesideMeasurement(name="dali_throughput", claimed=claimed, measured=measured)
    assert formats.claim(claim.claimed) == stated
    assert formats.claim_ratio(claim) == share


def test_moments_are_utc():
    """Zones are converted; a time without one is UTC."""
    expected = "2026-11-21 03:00:00 UTC"
    for value in (
        datetime(2026, 11, 21, 3, tzinfo=UTC),
        datetime(2026, 11, 21, 3),  # noqa: DTZ001
        datetime(2026, 11, 21, 12, tzinfo=timezone(timedelta(hours=9))),
    ):
        assert formats.moment(value) == expected


def test_seconds_and_percent():
    """Short durations keep their milliseconds; shares have no needless zeros."""
    assert formats.seconds(0.006) == "0.006 s"
    assert formats.seconds(1234.56) == "1,234.6 s"
    assert formats.percent(0.005) == "0.5%"
    assert formats.percent(0.95) == "95%"
    assert formats.percent(0.00033774, 2) == "0.034%"
    assert formats.percent(3e-9, 2) == "0.0000003%"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", [(False, "plain")]),
        ("a `b` c", [(False, "a "), (True, "b"), (False, " c")]),
        ("one ` only", [(False, "one ` only")]),
        ("over `two\nlines` no", [(False, "over "), (False, "`two\nlines`"), (False, " no")]),
        ("", []),
    ],
)
def test_spans(text, expected):
    """Backticks mark code when they come in pairs on one line."""
    assert formats.spans(text) == expected


def test_tidy_keeps_markup_and_neutralises_text():
    """Our SVG passes; a string of anybody loses what would reorder the page."""
    assert formats.tidy("a\u202eb") == "a\ufffdb"
    assert formats.tidy(Markup("<b>")) == Markup("<b>")
    assert formats.tidy(3) == 3


def test_facts_are_short_and_few():
    """Values of any shape become short text."""
    values = {"flag": True, "none": None, "pi": 3.14159265, "list": [1, "a"], "deep": {"a": [1]}, "long": "x" * 999}
    shown = dict(formats.facts(values))
    assert shown["flag"] == "yes"
    assert shown["none"] == "–"
    assert shown["pi"] == "3.14159"
    assert shown["list"] == "1, a"
    assert shown["deep"] == '{"a": [1]}'
    assert len(shown["long"]) == 300
    assert formats.facts({str(index): index for index in range(100)})[-1] == ("left out", "40 more entries")


def test_details_are_cut():
    """Details beyond the budget say how much is missing."""
    text = formats.details_json({"a": "x" * 5000}, 2000)
    assert len(text) < 2100
    assert "more characters stand in the verdict itself" in text
    assert formats.details_json({"a": object}, 2000).startswith("{")


@pytest.mark.parametrize(
    ("identifier", "expected"),
    [
        ("jpeg_dataset", "JPEG dataset"),
        ("cuda_batch", "CUDA batch"),
        ("baseline", "Baseline"),
        ("memory_mib", "Memory MiB"),
        ("torch", "torch"),
        ("___", "___"),
    ],
)
def test_titles(identifier, expected):
    """Identifiers read as headings."""
    assert words.title(identifier) == expected


def test_loader_settings():
    """One line, with what matters for speed."""
    settings = LoaderSettings(
        batch_size=64, num_workers=1, pin_memory=False, persistent_workers=True, prefetch_factor=None
    )
    assert words.loader(settings) == "batch 64, 1 worker, memory not pinned, persistent workers"
    assert words.loader(None) == ""


def test_baselines():
    """Which arm set the baseline, and how often; spoiled blocks do not count."""
    blocks = [block(0), block(1, baseline=Arm.FAIR), block(2), block(3, baseline=Arm.DECLARED, spoiled="x")]
    assert words.baselines(blocks) == (
        "Of 3 blocks the baseline was your DataLoader in 2 and our reference at fair settings in 1."
    )
    assert words.baselines(blocks[:1]) == "The baseline of every block was your DataLoader."
    assert words.baselines([]) == ""


@pytest.mark.parametrize("tier", ["A", "B", "C"])
def test_every_arm_has_words_in_every_tier(tier):
    """The DALI arm is the learner's graph in tier A only; below it is the learner's own code."""
    assert set(words.arm_names(tier)) == set(words.arm_meaning(tier)) == set(Arm)
    assert words.arm_names(tier)[Arm.DALI] == ("Your DALI graph" if tier == "A" else "Your DALI code")
    assert ("clean room" in words.arm_meaning(tier)[Arm.DALI]) == (tier == "A")


def test_every_stage_of_a_run_has_words():
    """No stage that the grader starts is shown by its key alone."""
    folders = files("grader_service.run"), files("grader_service.measure")
    sources = [item.read_text() for folder in folders for item in folder.iterdir() if item.name.endswith(".py")]
    started = {key for source in sources for key in re.findall(r"clock\.start\(\s*\"(\w+)\"", source)}
    assert {"proof", "host", "experiments"} <= started
    assert started | {"content", "compare"} <= set(words._STAGES)  # the last two stand in older verdicts


@pytest.mark.parametrize(
    ("value", "busy", "memory"),
    [(None, "–", "–"), (0.0, "0%", "0 MiB"), (0.42, "0.42%", "0 MiB"), (57.2, "57%", "57 MiB")],
)
def test_use_of_a_gpu(value, busy, memory):
    """Nothing known is a dash, and never zero."""
    assert formats.busy(value) == busy
    assert formats.mebibytes(value) == memory
