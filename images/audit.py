"""Checks the locks for known vulnerabilities and licences, and writes docs/supply-chain.md.

    python -m images.audit [--osv-url URL]

Vulnerabilities are those of the OSV database, asked for each pinned version by pip-audit; licences are held against
`images/lock/licences.json`. It exits with 1 where something was found, and with 3 where the database did not answer for
all of them: then nothing is written, since no answer does not mean that there is nothing.
"""

import argparse
import datetime as dt
import json
import subprocess
import sys
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path

from grader_service.errors import InfrastructureError
from images.licences import POLICY, licence_of, refusal
from images.sbom import locked_hashes

ROOT = Path(__file__).parent.parent
LOCKS = {name: Path(__file__).parent / "lock" / f"{name}.txt" for name in ("service", "lab", "dev")}
REPORT = ROOT / "docs" / "supply-chain.md"
VERSIONS = Path(__file__).parent / "lab" / "versions.md"
"""Why the lab's versions are what they are, and how to have others; part of the page."""
OSV = "https://api.osv.dev/v1/query"


@dataclass(frozen=True)
class Finding:
    """A known vulnerability of a pinned version."""

    package: str
    version: str
    id: str
    fixed: tuple[str, ...]


def pinned(lock: Path) -> dict[str, str]:
    """Version of each package of a lock, by its normalised name."""
    return dict(entry.split("==", 1) for entry in locked_hashes(lock.read_text()))


def known_vulnerabilities(lock: Path, osv_url: str = OSV) -> list[Finding]:
    """What the database knows of a lock's versions.

    Raises:
        InfrastructureError: it did not answer for each of them.
    """
    command = [
        sys.executable, "-m", "pip_audit", "-r", str(lock), "--require-hashes", "--disable-pip",
        "--progress-spinner", "off", "--format", "json", "--vulnerability-service", "osv", "--osv-url", osv_url,
    ]  # fmt: skip
    run = subprocess.run(command, check=False, capture_output=True, text=True)
    try:
        answered = json.loads(run.stdout)["dependencies"]
    except (ValueError, KeyError):
        told = run.stderr.strip().rpartition("\n")[2]
        raise InfrastructureError(f"{osv_url} could not be asked about {lock.name}: {told}") from None
    skipped = [one["name"] for one in answered if "skip_reason" in one]
    if skipped or not answered:
        raise InfrastructureError(f"{osv_url} gave no answer about {', '.join(skipped) or lock.name}")
    return [
        Finding(one["name"], one["version"], found["id"], tuple(found["fix_versions"]))
        for one in answered
        for found in one["vulns"]
    ]


def licences(lock: Path) -> dict[str, str | None]:
    """The licence of each package of a lock that is installed here, by name; None where it says none.

    A package for other platforms or versions of Python is not installed, and not listed.
    """
    found: dict[str, str | None] = {}
    for name in pinned(lock):
        try:
            found[name] = licence_of(metadata(name))
        except PackageNotFoundError:
            continue
    return found


def report(checked: dict[str, list[Finding]] | None, today: str) -> str:
    """The page, as Markdown.

    Args:
        checked: findings by lock; None where the database was not asked.
        today: of the check, ISO 8601.
    """
    rules = json.loads(POLICY.read_text())
    lines = [
        "# Supply chain", "",
        "Written by `make audit` (`images/audit.py`); do not edit.", "",
        VERSIONS.read_text(),
        "## Known vulnerabilities", "",
    ]  # fmt: skip
    if checked is None:
        lines += [
            "Not checked yet: the database (OSV) did not answer where this page was written. `make audit` checks.",
            "",
        ]
    else:
        lines += [
            f"Checked on {today} against {OSV} (OSV).",
            "",
            "| lock | versions | findings |",
            "| --- | --- | --- |",
        ]
        for name, findings in checked.items():
            told = "; ".join(f"{one.package} {one.version}: {one.id}, fixed in {' or '.join(one.fixed) or 'no version'}"
                             for one in findings)  # fmt: skip
            lines.append(f"| {name} | {len(pinned(LOCKS[name]))} | {told or 'none'} |")
        lines.append("")
    lines += [
        "## Licences",
        "",
        "As the metadata of what `make setup` installs says; packages of a lock for other platforms are not listed.",
        "",
    ]
    for name, lock in LOCKS.items():
        by_licence: dict[str, list[str]] = {}
        for package, said in licences(lock).items():
            by_licence.setdefault(said or "not said in a known form", []).append(package)
        lines += [f"### {name}", "", "| licence | packages |", "| --- | --- |"]
        lines += [f"| {said} | {', '.join(packages)} |" for said, packages in sorted(by_licence.items())]
        lines.append("")
    lines += [
        "## Judged one by one", "",
        f"Allowed without a word: {', '.join(rules['allowed'])}. MPL-2.0 binds changes of the files themselves, and "
        "there are none. The others (`images/lock/licences.json`):", "",
    ]  # fmt: skip
    lines += [f"* `{name}*`: {why}" for name, why in rules["families"].items()]
    lines += [f"* `{name}`: {why}" for name, why in rules["exceptions"].items()]
    return "\n".join(lines) + "\n"


def main(arguments: list[str] | None = None) -> int:
    """Checks and writes the page; returns the exit status."""
    parser = argparse.ArgumentParser(description="Checks the locks for known vulnerabilities and licences.")
    parser.add_argument("--osv-url", default=OSV, help="where the OSV database answers queries")
    parser.add_argument("--report", type=Path, default=REPORT, help="the page to write")
    options = parser.parse_args(arguments)
    try:
        checked = {name: known_vulnerabilities(lock, options.osv_url) for name, lock in LOCKS.items()}
    except InfrastructureError as error:
        sys.stderr.write(f"not checked, {options.report.name} is as it was: {error}\n")
        return 3
    problems = [f"{name}: {one.package} {one.version}: {one.id}" for name, found in checked.items() for one in found]
    for name, lock in LOCKS.items():
        refused = {package: refusal(package, said) for package, said in licences(lock).items()}
        problems += [f"{name}: {package}: {why}" for package, why in refused.items() if why]
    options.report.write_text(report(checked, dt.datetime.now(tz=dt.UTC).date().isoformat()))
    sys.stdout.write("".join(f"{line}\n" for line in problems) or "nothing found\n")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
