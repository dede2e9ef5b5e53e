"""Finds the probes that checks name, as files: their source is read and parsed here, and never imported.

A probe is one Python file. It is declared in the entry-point group `grader.probes` as `name = "package.module"`, and
says about itself, in constants at its top level:

    PROBE_API = 1            what it is written for
    VERSION = "1.0.0"        raised whenever it could observe something else
    SITE = "graph"           or "learner"; see `grader_service.model.evidence.ProbeSite`
    BUDGET_S = 30.0          seconds that it may take

and defines `probe(context)`, which returns observations as a dict of JSON values. It runs in a pod of the lab image.
"""

import ast
import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.metadata import EntryPoint
from pathlib import Path

from grader_service.errors import ConfigurationError
from grader_service.model.evidence import ProbeSite
from grader_service.plugins.declared import Declared, origin
from grader_service.plugins.located import module_file

GROUP = "grader.probes"
PROBE_API = 1
MAX_SOURCE = 64 << 10
MAX_BUDGET_S = 600.0
_CONSTANTS = ("PROBE_API", "VERSION", "SITE", "BUDGET_S")


@dataclass(frozen=True)
class ProbeFile:
    """A probe as it is carried into a pod."""

    id: str
    version: str
    site: ProbeSite
    budget_s: float
    source: bytes

    @property
    def sha256(self) -> str:
        """Of the source, hexadecimal."""
        return hashlib.sha256(self.source).hexdigest()

    @property
    def lines_sha256(self) -> str:
        """Of the lines that are not blank, or within a text: the same for a probe that only moved in its file."""
        nodes = list(ast.walk(ast.parse(self.source)))  # not their dump, whose form differs between versions of Python
        described = [one.value for one in nodes if isinstance(one, ast.Expr)]  # docstrings, which do nothing
        texts = [one for one in nodes if isinstance(one, (ast.Constant, ast.JoinedStr)) and one not in described]
        within = {number for one in texts for number in range(one.lineno, one.end_lineno or one.lineno)}
        lines = enumerate(self.source.splitlines())
        return hashlib.sha256(b"\n".join(line for at, line in lines if at in within or line.strip())).hexdigest()


class ProbeFiles:
    """The probes that are installed, and those that lie beside a check that is tried from a file."""

    def __init__(self, points: Iterable[EntryPoint] | None = None, folders: Sequence[Path] = ()) -> None:
        """Reads metadata only.

        Args:
            points: the entry points of the group; those that are installed if absent.
            folders: where `NAME.py` is looked for first.
        """
        self._declared = Declared(GROUP, points)
        self._folders = tuple(folders)
        self._read: dict[str, ProbeFile] = {}

    def load(self, probe_id: str) -> ProbeFile:
        """One probe's source and what it says about itself.

        Raises:
            ConfigurationError: it is not installed, installed twice, not readable or no probe; the message names the
                distribution.
        """
        if probe_id not in self._read:
            path, origin = self._find(probe_id)
            self._read[probe_id] = read_probe_file(probe_id, path, origin)
        return self._read[probe_id]

    def _find(self, probe_id: str) -> tuple[Path, str]:
        for folder in self._folders:
            if (folder / f"{probe_id}.py").is_file():
                return folder / f"{probe_id}.py", str(folder)
        point = self._declared.only("probe", probe_id)
        path = module_file(point.module)
        if path is None:
            raise ConfigurationError(
                f"probe {probe_id!r} of {origin(point)} is declared as module {point.module}, "
                "and no file of that name is installed"
            )
        return path, origin(point)


def read_probe_file(probe_id: str, path: Path, origin: str) -> ProbeFile:
    """Reads a probe and checks its form without running it.

    Raises:
        ConfigurationError: it is no probe; the message says what was expected.
    """
    try:
        source = path.read_bytes()
    except OSError as error:
        raise ConfigurationError(f"probe {probe_id!r} of {origin} cannot be read: {error}") from error
    return parse_probe(probe_id, source, origin)


def parse_probe(probe_id: str, source: bytes, origin: str) -> ProbeFile:
    """Checks the form of a probe without running it.

    Raises:
        ConfigurationError: it is no probe; the message says what was expected.
    """
    whose = f"probe {probe_id!r} of {origin}"
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError) as error:
        raise ConfigurationError(f"{whose} cannot be read: {error}") from error
    if len(source) > MAX_SOURCE:
        raise ConfigurationError(f"{whose} has {len(source)} bytes; at most {MAX_SOURCE} are carried into a pod")
    said = _constants(tree)
    problems = _problems(said, tree)
    if problems:
        raise ConfigurationError(f"{whose} is no probe: {'; '.join(problems)}")
    return ProbeFile(probe_id, str(said["VERSION"]), ProbeSite(str(said["SITE"])), float(str(said["BUDGET_S"])), source)


def _constants(tree: ast.Module) -> dict[str, object]:
    said: dict[str, object] = {}
    for node in tree.body:
        if not isinstance(node, (ast.Assign, ast.AnnAssign)):
            continue
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            if isinstance(target, ast.Name) and target.id in _CONSTANTS and isinstance(node.value, ast.Constant):
                said[target.id] = node.value.value
    return said


def _problems(said: dict[str, object], tree: ast.Module) -> list[str]:
    problems = [f"it lacks the constant {name} at its top level" for name in _CONSTANTS if name not in said]
    if "PROBE_API" in said and said["PROBE_API"] != PROBE_API:
        problems.append(f"it is written for probe API {said['PROBE_API']!r}, this grader has {PROBE_API}")
    version = said.get("VERSION", "0.0.0")
    if not isinstance(version, str) or not re.fullmatch(r"\d+\.\d+\.\d+", version, re.ASCII):
        problems.append(f"VERSION must be three numbers with dots, got {version!r}")
    sites = [site.value for site in ProbeSite]
    if said.get("SITE", "graph") not in sites:
        problems.append(f"SITE must be one of {', '.join(sites)}, got {said['SITE']!r}")
    budget = said.get("BUDGET_S", 1.0)
    if isinstance(budget, bool) or not isinstance(budget, (int, float)) or not 0 < budget <= MAX_BUDGET_S:
        problems.append(f"BUDGET_S must be seconds above 0, at most {MAX_BUDGET_S:g}, got {budget!r}")
    if not any(isinstance(node, ast.FunctionDef) and node.name == "probe" for node in tree.body):
        problems.append("it does not define a function `probe(context)`")
    return problems
