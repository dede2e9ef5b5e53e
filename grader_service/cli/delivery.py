"""What a grading leaves behind: the verdict, which is printed whatever happens, and the files that were asked for."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from grader_service.cli.output import check_targets, console, error_console, tell, write_text
from grader_service.cli.preflight_text import show_answer
from grader_service.errors import UsageError
from grader_service.model.evidence import Evidence
from grader_service.model.verdict import Verdict
from grader_service.report.audience import Audience


@dataclass(frozen=True)
class Delivery:
    """Where a verdict goes; `-` is standard output, None nowhere."""

    json_file: str | None = None
    evidence: str | None = None
    report: str | None = None
    audience: Audience = Audience.LEARNER
    """Of the report, and of what is printed."""

    def check(self, source: Path) -> None:
        """Before anything is done; no file may replace `source`, which is the submission.

        Raises:
            UsageError: a file could not be written.
        """
        check_targets({"--json": self.json_file, "--evidence": self.evidence, "--report": self.report}, source)

    def deliver(self, verdict: Verdict, document: str, evidence: Evidence | None = None) -> bool:
        """Writes the files, then prints the verdict; a file that fails takes neither the others nor the verdict away.

        Args:
            verdict: to print.
            document: the same as JSON.
            evidence: None where no run came to its end.

        Returns:
            Whether all files were written; what happened to the others was said, and a lost verdict is on standard
            output as JSON.
        """
        texts = self._texts(verdict, document, evidence)
        lost: list[str] = []
        try:
            for target, text in texts:
                if target != "-":
                    try:
                        write_text(target, text())
                    except UsageError as error:
                        tell(f"grader: {error}", style="bold red")
                        lost.append(target)
        finally:  # whatever our own page may raise
            if self.json_file != "-":
                printed = error_console() if any(target == "-" for target, _ in texts) else console()
                show_answer(printed, verdict, for_staff=self.audience is Audience.STAFF)
                if self.report not in {None, "-", *lost}:
                    printed.print(f"Report: {self.report}", markup=False, soft_wrap=True)
            if self.json_file in lost:
                write_text("-", document)
        for target, text in texts:
            if target == "-":
                write_text(target, text())
        return not lost

    def _texts(self, verdict: Verdict, document: str, evidence: Evidence | None) -> list[tuple[str, Callable[[], str]]]:
        """Each file with what makes its text."""
        texts: list[tuple[str, Callable[[], str]]] = []
        if self.json_file is not None:
            texts.append((self.json_file, lambda: document))
        if self.evidence is not None and evidence is None:
            tell(f"grader: no evidence was written to {self.evidence}: no run finished")
        elif self.evidence is not None and evidence is not None:
            text = evidence.model_dump_json(indent=2) + "\n"
            texts.append((self.evidence, lambda: text))
        if self.report is not None:
            from grader_service.report.html import render_report  # noqa: PLC0415 - few commands need a page

            texts.append((self.report, lambda: render_report(verdict, self.audience)))
        return texts
