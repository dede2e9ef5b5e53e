"""The matrix: what the corpus said of the grader, as Markdown for a log and as a page."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from jinja2 import Environment, FileSystemLoader

from tests.corpus import catalogue
from tests.corpus.result import Finding, Result
from tests.corpus.table import cell, header

_TITLE = "The grader's corpus"


def write(results: Sequence[Result], folder: Path, *, seconds: float, lanes: int, whole: bool) -> None:
    """Writes `matrix.md`, `matrix.html` and `results.json`."""
    folder.mkdir(parents=True, exist_ok=True)
    told = {"seconds": seconds, "lanes": lanes, "whole": whole}
    (folder / "matrix.md").write_text(markdown(results, **told, every_case=True))
    (folder / "matrix.html").write_text(_page(results, **told))
    (folder / "results.json").write_text(json.dumps([result.record() for result in results], indent=1))


def counts(results: Sequence[Result]) -> dict[Finding, int]:
    """How often each finding came."""
    return {finding: sum(result.finding is finding for result in results) for finding in Finding}


def rows(results: Sequence[Result]) -> list[Mapping[str, object]]:
    """One row for each family: attacks covered, cases, and findings."""
    table: list[Mapping[str, object]] = []
    reasons = catalogue.absent()
    for letter, (name, number) in catalogue.FAMILIES.items():
        own = [result for result in results if result.id.startswith(letter)]
        covered = {result.id[:3] for result in own}
        table.append(
            {
                "letter": letter,
                "name": name,
                "number": number,
                "covered": len(covered),
                "elsewhere": sum(one.startswith(letter) for one in reasons),
                "cases": len(own),
                "seconds": sum(result.seconds for result in own),
                **{finding.name.lower(): count for finding, count in counts(own).items()},
            }
        )
    return table


def markdown(results: Sequence[Result], *, seconds: float, lanes: int, whole: bool, every_case: bool = False) -> str:
    """The matrix; with `every_case` the answers of each case below it."""
    cheats = sum(result.kind == "cheat" for result in results)
    found = counts(results)
    lines = [
        f"# {_TITLE}{'' if whole else ' (a part of it)'}",
        "",
        f"{cheats} cheats, {len(results) - cheats} honest submissions, {seconds / 60:.1f} min on {lanes} lanes: "
        f"**{found[Finding.FALSE_ACCEPT]} false accepts, {found[Finding.FALSE_REJECT]} false rejects, "
        f"{found[Finding.HARNESS_ERROR]} harness errors, {found[Finding.LEAK]} leaks, {found[Finding.LATE]} late, "
        f"{found[Finding.OTHER_REASON]} for another reason.** "
        f"{sum(bool(result.again) for result in results)} were played again after an infrastructure failure.",
        "",
        *header(
            "family",
            "attacks",
            "with cases",
            "elsewhere",
            "cases",
            "right",
            "false accepts",
            "false rejects",
            "other reason",
            "errors, leaks, late",
            "seconds",
        ),
    ]
    for row in rows(results):
        troubles = sum(int(str(row[name])) for name in ("harness_error", "leak", "late"))
        lines.append(
            f"| {row['letter']} {row['name']} | {row['number']} | {row['covered']} | {row['elsewhere']} "
            f"| {row['cases']} | {row['right']} | {row['false_accept']} | {row['false_reject']} "
            f"| {row['other_reason']} | {troubles} | {row['seconds']:.0f} |"
        )
    lines += [f"\n{result.id} was played again: {cell(result.again[:600])}" for result in results if result.again]
    shown = [result for result in results if every_case or result.finding is not Finding.RIGHT]
    if shown:
        lines += ["", *header("case", "tried", "target", "right answers", "answer", "finding")]
        lines += [
            f"| {result.id} | {cell(result.title)} | {result.target} | {cell(result.wanted)} "
            f"| {result.outcome} `{cell(result.code)}` | {result.finding.value} |"
            for result in shown
        ]
    return "\n".join(lines) + "\n"


def _page(results: Sequence[Result], *, seconds: float, lanes: int, whole: bool) -> str:
    """The page, self-contained."""
    environment = Environment(loader=FileSystemLoader(Path(__file__).parent), autoescape=True, trim_blocks=True)
    return environment.get_template("matrix.html.jinja").render(
        title=_TITLE,
        rows=rows(results),
        results=results,
        counts={finding.value: number for finding, number in counts(results).items()},
        right=Finding.RIGHT,
        seconds=seconds,
        lanes=lanes,
        whole=whole,
        reasons=catalogue.absent(),
    )
