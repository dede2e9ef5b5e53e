"""A cohort as a zip of Gradescope documents: `results.json` in a folder for each submission, and `manifest.csv`.

A document holds what its learner may see, as `grader export --format gradescope` writes it. What must not become a
grade has no document; the manifest says why.
"""

import csv
import hashlib
import io
import re
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from grader_service.exports.choosing import held_back
from grader_service.exports.cohorts.cells import Cell, chunks, csv_cell
from grader_service.exports.cohorts.targets import writing
from grader_service.exports.grades import grade_of
from grader_service.exports.gradescope import gradescope
from grader_service.exports.reading import Found, Refused, read
from grader_service.model.verdict_summary import CohortEntry

Documents = Callable[[Sequence[str]], Mapping[str, str]]
"""Verdict ids to their documents, JSON text; an id without a document is left out."""

MANIFEST = (
    "file",
    "submission_id",
    "learner",
    "cohort",
    "lab",
    "status",
    "score",
    "max_score",
    "graded",
    "verdict_id",
    "problem",
)
_AT_ONCE = 200
_MOST_NAME = 100
_EARLIEST = (1980, 1, 1, 0, 0, 0)
"""Of every file: the same verdicts give the same bytes."""
_ANYWHERE = frozenset("abcdefghijklmnopqrstuvwxyz0123456789_")
_RESERVED = re.compile(r"(con|prn|aux|nul|conin\$|conout\$|com\d|lpt\d)(\.|$)")
"""Names that Windows keeps for devices, whatever follows the dot."""


@dataclass(frozen=True)
class Bundled:
    """What a bundle holds."""

    documents: int
    held_back: int
    """Submissions that are in the manifest only."""


def write_bundle(
    target: str, entries: Iterable[CohortEntry], documents: Documents, *, allow_rehearsal: bool = False
) -> Bundled:
    """Writes the bundle of a cohort to a file, or to standard output for `-`.

    A few hundred documents are in memory at once. Rehearsals get one only if they are allowed, as if they were grades.

    Raises:
        UsageError: the file cannot be written.
    """
    written, held = 0, 0
    with (
        writing(target) as file,
        zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as bundle,
        tempfile.TemporaryFile() as manifest,
    ):
        manifest.write(_csv_line(MANIFEST))
        for some in chunks(entries, _AT_ONCE):
            texts = documents([entry.summary.verdict_id for entry in some])
            for entry in some:
                found = _found(entry, texts.get(entry.summary.verdict_id), allow_rehearsal=allow_rehearsal)
                name = ""
                if isinstance(found, Found):
                    name = f"{folder_name(entry.summary.submission_id)}/results.json"
                    results = gradescope(found.verdict).model_dump_json(indent=2, exclude_none=True)
                    bundle.writestr(_info(name), f"{results}\n")
                written, held = written + bool(name), held + (not name)
                manifest.write(_csv_line(_described(entry, found, name)))
        manifest.seek(0)
        with bundle.open(_info("manifest.csv"), "w", force_zip64=True) as listed:
            while piece := manifest.read(1 << 16):
                listed.write(piece)
    return Bundled(written, held)


def folder_name(submission_id: str) -> str:
    """A folder for a submission: different for different ids on any file system, told from the id alone.

    Lower-case letters, digits and `_` stay, and so do dots and `-` in between; every other byte becomes `%` and two
    digits, as does the first letter of a name that Windows keeps for itself. A name over 100 characters is cut and gets
    `~` and sixteen digits of the id's SHA-256.
    """
    encoded = submission_id.encode("utf-8", "surrogatepass")
    last = len(encoded) - 1
    name = "".join(
        chr(byte) if chr(byte) in _ANYWHERE or (0 < index < last and chr(byte) in ".-") else f"%{byte:02X}"
        for index, byte in enumerate(encoded)
    )
    if _RESERVED.match(name):
        name = f"%{ord(name[0]):02X}{name[1:]}"
    if not name or len(name) > _MOST_NAME:
        return f"{name[:_MOST_NAME]}~{hashlib.sha256(encoded).hexdigest()[:16]}"
    return name


def _found(entry: CohortEntry, text: str | None, *, allow_rehearsal: bool) -> Found | Refused:
    source = f"verdict {entry.summary.verdict_id}"
    if text is None:
        return Refused(source, "the verdict's document is not there", held_back=False)
    found = next(read(source, text.encode("utf-8", "replace"), ()))
    if isinstance(found, Refused):
        return found
    return held_back(found, allow_rehearsal=allow_rehearsal, max_score=None) or found


def _described(entry: CohortEntry, found: Found | Refused, name: str) -> Sequence[Cell]:
    summary = entry.summary
    graded = isinstance(found, Found) and grade_of(found.verdict) is not None
    return (
        name,
        summary.submission_id,
        summary.learner,
        summary.cohort,
        summary.lab,
        summary.status.value,
        summary.score,
        summary.max_score,
        graded,
        summary.verdict_id,
        found.problem if isinstance(found, Refused) else None,
    )


def _csv_line(cells: Sequence[Cell]) -> bytes:
    line = io.StringIO(newline="")
    csv.writer(line, lineterminator="\r\n").writerow([csv_cell(cell) for cell in cells])
    return line.getvalue().encode()


def _info(name: str) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name, _EARLIEST)
    info.compress_type = zipfile.ZIP_DEFLATED
    info.external_attr = 0o644 << 16
    return info
