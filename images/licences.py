"""Which licences packages may have: `images/lock/licences.json`, held against what their metadata says."""

import json
import re
from email.message import Message
from importlib.metadata import PackageMetadata
from pathlib import Path

POLICY = Path(__file__).parent / "lock" / "licences.json"
_CLASSIFIED = {
    "Apache Software License": "Apache-2.0",
    "BSD License": "BSD-3-Clause",
    "ISC License (ISCL)": "ISC",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Python Software Foundation License": "PSF-2.0",
}
"""SPDX id of a classifier; "BSD License" does not say which, and the one with most conditions is assumed."""
_WRITTEN = {
    "Apache": "Apache-2.0",
    "Apache 2.0": "Apache-2.0",
    "Apache License 2.0": "Apache-2.0",
    "BSD": "BSD-3-Clause",
}
_PLAIN = r"[A-Za-z0-9.+-]+(?: (?:AND|OR|WITH) [A-Za-z0-9.+-]+)*"


def licence_of(metadata: PackageMetadata | Message) -> str | None:
    """The SPDX expression of a distribution; None where its metadata does not say it in a known form.

    In this order: `License-Expression`, classifiers, the field `License`.
    """
    said = metadata["License-Expression"]
    if said:
        return str(said)
    classified = [
        _CLASSIFIED[name]
        for line in metadata.get_all("Classifier") or []
        if line.startswith("License :: ") and (name := line.rpartition(" :: ")[2]) in _CLASSIFIED
    ]
    if classified:
        return " OR ".join(dict.fromkeys(classified))
    written = (metadata["License"] or "").strip()
    written = _WRITTEN.get(written, written)
    return written if re.fullmatch(_PLAIN, written) else None


def refusal(name: str, said: str | None, policy: Path = POLICY) -> str | None:
    """Why a package may not be used; None where it may.

    Every id of its expression must be allowed: of alternatives, too, since nothing records which one was chosen.
    """
    rules = json.loads(policy.read_text())
    if name in rules["exceptions"] or any(name.startswith(start) for start in rules["families"]):
        return None
    if said is None:
        return "its metadata names no licence in a known form"
    ids = re.findall(r"[A-Za-z0-9.+-]+", re.sub(r"\b(AND|OR|WITH)\b", " ", said))
    refused = [one for one in ids if one not in rules["allowed"]]
    return f"{', '.join(refused)} is not allowed" if refused else None
