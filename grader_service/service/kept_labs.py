"""Labs as runs and batches keep them: taken from what is installed or a file, read again by every worker."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from checks.registry import Registry
from grader_service.errors import UsageError
from grader_service.labs.catalogue import load_lab_file, parse_lab
from grader_service.labs.discovery import LabText, read_at_most
from grader_service.labs.documents import SUFFIXES
from grader_service.labs.specs import lab_text
from grader_service.model.lab import LabRef, LabSpec
from grader_service.model.regrade import BatchLab
from grader_service.service.lab_texts import kept_text
from grader_service.store.engine import Store


@dataclass(frozen=True)
class TakenLab:
    """A lab that a run or a batch will be graded by."""

    spec: LabSpec
    text: LabText

    @property
    def sha256(self) -> str:
        """Of the document."""
        return hashlib.sha256(self.text.content).hexdigest()

    def record(self, registry: Registry) -> BatchLab:
        """What the batch keeps of it, beside the document."""
        checks = [check.id for step in self.spec.steps for check in step.checks]
        return BatchLab(
            lab=self.spec.id,
            version=self.spec.version,
            sha256=self.sha256,
            form=self.text.form.value,
            origin=self.text.origin,
            check_versions={check: registry.load(check).version_text[:200] for check in checks},
        )


def installed_lab(lab_id: str, registry: Registry) -> TakenLab:
    """The lab as it is installed now.

    Raises:
        UsageError: there is none.
        ConfigurationError: it is wrong.
    """
    text = lab_text(lab_id)
    return TakenLab(parse_lab(text, f"lab {lab_id}", registry), text)


def labs_in_files(paths: Sequence[Path], registry: Registry) -> Mapping[str, TakenLab]:
    """Labs from files, by id: changes that are tried before they are installed.

    Raises:
        UsageError: a file cannot be read, or two have the same id.
        ConfigurationError: a specification is wrong.
    """
    taken: dict[str, TakenLab] = {}
    for path in paths:
        spec = load_lab_file(path, registry)
        if spec.id in taken:
            raise UsageError(f"two files hold the lab {spec.id!r}; give one of them")
        text = LabText(None, read_at_most(path), SUFFIXES[path.suffix.lower()], path.name, path.name[:200])
        taken[spec.id] = TakenLab(spec, text)
    return taken


def kept_lab(store: Store, ref: LabRef, registry: Registry) -> LabSpec:
    """The lab of a run or a batch, with its checks loaded.

    Raises:
        InfrastructureError: the document is missing or damaged.
        ConfigurationError: what is installed here cannot grade by it, such as a check that is missing.
    """
    text = kept_text(store, ref)
    return parse_lab(text, f"lab {text.name}", registry)
