"""`grader schema`: JSON Schema of what goes in and comes out."""

import json
from typing import Annotated, Literal

import typer
from pydantic import BaseModel

from grader_service.model.evidence import Evidence
from grader_service.model.lab import LabSpec
from grader_service.model.preflight import Preflight
from grader_service.model.progress import ProgressEvent
from grader_service.model.verdict import Verdict

Document = Literal["verdict", "evidence", "lab", "progress", "preflight"]
MODELS: dict[Document, type[BaseModel]] = {
    "verdict": Verdict,
    "evidence": Evidence,
    "lab": LabSpec,
    "progress": ProgressEvent,
    "preflight": Preflight,
}
"""Every document with a published schema."""


def schema_text(document: Document) -> str:
    """The schema as it is published in `docs/schema/`."""
    mode = "validation" if document == "lab" else "serialization"
    schema = MODELS[document].model_json_schema(by_alias=True, mode=mode)  # type: ignore[arg-type]
    return json.dumps({"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}, indent=2) + "\n"


def schema(document: Annotated[Document, typer.Argument(help="Which document.")]) -> None:
    """Print the JSON Schema of a document."""
    typer.echo(schema_text(document), nl=False)
