"""Who a person is, and what they may do, by the claims of an ID token that has been found to be genuine."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from grader_service.model.base import neutralise
from grader_service.web.access import Role

_LONGEST_NAME = 150
"""Characters; an actor in the audit trail has at most 200."""

_LONGEST_SUBJECT = 255
"""Characters, by OpenID Connect Core 1.0, section 2."""


class SignInFailed(Exception):
    """A person could not be signed in through the provider.

    Args:
        status: of the answer.
        title: what happened, in a few words.
        text: what it means and what to do, for the person.
        reason: for the log; never a secret.
    """

    def __init__(self, status: int, title: str, text: str, reason: str) -> None:
        super().__init__(reason)
        self.status, self.title, self.text, self.reason = status, title, text, reason


@dataclass(frozen=True)
class Person:
    """Somebody whom the provider vouches for."""

    role: Role
    name: str
    """For people."""
    subject: str
    """The provider's own id, which it never gives to anybody else."""


@dataclass(frozen=True)
class Rules:
    """Which claims decide, and what they have to say."""

    name_claim: str
    role_claim: str
    operators: frozenset[str]
    viewers: frozenset[str]

    def person(self, claims: Mapping[str, Any]) -> Person:
        """The person of an ID token.

        Raises:
            SignInFailed: it has no usable subject or name, an address that nobody has verified, or neither role.
        """
        subject = claims.get("sub")
        if not (isinstance(subject, str) and 0 < len(subject) <= _LONGEST_SUBJECT and subject.isprintable()):
            raise SignInFailed(
                502,
                "The provider did not say who you are",
                f"Its ID token needs a claim “sub” with at most {_LONGEST_SUBJECT} printable characters. Tell whoever "
                "runs the grader.",
                f"claim 'sub' is {str(subject)[:300]!r}",
            )
        name = claims.get(self.name_claim)
        if not (isinstance(name, str) and _usable(name)):
            raise SignInFailed(
                502,
                "The provider did not say who you are",
                f"Its ID token needs a claim “{self.name_claim}” with a printable name of at most {_LONGEST_NAME} "
                "characters. Tell whoever runs the grader; GRADER_WEB_OIDC_NAME_CLAIM chooses the claim.",
                f"claim {self.name_claim!r} is {str(name)[:200]!r}; the ID token has {', '.join(sorted(claims))}",
            )
        # At many providers people enter the address by themselves.
        if "email" in {self.name_claim, self.role_claim} and claims.get("email_verified") is not True:
            raise SignInFailed(
                403,
                "Your e-mail address is not verified",
                f"The provider knows you as {name} and does not say that the address is yours. Verify it there, "
                "then sign in again.",
                f"{name!r} has an address without email_verified=true",
            )
        role = self._role(claims.get(self.role_claim))
        if role is Role.NOBODY:
            raise SignInFailed(
                403,
                "You have no access",
                f"You are signed in at the provider as {name}, and there nothing makes you a viewer or an operator of "
                "the grader. Ask whoever runs it to give you one of these roles, then sign in again. To come as "
                "somebody else, sign out at the provider first.",
                f"{name!r} has no role by the claim {self.role_claim!r}: {str(claims.get(self.role_claim))[:500]}",
            )
        return Person(role, name, subject)

    def _role(self, claim: object) -> Role:
        values = {value for value in (claim if isinstance(claim, list) else [claim]) if isinstance(value, str)}
        if values & self.operators:
            return Role.OPERATOR
        return Role.VIEWER if values & self.viewers else Role.NOBODY


def _usable(name: str) -> bool:
    return 0 < len(name) <= _LONGEST_NAME and name.isprintable() and name == neutralise(name).strip()
