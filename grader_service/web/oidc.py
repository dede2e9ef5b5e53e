"""Signing in at an OpenID provider: authorization code with PKCE, state and nonce, by Authlib.

What a sign-in has to remember until the browser comes back is sealed into a cookie of that browser.
"""

import hmac
import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any
from urllib.parse import urlsplit

from authlib.common.errors import AuthlibBaseError
from authlib.integrations.base_client import OAuthError
from authlib.integrations.base_client.sync_app import BaseApp, OAuth2Mixin
from authlib.integrations.base_client.sync_openid import OpenIDMixin
from authlib.oidc.core import CodeIDToken
from cryptography.fernet import Fernet, InvalidToken
from joserfc.errors import ClaimError, JoseError, MissingClaimError

from grader_service.errors import ConfigurationError
from grader_service.settings import Settings, secret
from grader_service.web.bounded_session import BoundedSession
from grader_service.web.claims import Person, Rules, SignInFailed
from grader_service.web.hosts import is_loopback

PENDING_S = 600
"""Seconds that a person may take at the provider."""
_LEEWAY_S = 60
"""How far the clocks of provider and page may be apart."""
_STALE_S = 10.0
"""Age of the provider's description from which a failed sign-in has it and the keys fetched anew."""
_MOST_AT_ONCE = 8
"""Sign-ins that ask the provider at the same time: one that hangs must not take the threads that make pages."""
_ENDPOINTS = ("authorization_endpoint", "token_endpoint", "jwks_uri")
_SIGNATURES = frozenset(
    {"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA", "Ed25519"}
)
"""Those that only the provider can make: not `none`, and none by a secret that both sides hold."""


@dataclass(frozen=True)
class Client:
    """What the provider knows this page by."""

    issuer: str
    client_id: str
    client_secret: str
    scopes: str = "openid"


@dataclass(frozen=True)
class PendingSignIn:
    """What has to be remembered of a sign-in that is under way."""

    state: str
    nonce: str
    code_verifier: str
    redirect_uri: str
    target: str


class _App(OAuth2Mixin, OpenIDMixin, BaseApp):  # type: ignore[misc] # Authlib has no types
    client_cls = BoundedSession


