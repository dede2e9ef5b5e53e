"""What was stored and is read again, and documents that people hand in: evidence, verdicts, labs."""

import functools
import json
from datetime import UTC, datetime

from checks.registry import Registry
from grader_service.labs.catalogue import load_lab
from grader_service.labs.documents import Form, read_document
from grader_service.labs.form import form_of
from grader_service.model.lab import LabSpec
from grader_service.model.submission import Submission
from grader_service.model.verdict import Verdict
from grader_service.model.verdict_summary import summary_of
from grader_service.report.audience import Audience
from grader_service.report.html import render_report
from grader_service.service.verdict_making import verdict_on
from grader_service.signer.signatures import signed_by

LAB = "dali-pipelines"
SUBMISSION = Submission(
    submission_id="fuzz:1",
    lab=LAB,
    submitted_at=datetime(2026, 9, 1, tzinfo=UTC),
    filename="submission.ipynb",
    sha256="0" * 64,
    size_bytes=1,
)


def judged(data: bytes) -> Verdict:
    """The verdict of every check of the lab on stored evidence."""
    return verdict_on(SUBMISSION, _lab(), "0" * 32, "evidence", data, registry(), None)


def evidence(data: bytes) -> object:
    """A run's stored evidence, judged by every check of the lab and made into a verdict."""
    made = judged(data)
    document = made.model_dump_json()
    assert Verdict.model_validate_json(document).model_dump_json() == document
    return summary_of(made)


def verdict(data: bytes) -> object:
    """A verdict that comes back: from the store, or from a file."""
    found = Verdict.model_validate_json(data)
    document = found.model_dump_json()
    assert Verdict.model_validate_json(document).model_dump_json() == document
    summary_of(found)
    for audience in Audience:
        render_report(found, audience).encode()
    return found.status


def signature(data: bytes) -> object:
    """A document that claims to be a signed verdict; see `grader verify`."""
    try:
        document = json.loads(data)
    except RecursionError:
        return None
    return signed_by(document) if isinstance(document, dict) else None


def lab_toml(data: bytes) -> object:
    """An author's lab as TOML."""
    return _read(data, Form.TOML)


def lab_yaml(data: bytes) -> object:
    """An author's lab as YAML."""
    return _read(data, Form.YAML)


def _read(data: bytes, form: Form) -> object:
    read = read_document(data, form)
    assert read
    return read if isinstance(read, tuple) else form_of(read)


@functools.cache
def _lab() -> LabSpec:
    return load_lab(LAB, registry())


registry = functools.cache(Registry)
