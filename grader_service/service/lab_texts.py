"""Lab documents that are kept for runs and batches; knows no check, so that what runs submissions can use it."""

from grader_service.labs.discovery import LabText
from grader_service.labs.documents import Form
from grader_service.model.lab import LabRef
from grader_service.store.engine import Store
from grader_service.store.results import load_blob


def kept_text(store: Store, ref: LabRef) -> LabText:
    """A document as it was when the run was accepted, or its batch was planned.

    Raises:
        InfrastructureError: it is missing or damaged.
    """
    return LabText(None, load_blob(store, ref.sha256), Form(ref.form), f"{ref.sha256[:12]}.{ref.form}", "the store")
