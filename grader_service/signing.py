"""Signs verdicts, and notes of erasures, with Ed25519 over their canonical JSON, and checks such signatures.

Canonical JSON (RFC 8785) is the verdict without its `signature`: whoever reads the verdict and writes it again, in any
language, still has what was signed.
"""

import hashlib
import os
import re
import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import rfc8785
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from grader_service.canonical_json import canonical_json
from grader_service.errors import ConfigurationError, UsageError
from grader_service.model.verdict import Signature, Verdict

_KEY_FILE = "verdict-signing.pem"
_RETIRED_FILE = "retired-public-keys"


class Signer:
    """Holds one private key."""

    def __init__(self, key: Ed25519PrivateKey) -> None:
        self._key = key
        self.public_key = _raw(key.public_key()).hex()

    @classmethod
    def from_folder(cls, folder: Path) -> "Signer":
        """The key in this folder; makes one, readable by its owner only, when there is none.

        Raises:
            ConfigurationError: the file is no Ed25519 private key.
        """
        path = folder / _KEY_FILE
        if not path.exists():
            folder.mkdir(parents=True, exist_ok=True)
            # Written aside and linked: two graders that start at once agree on one key.
            aside = _new_key(folder)
            try:
                os.link(aside, path)
            except FileExistsError:
                pass
            finally:
                aside.unlink()
        try:
            loaded = serialization.load_pem_private_key(path.read_bytes(), password=None)
        except ValueError as error:
            raise ConfigurationError(f"{path} is not a private key in PEM form: {error}") from error
        if not isinstance(loaded, Ed25519PrivateKey):
            raise ConfigurationError(f"{path} holds a {type(loaded).__name__}; expected an Ed25519 private key")
        return cls(loaded)

    @classmethod
    def rotate(cls, folder: Path) -> "Signer":
        """Makes a new key; the public part of the old one joins those that `retired_keys` names.

        Raises:
            ConfigurationError: the old key cannot be read.
        """
        old = cls.from_folder(folder)
        _retire(folder, [old.public_key])  # first: whatever happens in between, what was signed stays verifiable
        _new_key(folder).replace(folder / _KEY_FILE)
        return cls.from_folder(folder)

    def sign(self, verdict: Verdict) -> Verdict:
        """The same verdict with its signature."""
        signature = self._signature(verdict.model_dump(mode="json", exclude={"signature"}))
        return verdict.model_copy(update={"signature": signature})

    def sign_document(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """A document of JSON values with its signature."""
        return {**document, "signature": self._signature(document).model_dump(mode="json")}

    def _signature(self, document: Mapping[str, Any]) -> Signature:
        value = self._key.sign(canonical_json(document)).hex()
        return Signature(key_id=key_id(self.public_key), public_key=self.public_key, value=value)


def retired_keys(folder: Path) -> list[str]:
    """Public keys that signed verdicts here before, oldest first, hexadecimal."""
    path = folder / _RETIRED_FILE
    return list(dict.fromkeys(path.read_text().split())) if path.exists() else []


def known_keys(folder: Path) -> list[str]:
    """Public keys whose verdicts are taken for this grader's own: the one in use if there is one, then retired ones."""
    return [*([Signer.from_folder(folder).public_key] if has_key(folder) else []), *retired_keys(folder)]


def retire(folder: Path, keys: Sequence[str]) -> None:
    """Has verdicts of these public keys verify, hexadecimal."""
    if new := [key for key in keys if key not in known_keys(folder)]:
        folder.mkdir(parents=True, exist_ok=True)
        _retire(folder, new)


def has_key(folder: Path) -> bool:
    """Whether there is a key to sign with."""
    return (folder / _KEY_FILE).exists()


def private_key(folder: Path) -> bytes:
    """The key that signs, in PEM form.

    Raises:
        ConfigurationError: there is none.
    """
    try:
        return (folder / _KEY_FILE).read_bytes()
    except OSError as error:
        raise ConfigurationError(f"the signing key cannot be read: {error}") from error


def put_key(folder: Path, data: bytes) -> None:
    """Puts a key, in PEM form, where none is; it signs from now on.

    Raises:
        ConfigurationError: it is no Ed25519 private key.
    """
    folder.mkdir(parents=True, exist_ok=True)
    _aside(folder, data).replace(folder / _KEY_FILE)
    Signer.from_folder(folder)


def public_key(text: str) -> str:
    """A public key that somebody gave, in the form in which verdicts name theirs.

    Raises:
        UsageError: it is none.
    """
    key = text.strip().lower()
    if not re.fullmatch("[0-9a-f]{64}", key):
        raise UsageError(
            f"expected a public key of 64 hexadecimal digits, got {key[:80]!r}; `grader keys show` prints it"
        )
    return key


def canonical(document: Mapping[str, Any]) -> bytes:
    """The bytes that are signed: the verdict's JSON document without `signature`."""
    unsigned = {key: value for key, value in document.items() if key != "signature"}
    return rfc8785.dumps(unsigned)


def key_id(public_key: str) -> str:
    """Short name of a public key, given as 64 hexadecimal digits."""
    return hashlib.sha256(bytes.fromhex(public_key)).hexdigest()[:16]


def signed_by(document: Mapping[str, Any]) -> str | None:
    """The public key that truly signed this verdict document, hexadecimal; None when the signature does not hold."""
    try:
        signature = Signature.model_validate(document.get("signature"))
        key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(signature.public_key))
        key.verify(bytes.fromhex(signature.value), canonical(document))
    except (ValueError, InvalidSignature):
        return None
    return signature.public_key if signature.key_id == key_id(signature.public_key) else None


def _new_key(folder: Path) -> Path:
    data = Ed25519PrivateKey.generate().private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return _aside(folder, data)


def _aside(folder: Path, data: bytes) -> Path:
    aside = folder / f".{_KEY_FILE}.{secrets.token_hex(4)}"
    descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
    return aside


def _retire(folder: Path, keys: Sequence[str]) -> None:
    with (folder / _RETIRED_FILE).open("a") as file:
        file.writelines(f"{key}\n" for key in keys)
        file.flush()
        os.fsync(file.fileno())


def _raw(key: Ed25519PublicKey) -> bytes:
    return key.public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