class Provider:
    """Sends visitors to an OpenID provider, and says who they are when they come back."""

    def __init__(self, client: Client, rules: Rules, clock: Callable[[], float] = time.time) -> None:
        self.issuer = client.issuer
        self.host = urlsplit(client.issuer).netloc
        """What visitors know it by."""
        self._client, self._rules, self._clock = client, rules, clock
        self._seal = Fernet(Fernet.generate_key())
        self._made: Any = None
        """Made when the provider is first needed, so that the page starts without it."""
        self._made_at = 0.0
        self._doubted = False
        """Whether a sign-in failed by what was fetched: the provider may have other keys or addresses by now."""
        self._free = threading.BoundedSemaphore(_MOST_AT_ONCE)

    def begin(self, redirect_uri: str, target: str) -> tuple[str, str]:
        """The address at the provider that a visitor is sent to, and what the browser's cookie has to hold meanwhile.

        The provider sends the visitor back to `redirect_uri`; in the end they go to `target`.

        Raises:
            SignInFailed: the provider does not answer.
        """
        with self._asking():
            sent = self._app().create_authorization_url(redirect_uri)
        pending = PendingSignIn(sent["state"], sent["nonce"], sent["code_verifier"], redirect_uri, target)
        sealed = self._seal.encrypt_at_time(json.dumps(asdict(pending)).encode(), int(self._clock()))
        return str(sent["url"]), sealed.decode()

    def resume(self, sealed: str, said: Mapping[str, str]) -> PendingSignIn:
        """The sign-in with which a browser comes back, by its cookie and the parameters of the address.

        Raises:
            SignInFailed: it began none here, or another one.
        """
        try:
            text = self._seal.decrypt_at_time(sealed.encode(), PENDING_S, int(self._clock()))
            pending = PendingSignIn(**json.loads(text))
        except InvalidToken:
            pending = None
        if pending is None or not hmac.compare_digest(pending.state.encode(), said.get("state", "").encode()):
            raise SignInFailed(
                400,
                "This sign-in is over",
                f"It began in another tab or browser, more than {PENDING_S // 60} minutes ago, or before the page was "
                "started anew. Sign in again.",
                "no cookie of this sign-in" if pending is None else "the state is that of another sign-in",
            )
        return pending

    def person(self, pending: PendingSignIn, said: Mapping[str, str]) -> Person:
        """Who came back.

        Raises:
            SignInFailed: the provider does not say who it is, in a way that can be trusted, or they have no role here.
        """
        if "error" in said:
            raise _refused_by_provider(said)
        with self._asking():
            app = self._app()
            token = app.fetch_access_token(
                pending.redirect_uri, code=said.get("code", ""), code_verifier=pending.code_verifier
            )
            claims = app.parse_id_token(
                token,
                pending.nonce,
                # Authlib alone would take a token for somebody else that names this page as the authorized party.
                claims_options={"iss": {"value": self.issuer}, "aud": {"value": self._client.client_id}},
                claims_cls=CodeIDToken,
                leeway=_LEEWAY_S,
            )
            if claims is None:
                raise ValueError("the token endpoint sent no ID token; GRADER_WEB_OIDC_SCOPES needs `openid`")
            return self._rules.person(claims)

    def _app(self) -> Any:
        young = 0 <= self._clock() - self._made_at < _STALE_S  # not negative: clocks are set back
        if self._made is None or (self._doubted and not young):
            self._made = _App(
                None,
                client_id=self._client.client_id,
                client_secret=self._client.client_secret,
                client_kwargs={
                    "scope": self._client.scopes,
                    "code_challenge_method": "S256",
                },
                **_discovered(self.issuer),
            )
            self._made_at, self._doubted = self._clock(), False
        return self._made

    @contextmanager
    def _asking(self) -> Iterator[None]:
        """Around what asks the provider: says what went wrong there."""
        if not self._free.acquire(blocking=False):
            raise self._silent(f"{_MOST_AT_ONCE} sign-ins wait for an answer")
        try:
            yield
        except SignInFailed:
            raise
        except OAuthError as error:
            raise _refused_to_us(error) from error
        except ClaimError as error:
            self._doubted = True
            raise _bad_claim(error) from error
        except (JoseError, AuthlibBaseError) as error:
            self._doubted = True
            raise SignInFailed(
                502,
                "The provider's answer cannot be trusted",
                "Its ID token is not signed with a key of the provider. Nobody was signed in; tell whoever runs the "
                "grader.",
                f"ID token refused: {type(error).__name__}: {error}",
            ) from error
        except Exception as error:
            # Whatever is made of answers in another form than a provider's.
            self._doubted = True
            raise self._silent(f"{type(error).__name__}: {error}") from error
        finally:
            self._free.release()

    def _silent(self, reason: str) -> SignInFailed:
        return SignInFailed(
            503,
            "The provider does not answer",
            f"{self.issuer} could not be asked who you are, or did not answer as an OpenID provider does. Try again in "
            "a minute; if it stays so, tell whoever runs the grader. The log of `grader web` has the reason.",
            reason,
        )


def configured(settings: Settings) -> Provider | None:
    """The provider of these settings; None when none is set.

    Raises:
        ConfigurationError: some of what is needed is missing, or the provider would be asked without TLS.
    """
    issuer, client_id = settings.web_oidc_issuer, settings.web_oidc_client_id
    client_secret = secret(settings.web_oidc_client_secret_file)
    operators, viewers = settings.web_oidc_operators.split(), settings.web_oidc_viewers.split()
    if not (issuer or client_id or client_secret or operators or viewers):
        return None
    if not (issuer and client_id and client_secret and (operators or viewers)):
        raise ConfigurationError(
            "signing in through an OpenID provider needs GRADER_WEB_OIDC_ISSUER, GRADER_WEB_OIDC_CLIENT_ID, "
            "GRADER_WEB_OIDC_CLIENT_SECRET_FILE, and GRADER_WEB_OIDC_OPERATORS or GRADER_WEB_OIDC_VIEWERS; "
            "set all of them or none: docs/web.md"
        )
    try:
        where = urlsplit(issuer)
    except ValueError:
        where = urlsplit("")
    host = where.hostname or ""
    if not host or (where.scheme != "https" and not (where.scheme == "http" and is_loopback(host))):
        raise ConfigurationError(
            f"GRADER_WEB_OIDC_ISSUER must be an address that begins with https://, got {issuer!r}; without TLS only a "
            "provider on this machine is asked"
        )
    rules = Rules(settings.web_oidc_name_claim, settings.web_oidc_role_claim, frozenset(operators), frozenset(viewers))
    return Provider(Client(issuer, client_id, client_secret, settings.web_oidc_scopes), rules)


