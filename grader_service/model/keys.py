"""The public keys of a service with the times in which they sign: an owner publishes them, platforms believe them."""

import hashlib
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal, Self

from pydantic import AwareDatetime, Field, ValidationError

from grader_service.errors import UsageError
from grader_service.model.base import ShortText, Wire, first_problem

NEAR = timedelta(minutes=5)
"""How far the time in a document may be from that of its signature: clocks differ, and judging takes a while."""
PublicKeyText = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


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


def key_id(public_key: str) -> str:
    """Short name of a public key, given as 64 hexadecimal digits."""
    return hashlib.sha256(bytes.fromhex(public_key)).hexdigest()[:16]


class Revocation(Wire):
    """A key was stolen, or may have been."""

    at: AwareDatetime
    """When an operator said so."""
    since: AwareDatetime | None
    """Nothing that is dated from here on is believed; null: nothing at all, since a thief dates as he likes."""
    reason: ShortText


class PublicKey(Wire):
    """A key that signs or signed."""

    public_key: PublicKeyText
    from_: AwareDatetime | None = Field(default=None, alias="from")
    """When it began to sign; null where that is not known."""
    until: AwareDatetime | None = None
    """When another one took its place; null: it signs, or its end is not known."""
    revoked: Revocation | None = None

    def doubt(self, at: datetime | None) -> str | None:
        """Why nothing that it signed with this time in it is believed; None where it is.

        Args:
            at: the document's own time; None where it has none, which only a key without bounds may sign.
        """
        if self.revoked is not None and (self.revoked.since is None or at is None or at >= self.revoked.since):
            scope = f" for all since {_text(self.revoked.since)}" if self.revoked.since else ""
            return f"is revoked{scope}: {self.revoked.reason}"
        if at is None:
            return None if self.from_ is None and self.until is None else "signs documents with a time in them, only"
        if self.from_ is not None and at < self.from_ - NEAR:
            return f"was not in use at {_text(at)}, but from {_text(self.from_)} on"
        if self.until is not None and at > self.until + NEAR:
            return f"was not in use at {_text(at)}, but until {_text(self.until)}"
        return None


class KeyList(Wire):
    """All public keys of a service; the one that signs comes first."""

    schema_id: Literal["grader.keys/v1"] = Field(default="grader.keys/v1", alias="schema")
    keys: tuple[PublicKey, ...]

    @classmethod
    def of(cls, public_keys: Iterable[str]) -> Self:
        """Of keys without any bounds, 64 hexadecimal digits each.

        Raises:
            UsageError: one is none.
        """
        return cls(keys=tuple(PublicKey(public_key=public_key(key)) for key in public_keys))

    @classmethod
    def read(cls, text: str | bytes, source: str) -> Self:
        """From JSON, as `grader keys list --json` prints it.

        Args:
            text: the document.
            source: what it is called in messages.

        Raises:
            UsageError: it is none.
        """
        try:
            return cls.model_validate_json(text)
        except ValidationError as error:
            raise UsageError(
                f"{source}: expected a list of keys as `grader keys list --json` prints it, got {first_problem(error)}"
            ) from None

    @property
    def trusted(self) -> list[str]:
        """Those that are not revoked, for who keeps no times."""
        return [one.public_key for one in self.keys if one.revoked is None]

    def get(self, public_key: str) -> PublicKey | None:
        """The entry of a key."""
        return next((one for one in self.keys if one.public_key == public_key), None)

    def with_key(self, changed: PublicKey) -> Self:
        """With this entry in the place of the one for the same key, or at the end."""
        if self.get(changed.public_key) is None:
            return self.model_copy(update={"keys": (*self.keys, changed)})
        kept = tuple(changed if one.public_key == changed.public_key else one for one in self.keys)
        return self.model_copy(update={"keys": kept})

    def first(self, public_key: str) -> Self:
        """With this key in front."""
        return self.model_copy(update={"keys": tuple(sorted(self.keys, key=lambda one: one.public_key != public_key))})


def dated(document: Mapping[str, Any]) -> datetime | None:
    """The time that a verdict, or the note of an erasure, has in it; None where there is none."""
    text = document.get("created_at") or document.get("finished_at")
    try:
        found = datetime.fromisoformat(text) if isinstance(text, str) else None
    except ValueError:
        return None
    return found if found is not None and found.tzinfo is not None else None


def _text(time: datetime | None) -> str:
    return "" if time is None else time.astimezone(UTC).isoformat(timespec="seconds")
