"""The folder of the signing key: the private key, and beside it the list of all public keys with their times.

verdict-signing.pem     the private key that signs, readable by its owner only
public-keys.json        `KeyList`
"""

import fcntl
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from grader_service.errors import ConfigurationError, UsageError
from grader_service.model.keys import KeyList, PublicKey, Revocation, key_id

KEY_FILE = "verdict-signing.pem"
LIST_FILE = "public-keys.json"


def has_key(folder: Path) -> bool:
    """Whether there is a key to sign with."""
    return (folder / KEY_FILE).exists()


def pem(folder: Path) -> bytes:
    """The private key, in PEM form.

    Raises:
        ConfigurationError: there is none, or it is not for this process to read.
    """
    try:
        return (folder / KEY_FILE).read_bytes()
    except OSError as error:
        raise ConfigurationError(
            f"the signing key cannot be read: {error}; `grader keys make` makes one where none was ever"
        ) from error


def parsed(data: bytes, source: str) -> Ed25519PrivateKey:
    """A private key from PEM form.

    Raises:
        ConfigurationError: it is no Ed25519 private key.
    """
    try:
        loaded = serialization.load_pem_private_key(data, password=None)
    except (ValueError, TypeError) as error:
        raise ConfigurationError(f"{source} is not a private key in PEM form: {error}") from error
    if not isinstance(loaded, Ed25519PrivateKey):
        raise ConfigurationError(f"{source} holds a {type(loaded).__name__}; expected an Ed25519 private key")
    return loaded


def private_key(folder: Path) -> Ed25519PrivateKey:
    """The key that signs.

    Raises:
        ConfigurationError: there is none that can be used.
    """
    return parsed(pem(folder), str(folder / KEY_FILE))


def public_hex(key: Ed25519PrivateKey) -> str:
    """The public part of a private key, 64 hexadecimal digits."""
    raw = key.public_key().public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
    return raw.hex()


def key_list(folder: Path) -> KeyList:
    """All public keys, the one that signs first, then those of before.

    Raises:
        ConfigurationError: the list, or the key, cannot be read.
    """
    try:
        text = (folder / LIST_FILE).read_bytes()
    except FileNotFoundError:
        listed = KeyList(keys=())
    except OSError as error:
        raise ConfigurationError(f"the list of public keys cannot be read: {error}") from error
    else:
        listed = _read(text, folder / LIST_FILE)
    if not has_key(folder):
        return listed
    signing = public_hex(private_key(folder))
    if listed.get(signing) is None:
        listed = listed.with_key(PublicKey(public_key=signing))
    return listed.first(signing)


def make(folder: Path, data: bytes | None = None) -> str:
    """Makes the first key.

    Args:
        folder: made where it is not there.
        data: take this private key, in PEM form, in place of a new one.

    Raises:
        UsageError: there is one already.
        ConfigurationError: the data are no Ed25519 private key.
    """
    with _alone(folder):
        if has_key(folder):
            raise UsageError(
                f"there is a key in {folder}, {public_hex(private_key(folder))}; `grader keys rotate` puts another in "
                "its place, and keeps what it signed valid"
            )
        return _put(folder, key_list(folder), data)


def make_once(folder: Path) -> None:
    """Makes a key where none is: graders that start at once agree on one.

    Raises:
        ConfigurationError: the folder cannot be written to.
    """
    if not has_key(folder):
        with _alone(folder):
            if not has_key(folder):
                _put(folder, key_list(folder), None)


def rotate(folder: Path, data: bytes | None = None) -> tuple[str, str]:
    """Puts another key in the place of the one that signs; returns both public keys, the old one first.

    Args:
        data: take this private key, in PEM form, in place of a new one.

    Raises:
        ConfigurationError: there is none, or the data are none.
    """
    with _alone(folder):
        old = public_hex(private_key(folder))
        listed = key_list(folder)
        entry = listed.get(old)
        assert entry is not None  # noqa: S101 - the list has the key that signs
        listed = listed.with_key(entry.model_copy(update={"until": _now()}))
        return old, _put(folder, listed, data)


