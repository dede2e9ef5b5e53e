"""The parts of each level, in the order in which they run: what is cheap first."""

import re
from collections.abc import Iterable, Sequence
from functools import cache

from tests.levels.parts import BIN, ROOT, Part, pytest_part
from tests.levels.shards import BY_TEST, QUICK_CORPUS, case_unit, defence_unit, divided, longest_first, recorded

IMAGES = "images"
_WHOLE = r"(?m)^pytestmark = .*pytest\.mark\.({})\b"
"""A file that is marked as a whole: importing torch to leave its tests out takes seconds."""


def check() -> list[Part]:
    """Linter, formatter, types, import contracts, and the tests that need no service."""
    elsewhere = _having(_WHOLE.format("integration|slow"))
    return [
        Part("linter", (str(BIN / "ruff"), "check", ".")),
        Part("formatter", (str(BIN / "ruff"), "format", "--check", ".")),
        Part("types", (str(BIN / "mypy"),), beside=True),
        Part("import contracts", (str(BIN / "lint-imports"), "--no-logo"), beside=True),
        pytest_part(
            "tests without services",
            *("-m", "not integration and not slow"),
            _listed("files-without-services", longest_first(_files() - elsewhere)),
        ),
    ]


def test() -> list[Part]:
    """What a change must pass beside `check`."""
    slow = _having(_WHOLE.format("slow"))
    return [
        images(),
        pytest_part(
            "quick corpus and tests with services",
            *("-m", "integration and not slow and not alone"),
            _listed("files", [QUICK_CORPUS, *longest_first(_files() - slow)]),
            more=1,
            after=IMAGES,
        ),
        *_alone("tests alone", _files() - slow, "alone and not slow"),
    ]


def images() -> Part:
    """Builds what pods and the stack's services run from; where nothing changed, that takes seconds."""
    return Part(IMAGES, (str(BIN / "grader"), "images", "build", "all", "stand-ins"))


def shard(number: int, of: int) -> list[Part]:
    """One shard of everything."""
    return [images(), *of_units(divided(units(), of, recorded())[number - 1], f"shard {number} of {of}")]


def of_units(chosen: Sequence[str], name: str) -> list[Part]:
    """Parts that run these units, whatever level their tests belong to."""
    # First single tests, then files: a process that went from one to the other and back would open its world anew.
    single_first = sorted(longest_first(chosen), key=lambda unit: "::" not in unit)
    beside = pytest_part(f"{name}, beside each other", "-m", "not alone", _listed(name, single_first), after=IMAGES)
    return [beside, *_alone(f"{name}, alone", chosen, "alone")]


def _alone(name: str, chosen: Iterable[str], marks: str) -> list[Part]:
    """The part of those tests in these units that nothing may run beside, if there are any."""
    files = sorted(_having(r"pytest\.mark\.alone\b").intersection(chosen))
    return [pytest_part(name, "-m", marks, *files, alone=True, after=IMAGES)] if files else []


def units() -> list[str]:
    """Every unit of `make test-all`."""
    from tests.corpus import catalogue, defences

    single = [case_unit(case.id) for case in catalogue.cases()]
    single += [defence_unit(defence.id) for defence in defences.defences()]
    return sorted({*single, *_files()})


def _files() -> set[str]:
    """Files of tests that are units, so neither the corpus nor its quick part."""
    files = {str(path.relative_to(ROOT)) for path in (ROOT / "tests").rglob("test_*.py")}
    return files - BY_TEST


@cache
def _having(pattern: str) -> frozenset[str]:
    """Files of tests in which this is found."""
    files = (ROOT / "tests").rglob("test_*.py")
    return frozenset(str(file.relative_to(ROOT)) for file in files if re.search(pattern, file.read_text()))


def _listed(name: str, arguments: Sequence[str]) -> str:
    """A file that pytest reads arguments from: there may be hundreds."""
    path = ROOT / "build" / "tests" / f"{name.replace(' ', '-')}.txt"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(arguments) + "\n")
    return f"@{path}"
