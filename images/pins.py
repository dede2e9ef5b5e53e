"""Which images are taken from a registry, and by which digest: `images/lock/registry.json`.

    python -m images.pins

asks the registries, through the engine, for the digest of each tag, and writes it there and into the files that name
the image. Where a digest could not be had it says so and exits with 1; what was pinned before stays.
"""

import datetime as dt
import json
import re
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from docker.errors import DockerException

ROOT = Path(__file__).parent.parent
LOCK = Path(__file__).parent / "lock" / "registry.json"
USERS = (
    "compose.yaml",
    "deploy/kubernetes/redis.yaml",
    "deploy/kubernetes/results.yaml",
    "deploy/kubernetes/postgres.yaml",
)
"""Files of the repository in which the references stand as text: compose and Kubernetes read no other file."""
_DIGEST = r"sha256:[0-9a-f]{64}"


@dataclass(frozen=True)
class Pin:
    """One image of a registry."""

    name: str
    tag: str
    digest: str | None
    """Of the index of all platforms, `sha256:…`; None where it is not known: the tag alone is used then."""
    resolved: str | None
    """Day on which the registry gave this digest, ISO 8601; None where it has another source."""

    @property
    def reference(self) -> str:
        """What an engine pulls."""
        return f"{self.name}:{self.tag}" + (f"@{self.digest}" if self.digest else "")


def read_pins(path: Path = LOCK) -> dict[str, Pin]:
    """The pinned images by key.

    Raises:
        ValueError: an entry has no tag, or a digest of another form.
    """
    pins = {key: Pin(**entry) for key, entry in json.loads(path.read_text()).items()}
    for key, pin in pins.items():
        if not pin.tag or (pin.digest is not None and not re.fullmatch(_DIGEST, pin.digest)):
            raise ValueError(f"{path}: {key} needs a tag, and null or sha256: and 64 hexadecimal digits as digest")
    return pins


def resolve(client: Any, pins: Mapping[str, Pin], today: str) -> tuple[dict[str, Pin], dict[str, str]]:
    """Asks the registries for the digest of each tag.

    Args:
        client: of the engine, which knows registries, their certificates and logins.
        today: ISO 8601.

    Returns:
        The pins, with what was found, and by key why something was not.
    """
    found, problems = dict(pins), {}
    for key, pin in pins.items():
        try:
            digest = str(client.images.get_registry_data(f"{pin.name}:{pin.tag}").id)
        except (DockerException, OSError) as error:  # the connection's own errors are OSErrors
            problems[key] = str(error)
        else:
            found[key] = replace(pin, digest=digest, resolved=today)
    return found, problems


def write(pins: Mapping[str, Pin], lock: Path = LOCK, root: Path = ROOT) -> list[str]:
    """Writes the lock, and its references into the files that name its images; returns those that changed."""
    entries = {key: asdict(pin) for key, pin in pins.items()}
    lock.write_text(json.dumps(entries, indent=2) + "\n")
    changed = []
    for name in USERS:
        path = root / name
        before = path.read_text()
        after = _with_references(before, pins)
        if after != before:
            path.write_text(after)
            changed.append(name)
    return changed


def _with_references(text: str, pins: Mapping[str, Pin]) -> str:
    for pin in pins.values():
        # A tag here begins as a version does; redis:6379 in an address does not.
        text = re.sub(rf"(?<![\w/.]){re.escape(pin.name)}:\d+\.[\w.-]+(?:@{_DIGEST})?", pin.reference, text)
    return text


def main() -> int:
    """Pins all images; returns the exit status."""
    from sandbox.docker.engine import connect_engine  # noqa: PLC0415 - what reads pins needs no engine

    found, problems = resolve(connect_engine(), read_pins(), dt.datetime.now(tz=dt.UTC).date().isoformat())
    changed = write(found)
    for key, pin in found.items():
        sys.stdout.write(f"{key}: {problems.get(key, pin.reference)}\n")
    sys.stdout.write(f"changed: {', '.join(changed) or 'nothing but the lock'}\n")
    if problems:
        sys.stderr.write(f"not resolved, left as before: {', '.join(problems)}; try again where the registry answers\n")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
