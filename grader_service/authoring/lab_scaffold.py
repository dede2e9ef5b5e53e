"""Makes a new lab with example submissions; nothing that is there already is overwritten."""

from importlib.resources import files
from pathlib import Path
from string import Template

from pydantic import TypeAdapter, ValidationError

from grader_service.errors import UsageError
from grader_service.labs.discovery import installed
from grader_service.labs.documents import SUFFIXES
from grader_service.model.base import Identifier

PASSING, FAILING = "passing", "failing"
"""Folders whose submissions have to pass, and to fail."""
_IDENTIFIER: TypeAdapter[str] = TypeAdapter(Identifier)


def create_lab(name: str, into: Path) -> tuple[Path, Path]:
    """Writes a lab, and a folder with a submission that passes and one that fails.

    Returns:
        The lab's file, `NAME.toml`, and the folder, `NAME`, in `into`, which is made where it is not there.

    Raises:
        UsageError: the name cannot be used, or something is there already.
    """
    try:
        _IDENTIFIER.validate_python(name)
    except ValidationError:
        raise UsageError(
            f"{name!r} cannot be the id of a lab: expected 1 to 128 of A-Z a-z 0-9 . _ : -, such as image-decoding"
        ) from None
    if name.startswith((".", "-")) or name.endswith(tuple(SUFFIXES)):
        raise UsageError(
            f"{name!r} cannot name a lab's file: begin with a letter or a digit, and leave out the file's ending"
        )
    if name in installed().ids():
        raise UsageError(f"there is a lab {name!r} already, from {installed().origin(name)}; choose another name")
    lab, folder = into / f"{name}.toml", into / name
    for path in (lab, folder):
        if path.exists():
            raise UsageError(f"{path} is there already; nothing was written")
    words = {"name": name, "title": name.replace("-", " ").replace("_", " ").capitalize()}
    targets = {
        "lab.toml": lab,
        "complete.py": folder / PASSING / "complete.py",
        "few_images.py": folder / FAILING / "few_images.py",
    }
    try:
        for template, path in targets.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            text = (files(__package__) / "templates" / f"{template}.tmpl").read_text(encoding="utf-8")
            with path.open("x", encoding="utf-8") as stream:
                stream.write(Template(text).substitute(words))
    except OSError as error:
        raise UsageError(f"{into} cannot be written: {error}") from error
    return lab, folder
