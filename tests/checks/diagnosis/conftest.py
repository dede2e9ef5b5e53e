"""Data for the snippets, and what each of them really raised, from one child process for all of them."""

import importlib
import importlib.util
import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from checks.diagnosis.rows import FAMILIES, SILENT
from tests.checks.diagnosis.snippets import PRELUDE
from tests.conftest import missing

ROOT = Path(__file__).resolve().parents[3]


def all_snippets() -> dict[str, str]:
    """The whole source of every snippet by its key, of every family."""
    found: dict[str, str] = {}
    for family in FAMILIES:
        if family == SILENT:
            continue
        module = importlib.import_module(f"tests.checks.diagnosis.snippets.{family}")
        prelude = "" if getattr(module, "ALONE", False) else PRELUDE
        for key, source in module.SNIPPETS.items():
            assert key not in found, f"two snippets are called {key}"
            found[key] = prelude + source
    return found


@pytest.fixture(scope="session")
def provoked(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """`raised`: key of each snippet to the exception that it really raised; `names`: those of the installed DALI."""
    if any(importlib.util.find_spec(name) is None for name in ("torch", "torchvision", "nvidia", "nvidia.dali")):
        missing("torch, torchvision or DALI is not installed (the `lab` extra)")
    folder = tmp_path_factory.mktemp("provoked")
    request = {
        "folder": str(folder),
        "data": str(make_data(folder / "lab-data")),
        "snippets": [{"id": key, "source": source} for key, source in all_snippets().items()],
    }
    result = subprocess.run(
        [sys.executable, "-m", "tests.checks.diagnosis.provoke"],
        input=json.dumps(request),
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=800,
        check=True,
    )
    *snippets, names = map(json.loads, result.stdout.splitlines())
    return {"raised": {answer["id"]: answer["exception"] for answer in snippets}, "names": names["names"]}


def make_data(root: Path) -> Path:
    """Folders of every kind that snippets point at; images have different sizes."""
    from PIL import Image

    kinds = {"text": b"this is no image", "empty": b""}
    for number in range(10):
        pixels = Image.frombytes("RGB", (8, 6), random.Random(number).randbytes(144))
        image = pixels.resize((50 + number, 40 + number), Image.Resampling.BILINEAR)
        name = f"{number}.jpg"
        for folder in ("images/class_0", "images/class_1", "flat", "text/a", "empty/a", "cut/a", "grey/a"):
            (root / folder).mkdir(parents=True, exist_ok=True)
        for folder in ("images/class_0", "images/class_1", "flat"):
            image.save(root / folder / name, quality=85)
        for kind, content in kinds.items():
            (root / kind / "a" / name).write_bytes(content)
        (root / "cut" / "a" / name).write_bytes((root / "flat" / name).read_bytes()[:300])
        image.convert("L").save(root / "grey" / "a" / name)
    (root / "nothing").mkdir()
    (root / "no_images" / "a").mkdir(parents=True)
    (root / "no_images" / "a" / "notes.txt").write_text("no image")
    return root
