"""What happens around the imports of learner code: patches, and no search for garbage while a large package loads."""

import subprocess
import sys
from pathlib import Path

import pytest


def told(folder: Path, code: str) -> list[str]:
    """What code prints that finds our hooks set, and a package `torchvision` that says whether garbage is collected."""
    (folder / "torchvision.py").write_text("import gc\nprint('inside', gc.isenabled())\n")
    (folder / "broken.py").write_text("import gc\nprint('inside', gc.isenabled())\nraise ValueError('no such GPU')\n")
    begin = (
        "import gc, sys\n"
        "from sandbox.guest.learner import import_hooks\n"
        f"sys.path.insert(0, {str(folder)!r})\n"
        "import_hooks.after_import({'broken': print, 'torchvision': lambda _: print('patched')})\n"
    )
    done = subprocess.run([sys.executable, "-c", begin + code], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


@pytest.mark.parametrize(("before", "after"), [("enable", "True"), ("disable", "False")])
def test_large_packages_load_without_collecting_garbage(tmp_path: Path, before: str, after: str) -> None:
    """Whoever collected before collects again, and whoever did not still does not; the patch comes last."""
    code = f"gc.{before}()\nimport torchvision\nprint('after', gc.isenabled())"
    assert told(tmp_path, code) == ["inside False", "patched", f"after {after}"]


def test_a_package_that_fails_leaves_the_collector_on(tmp_path: Path) -> None:
    """Its error is the learner's to see; nothing was patched."""
    code = "try:\n    import broken\nexcept ValueError as error:\n    print(error, gc.isenabled())"
    assert told(tmp_path, code) == ["inside False", "no such GPU True"]
