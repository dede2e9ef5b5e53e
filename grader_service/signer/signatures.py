"""Signs verdicts, and notes of erasures, with Ed25519 over their canonical JSON, and checks such signatures.

What is signed is the canonical JSON (RFC 8785) of the verdict without its `signature`: it stays the same when a verdict
is read and written again, in any language.
"""

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import rfc8785
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from grader_service.errors import InfrastructureError
from grader_service.model.keys import KeyList, dated, key_id
from grader_service.model.verdict import Signature, Verdict
from grader_service.signer import key_folder
from grader_service.signer.canonical_json import canonical_json


class SignerAway(InfrastructureError):
    """The signer does not answer: it is asked again later, and no attempt is counted."""


class Signer(ABC):
    """Signs with one private key, wherever that is."""

    @staticmethod
    def from_folder(folder: Path) -> "FolderSigner":
        """With the key in this folder; makes one, readable by its owner only, when there is none.

        Raises:
            ConfigurationError: the file is no Ed25519 private key, or the folder cannot be written to.
        """
        key_folder.make_once(folder)
        return FolderSigner(folder)

    @abstractmethod
    def signature(self, canonical: bytes) -> Signature:
        """Of a document in canonical form.

        Raises:
            SignerAway: nobody signs now.
        """

    @abstractmethod
    def keys(self) -> KeyList:
        """Public keys whose verdicts are taken for this grader's own, the one that signs first.

        Raises:
            SignerAway: nobody knows now.
        """

    @property
    def public_key(self) -> str:
        """The one that signs now, 64 hexadecimal digits."""
        return self.keys().keys[0].public_key

    def sign(self, verdict: Verdict) -> Verdict:
        """The same verdict with its signature.

        Raises:
            SignerAway: nobody signs now.
        """
        document = verdict.model_dump(mode="json", exclude={"signature"})
        return verdict.model_copy(update={"signature": self.signature(canonical_json(document))})

    def sign_document(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """A document of JSON values with its signature.

        Raises:
            SignerAway: nobody signs now.
        """
        return {**document, "signature": self.signature(canonical_json(document)).model_dump(mode="json")}


class KeySigner(Signer):
    """Holds one private key."""

    def __init__(self, key: Ed25519PrivateKey) -> None:
        self._key = key
        self._public_key = key_folder.public_hex(key)
        self._key_id = key_id(self._public_key)

    def signature(self, canonical: bytes) -> Signature:
        """See `Signer.signature`."""
        value = self._key.sign(canonical).hex()
        return Signature(key_id=self._key_id, public_key=self._public_key, value=value)

    def keys(self) -> KeyList:
        """See `Signer.keys`."""
        return KeyList.of([self._public_key])


class FolderSigner(Signer):
    """Signs with the key in a folder, and from a rotation on with the new one.

    Raises:
        ConfigurationError: there is none that can be used.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._seen: tuple[int, int] | None = None
        self._fresh()

    def signature(self, canonical: bytes) -> Signature:
        """See `Signer.signature`."""
        return self._fresh().signature(canonical)

    def keys(self) -> KeyList:
        """See `Signer.keys`."""
        self._fresh()
        return key_folder.key_list(self._folder)

    def _fresh(self) -> KeySigner:
        try:
            found = os.stat(self._folder / key_folder.KEY_FILE)  # noqa: PTH116 - for each signature
        except OSError as error:
            raise SignerAway(f"the signing key cannot be read: {error}; bring it back") from error
        if self._seen != (seen := (found.st_ino, found.st_mtime_ns)):
            self._held = KeySigner(key_folder.private_key(self._folder))
            self._seen = seen
        return self._held


def canonical(document: Mapping[str, Any]) -> bytes:
    """The bytes that are signed: the verdict's JSON document without `signature`."""
    unsigned = {key: value for key, value in document.items() if key != "signature"}
    return rfc8785.dumps(unsigned)


def signed_by(document: Mapping[str, Any]) -> str | None:
    """The public key that truly signed this verdict document, hexadecimal; None when the signature does not hold."""
    try:
        signature = Signature.model_validate(document.get("signature"))
        key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(signature.public_key))
        key.verify(bytes.fromhex(signature.value), canonical(document))
    except (ValueError, InvalidSignature):
        return None
    return signature.public_key if signature.key_id == key_id(signature.public_key) else None


def doubt(document: Mapping[str, Any], signer: str, keys: KeyList) -> str | None:
    """Why a signature that holds is not believed: it is by a key that is unknown, revoked, or was not in use.

    Args:
        document: of a verdict, or a note of an erasure.
        signer: the public key that signed it; see `signed_by`.

    Returns:
        The end of a sentence about the key; None where the document is believed.
    """
    known = keys.get(signer)
    if known is None:
        return (
            f"is another key; expected {' or '.join(one.public_key for one in keys.keys) or 'one, and none is known'}"
        )
    return known.doubt(dated(document))
