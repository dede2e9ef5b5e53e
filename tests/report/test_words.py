"""Numbers and names as they are shown."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from markupsafe import Markup

from grader_service.model.lab import MeasurementPlan
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


def test_rule_takes_its_numbers_from_the_plan():
    """No number of the rule is fixed in words."""
    plan = MeasurementPlan(
        looks=(3, 5), alpha_pass=0.01, alpha_fail=0.1, declared_floor=0.8, fair_floor=0.7, block_s=2.5
    )
    text = " ".join(words.rule(plan, 1.25))
    for expected in ("2.5 s", "80%", "70%", "3 and 5 blocks", "above 1.25", "at most 1%", "at most 10%"):
        assert expected in text
    assert "above the threshold" in " ".join(words.rule(plan, None))
