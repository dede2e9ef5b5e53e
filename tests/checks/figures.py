"""Error figures of checks, as the docstring of a check states them."""

import re
from typing import Any


def figures(check: Any) -> tuple[int, ...]:
    """`N false accepts on K failing and M false rejects on L passing …` in a check's docstring: N, K, M and L."""
    text = " ".join(check.about.split())
    said = re.search(r"(\d+) false accepts on (\d+) failing and (\d+) false rejects? on (\d+) passing", text)
    assert said is not None, "the docstring states no figures"
    return tuple(map(int, said.groups()))