def _discovered(issuer: str) -> dict[str, Any]:
    """What the provider says of itself, as far as it is needed.

    Raises:
        RequestException: it does not answer, or not in JSON.
        ValueError: it answers for another issuer, or with what cannot be used safely.
    """
    with BoundedSession() as session:
        answer = session.get(f"{issuer.rstrip('/')}/.well-known/openid-configuration", withhold_token=True)
    answer.raise_for_status()
    said = answer.json()
    if not isinstance(said, dict) or said.get("issuer") != issuer:
        there = said.get("issuer") if isinstance(said, dict) else None
        raise ValueError(f"the provider calls itself {there!r}; GRADER_WEB_OIDC_ISSUER must be the same to the letter")
    scheme = issuer.partition("://")[0]
    for name in _ENDPOINTS:
        if not str(said.get(name)).startswith((f"{scheme}://", "https://")):
            raise ValueError(f"the provider's {name} is {said.get(name)!r}; an address with {scheme} is needed")
    signatures = said.get("id_token_signing_alg_values_supported", ["RS256"])
    usable = sorted(_SIGNATURES.intersection(signatures))
    if not usable:
        raise ValueError(f"the provider signs ID tokens with {signatures}; one of {sorted(_SIGNATURES)} is needed")
    return {"id_token_signing_alg_values_supported": usable, **{name: said[name] for name in ("issuer", *_ENDPOINTS)}}


def _refused_by_provider(said: Mapping[str, str]) -> SignInFailed:
    reason = f"the provider sent back {said['error']!r}: {said.get('error_description', '')!r}"
    if said["error"] == "access_denied":
        return SignInFailed(
            403, "You were not signed in", "You, or the provider, said no. Nothing has changed here.", reason
        )
    return _refused(said["error"], reason)


def _refused(error: object, reason: str) -> SignInFailed:
    return SignInFailed(
        502,
        "The provider refused the sign-in",
        f"It gave the reason “{str(error)[:100]}”. Sign in again; if it stays so, tell whoever runs the grader.",
        reason,
    )


def _refused_to_us(error: OAuthError) -> SignInFailed:
    reason = f"the token endpoint answered {error}"
    if error.error == "invalid_grant":
        return SignInFailed(
            400,
            "This sign-in is over",
            "The provider no longer knows it: it was used before, or too long ago. Sign in again.",
            reason,
        )
    if str(error.error) not in {"invalid_client", "unauthorized_client"}:
        return _refused(error.error, reason)
    return SignInFailed(
        502,
        "The provider does not accept this page",
        "It did not say who you are, because it refuses this page's id or secret. Tell whoever runs the grader to "
        "compare GRADER_WEB_OIDC_CLIENT_ID and GRADER_WEB_OIDC_CLIENT_SECRET_FILE with what the provider has.",
        reason,
    )


def _bad_claim(error: ClaimError) -> SignInFailed:
    reason = f"ID token refused: {error}"
    if error.claim in {"exp", "iat", "nbf"} and not isinstance(error, MissingClaimError):
        return SignInFailed(
            502,
            "The clocks do not agree",
            f"By the clock of this server the provider's ID token is not valid now; {_LEEWAY_S} s of difference are "
            "allowed. Tell whoever runs the grader to set the clock.",
            f"{reason}; this server's clock says {int(time.time())}",
        )
    return SignInFailed(
        502,
        "The provider's answer cannot be trusted",
        f"Its ID token is for somebody or something else (claim “{error.claim}”). Nobody was signed in; sign in again, "
        "and if it stays so, tell whoever runs the grader.",
        reason,
    )
