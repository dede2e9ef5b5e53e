"""An OpenID provider that says whatever a test wants, over real HTTP, for what a real one never says."""

import json
import threading
import time
from base64 import urlsafe_b64encode
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

from joserfc import jwt
from joserfc.jwk import KeySet, RSAKey

from tests.web.client import Client

KEY = RSAKey.generate_key(2048, {"kid": "of-the-provider", "use": "sig", "alg": "RS256"})
OTHER_KEY = RSAKey.generate_key(2048, {"kid": "of-the-provider", "use": "sig", "alg": "RS256"})
CLIENT_ID = "grader"


@dataclass
class Double:
    """Its answers: a value is sent as JSON with 200, a pair of status and text, or texts, as it is."""

    issuer: str
    answers: dict = field(default_factory=dict)
    asked: list = field(default_factory=list)
    """Path and form of each request."""

    def forget(self):
        """Whatever it was asked and told: it says what is right again."""
        self.asked.clear()
        self.answers.clear()
        self.answers["/.well-known/openid-configuration"] = self.metadata()
        self.answers["/jwks"] = KeySet([KEY]).as_dict(private=False)

    def metadata(self, **changes):
        """What it says of itself."""
        said = {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/auth",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/jwks",
            "id_token_signing_alg_values_supported": ["RS256", "HS256", "none"],
        }
        return said | changes

    def id_token(self, nonce, key=KEY, header=None, **claims):
        """An operator's, but for these claims; None leaves one out."""
        now = int(time.time())
        said = {
            "iss": self.issuer,
            "sub": "id-of-alice",
            "aud": CLIENT_ID,
            "exp": now + 300,
            "iat": now,
            "nonce": nonce,
            "preferred_username": "alice",
            "groups": ["grader-operators"],
        }
        said = {name: value for name, value in (said | claims).items() if value is not None}
        header = header or {"alg": "RS256", "kid": "of-the-provider"}
        if header["alg"] == "none":
            return f"{_part(header)}.{_part(said)}."
        return jwt.encode(header, said, key, algorithms=[header["alg"]])

    def hands_out(self, id_token):
        """From now on, for any code."""
        self.answers["/token"] = {"access_token": "x", "token_type": "Bearer", "id_token": id_token}


def _part(value):
    return urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


@contextmanager
def openid_double():
    """One that serves its metadata and its key."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.answer()

        def do_POST(self):
            self.answer()

        def answer(self):
            length = int(self.headers.get("content-length", 0))
            double.asked.append((self.path, parse_qs(self.rfile.read(length).decode())))
            answer = double.answers.get(self.path, (404, "nothing here"))
            status, text = answer if isinstance(answer, tuple) else (200, json.dumps(answer))
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            with suppress(ConnectionError):
                for piece in [text] if isinstance(text, str) else text:
                    self.wfile.write(piece.encode())

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        double = Double(f"http://127.0.0.1:{server.server_port}")
        double.forget()
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield double
        finally:
            server.shutdown()
            thread.join()


def sent_to(answer):
    """The parameters that a browser takes along to the provider."""
    assert answer.status == 303, answer.text
    return {name: value for name, (value,) in parse_qs(urlsplit(answer.headers["location"]).query).items()}


def back(client, **parameters):
    """The callback, with these parameters."""
    query = "&".join(f"{name}={value}" for name, value in parameters.items())
    return client.get(f"/login/oidc/callback?{query}")


def signed_in(port, double, target="/", **claims):
    """Somebody who came back with an ID token of these claims, and the answer."""
    client = Client(port)
    sent = sent_to(client.get(f"/login/oidc?next={target}"))
    double.hands_out(double.id_token(**{"nonce": sent["nonce"]} | claims))
    return client, back(client, code="a", state=sent["state"])


def known(provider, double, key):
    """Who comes back with an ID token that is signed with this key."""
    there, sealed = provider.begin("http://127.0.0.1/login/oidc/callback", "/")
    sent = {name: value for name, (value,) in parse_qs(urlsplit(there).query).items()}
    double.hands_out(double.id_token(sent["nonce"], key=key))
    return provider.person(provider.resume(sealed, {"state": sent["state"]}), {"code": "a"}).name