def revoke(folder: Path, key: str, reason: str, since: datetime | None) -> PublicKey:
    """Says of a key that it was stolen.

    Args:
        key: 64 hexadecimal digits, or its id.
        reason: for everybody who reads the list.
        since: from when on nothing that is dated so is believed; None: nothing at all.

    Raises:
        UsageError: no key of this list, or the one that signs.
    """
    with _alone(folder):
        listed = key_list(folder)
        found = next((one for one in listed.keys if key in (one.public_key, key_id(one.public_key))), None)
        if found is None:
            known = ", ".join(key_id(one.public_key) for one in listed.keys) or "none"
            raise UsageError(f"{key[:80]!r} is no key of this service; expected the id or the digits of one: {known}")
        if has_key(folder) and found.public_key == public_hex(private_key(folder)):
            raise UsageError(f"{found.public_key} is the key that signs: `grader keys rotate` first, then revoke it")
        gone = found.model_copy(update={"revoked": Revocation(at=_now(), since=since, reason=reason)})
        _write(folder, listed.with_key(gone))
        return gone


def add(folder: Path, others: KeyList) -> list[str]:
    """Has this service know public keys of its own from before, such as those of a backup; returns those that are new.

    The times of a key that is known already widen, and an end takes the place of one that is not known. Revocations are
    taken over, too, and none is taken back.

    Raises:
        ConfigurationError: the folder cannot be written to.
    """
    with _alone(folder):
        listed, new = key_list(folder), []
        signing = public_hex(private_key(folder)) if has_key(folder) else None
        for one in others.keys:
            known = listed.get(one.public_key)
            if known is None:
                new.append(one.public_key)
                listed = listed.with_key(one)
            else:
                listed = listed.with_key(_widened(known, one, signs=one.public_key == signing))
        _write(folder, listed)
        return new


def _widened(known: PublicKey, other: PublicKey, *, signs: bool) -> PublicKey:
    begins, ends = (known.from_, other.from_), [one for one in (known.until, other.until) if one is not None]
    return known.model_copy(
        update={
            "from_": None if None in begins else min(one for one in begins if one is not None),
            # A list that was made while the key signed has no end of it.
            "until": None if signs or not ends else max(ends),
            "revoked": known.revoked or other.revoked,
        }
    )


def _put(folder: Path, listed: KeyList, data: bytes | None) -> str:
    key = Ed25519PrivateKey.generate() if data is None else parsed(data, "what was given")
    name = public_hex(key)
    known = listed.get(name)
    if known is not None and known.revoked is not None:
        raise UsageError(f"{name} is revoked: {known.revoked.reason}; it must not sign again")
    text = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    # A key that comes back signs from when it was first known; that it did not for a while is not kept. One that was
    # given may have signed before this folder knew it.
    entry = known or PublicKey(public_key=name, from_=_now() if data is None else None)
    entry = entry.model_copy(update={"until": None})
    aside = _aside(folder, KEY_FILE, text)
    _write(folder, listed.with_key(entry))  # first: whatever happens in between, what is signed can be verified
    aside.replace(folder / KEY_FILE)
    return name


def _read(text: bytes, path: Path) -> KeyList:
    try:
        return KeyList.read(text, str(path))
    except UsageError as error:
        raise ConfigurationError(str(error)) from None


def _write(folder: Path, listed: KeyList) -> None:
    data = listed.model_dump_json(indent=2).encode() + b"\n"
    _aside(folder, LIST_FILE, data).replace(folder / LIST_FILE)


def _aside(folder: Path, name: str, data: bytes) -> Path:
    aside = folder / f".{name}.{secrets.token_hex(4)}"
    descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    return aside


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """One at a time changes what is in the folder."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)
    except OSError as error:
        raise ConfigurationError(f"the folder of keys cannot be changed: {error}") from error


def _now() -> datetime:
    return datetime.now(UTC).replace(microsecond=0)
