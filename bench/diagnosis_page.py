"""The table of diagnoses for people: `python bench/diagnosis_page.py > docs/diagnosis.md`."""

import re
import sys
from collections.abc import Iterable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from checks.diagnosis.rows import FAMILIES, SILENT, Row, all_rows

_TITLES = {
    "imports": "Modules and names",
    "device": "GPU and driver",
    "graph": "The definition of a pipeline",
    "iterator": "Iterators, batches and epochs",
    "decode": "Files, memory, disk and network",
    "layout": "Types and layouts of tensors",
    "dataloader": "PyTorch's DataLoader",
    "timing": "Clocks and rates",
    "distributed": "Several processes",
    "silent": "Mistakes that raise nothing",
}
_INTRODUCTION = """\
# Diagnosis of a learner's run

When a learner's code stops with an exception, the feedback of each check that missed something names the place, the
type and the message, and then the likely cause and what to do, from the table below. A diagnosis explains; it never
decides an outcome. An exception that no row knows gets none, and neither does one that the learner's own `raise` made.

Mistakes that raise nothing are found by `checks.diagnosis.silent_mistakes(evidence)` in what a run left behind; what
explains a measured rate is said by the check of the ratio (`checks/throughput_ratio/causes.py`) and not repeated here.

Rows are data: `checks/diagnosis/rows/*.toml`. To add one, write it there, then a snippet that really raises it in
`tests/checks/diagnosis/snippets/`, and run

    python bench/diagnosis_page.py > docs/diagnosis.md

A row may ask for the exception's type (`exceptions`), a text in the message (`contains`), a regular expression on it
(`pattern`, whose named groups may stand in `cause` and `remedy`), the learner's own line (`source`) and the DALI
operator (`operator`). Rows of `order = "specific"` are tried first and those of `"general"` last; no two rows of one
order may match the same message. Every repetition in a pattern has an upper bound and none stands inside another.

The last column says how a test meets the row: *cpu*, real code raises it with the real libraries on a CPU; *text*, it
needs a GPU or a broken installation, so its example is matched as text; *evidence*, facts of a run show it.
DALI's and the DataLoader workers' reports are unwrapped first, and name the line of the graph or of the data set.
"""


def text() -> str:
    """The whole page."""
    rows = all_rows()
    exceptions = sum(row.family != SILENT for row in rows)
    counts = f"\n{exceptions} rows on exceptions and {len(rows) - exceptions} on mistakes that raise nothing.\n"
    parts = [_family(family, [row for row in rows if row.family == family]) for family in FAMILIES]
    return _INTRODUCTION + counts + "".join(parts)


def _family(family: str, rows: Iterable[Row]) -> str:
    lines = [
        f"\n## {_TITLES[family]}\n",
        "| row | raised as | likely cause | what to do | met by |",
        "|---|---|---|---|---|",
    ]
    for row in sorted(rows, key=lambda row: row.id):
        raised = ", ".join(f"`{name}`" for name in row.exceptions) or ("" if family == SILENT else "any")
        met = row.provoked if row.why is None else f"{row.provoked}: {row.why}"
        cells = (f"`{row.id}`", raised, _cell(row.cause), _cell(row.remedy), f"{met} ({row.seen_with})")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _cell(words: str) -> str:
    """Text as it stands in a Markdown cell: markup characters are shown, values stand in angle brackets."""
    parts = words.replace("{", "‹").replace("}", "›").split("`")
    # Every other part stands between backticks, where nothing is markup.
    parts[::2] = [re.sub(r"([\\*_<>|])", r"\\\1", part) for part in parts[::2]]
    return "`".join(parts)


if __name__ == "__main__":
    sys.stdout.write(text())
