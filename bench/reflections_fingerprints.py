"""Makes `checks/prose/fingerprints.txt` anew, by which the check `reflections` recognises the lab's pages.

`python bench/reflections_fingerprints.py PAGE.txt ... > checks/prose/fingerprints.txt`
"""

import sys
from collections.abc import Iterable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from checks.prose.copied import RUN, runs

_PER_LINE = 12


def fingerprint(texts: Iterable[str]) -> str:
    """The file's text for these pages; neither order nor count of the runs can be read from it."""
    values = [f"{value:08x}" for value in sorted({value for text in texts for value in runs(text)})]
    lines = [" ".join(values[start : start + _PER_LINE]) for start in range(0, len(values), _PER_LINE)]
    return "\n".join([f"# First 32 bits of BLAKE2b hashes of runs of {RUN} words, sorted.", *lines, ""])


def main() -> None:
    """Reads the pages named on the command line and prints their fingerprints."""
    sys.stdout.write(fingerprint(Path(page).read_text(encoding="utf-8") for page in sys.argv[1:]))


if __name__ == "__main__":
    main()
