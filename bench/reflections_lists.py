"""The labelled lists of the check `reflections`, as training and figures read them."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

LABELLED = Path(__file__).parents[1] / "tests/checks/reflections/labelled"
GOOD_KINDS = frozenset({"repeated"})
"""Kinds of bad lists of which each entry taken alone is good."""


@dataclass(frozen=True)
class Labelled:
    """Two lists and what is right about them."""

    source: str
    """Who wrote it: the file's name."""
    good: bool
    kind: str
    language: str
    wins: Sequence[str]
    loses: Sequence[str]
    flaws: dict[str, str] = field(default_factory=dict)
    """Of lists in which only some entries are flawed: `w0`, `l1` (list, place from 0) to the kind of flaw."""

    def entries(self) -> Iterator[tuple[str, int, str]]:
        """Text, side (1 wins, -1 loses) and kind of each entry, `good` where nothing is wrong with it."""
        for letter, side, texts in (("w", 1, self.wins), ("l", -1, self.loses)):
            for place, text in enumerate(texts):
                if self.good or self.kind in GOOD_KINDS:
                    yield text, side, "good"
                elif self.flaws:
                    yield text, side, self.flaws.get(f"{letter}{place}", "good")
                else:
                    yield text, side, self.kind


def read(folder: str = "train") -> list[Labelled]:
    """All lists of `labelled/FOLDER`, in the order of files and lines."""
    return [
        Labelled(
            source=file.stem,
            good=line["label"] == "good",
            kind=line["kind"],
            language=line.get("language", "en"),
            wins=line["where_dali_wins"],
            loses=line["where_dali_loses"],
            flaws=line.get("flaws", {}),
        )
        for file in sorted((LABELLED / folder).glob("*.jsonl"))
        for line in map(json.loads, file.read_text(encoding="utf-8").splitlines())
        if "where_dali_wins" in line  # an export of decisions may hold other checks' too
    ]
