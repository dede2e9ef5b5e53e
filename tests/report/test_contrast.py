"""Text has a contrast of at least 4.5 to 1, graphical marks of at least 3 to 1, in both schemes."""

import re
from importlib.resources import files

import pytest

CSS = (files("grader_service.report") / "templates" / "report.css").read_text()
BLOCKS = re.findall(r":root \{([^}]*)\}", CSS)
TEXT = [
    *[(ink, ground) for ink in ("ink", "muted", "link") for ground in ("page", "surface", "sunken")],
    *[
        (tone, ground)
        for tone in ("passed", "failed", "open", "skipped", "error")
        for ground in (f"{tone}-soft", "surface")
    ],
    ("ink", "open-soft"),
    ("threshold", "surface"),
    ("surface", "passed"),
    ("surface", "failed"),
    ("surface", "open"),
    ("surface", "error"),
    # Only on the pages of `grader web`, whose colours these are as well.
    *[("link", "band"), ("surface", "link"), ("ink", "band"), ("ink", "failed-soft")],
    *[("failed", "sunken"), ("failed", "page"), ("open", "page")],
]
MARKS = [
    (f"arm-{arm}", ground)
    for arm in ("dali", "pytorch", "reference_declared", "reference_fair")
    for ground in ("surface", "page")
]


def _colours(scheme):
    light = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", BLOCKS[0]))
    return light if scheme == "light" else light | dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", BLOCKS[1]))


def _luminance(colour):
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _contrast(first, second):
    light, dark = sorted((_luminance(first), _luminance(second)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(("least", "pairs"), [(4.5, TEXT), (3.0, [*MARKS, ("arm-dali", "band"), ("focus", "page")])])
def test_contrast(scheme, least, pairs):
    """WCAG 2.2, levels AA for text and for graphical objects."""
    colours = _colours(scheme)
    poor = {pair: round(_contrast(colours[pair[0]], colours[pair[1]]), 2) for pair in pairs}
    assert not {pair: value for pair, value in poor.items() if value < least}


def test_both_schemes_set_the_same_colours():
    """No colour of the light scheme is left standing in the dark one."""
    assert len(BLOCKS) >= 2
    light, dark = (set(re.findall(r"--([\w-]+): #", text)) for text in BLOCKS[:2])
    assert light == dark


def test_print_uses_the_light_scheme():
    """Dark colours are for screens only, so paper stays white."""
    assert "@media screen and (prefers-color-scheme: dark)" in CSS
    assert "@media print" in CSS
