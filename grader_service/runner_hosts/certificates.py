"""The TLS certificates of both ends: each end knows the other's very certificate, so that no authority is needed.

A certificate stands for its own connections only; its key cannot sign another one. It is good for twenty years: it is
ended when the other end forgets it, not by a date.
"""

import datetime as dt
import ssl
from collections.abc import Iterable, Sequence
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from grader_service.errors import ConfigurationError

_GOOD_FOR = dt.timedelta(days=20 * 365)
_CLOCKS_DIFFER = dt.timedelta(days=1)


def make_pair(name: str, *, server: bool) -> tuple[bytes, bytes]:
    """A new private key and its certificate, as PEM.

    Args:
        name: of the host, up to 64 characters.
        server: for the end that is connected to, else for the one that connects. Neither serves as the other.
    """
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    usage = ExtendedKeyUsageOID.SERVER_AUTH if server else ExtendedKeyUsageOID.CLIENT_AUTH
    now = dt.datetime.now(dt.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _CLOCKS_DIFFER)
        .not_valid_after(now + _GOOD_FOR)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([usage]), critical=True)
        .sign(key, hashes.SHA256())
    )
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return secret, certificate.public_bytes(serialization.Encoding.PEM)


def accepting(certificate: Path, key: Path, known: Iterable[Path], routes: Sequence[str]) -> ssl.SSLContext:
    """For the end that is connected to: it takes who has the key of a known certificate, and nobody else.

    Args:
        known: certificates of the others.
        routes: what may be asked for, by ALPN.

    Raises:
        ConfigurationError: a file is missing, or holds something else.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.verify_mode = ssl.CERT_REQUIRED
    context.num_tickets = 0  # each connection shows its certificate
    return _filled(context, certificate, key, known, routes)


def connecting(certificate: Path, key: Path, control: Path, route: str) -> ssl.SSLContext:
    """For the end that connects: it speaks with who has the key of the control host's certificate.

    Raises:
        ConfigurationError: a file is missing, or holds something else.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False  # the certificate itself is known, whatever address its owner has
    return _filled(context, certificate, key, [control], [route])


def same(path: Path, certificate: bytes) -> bool:
    """Whether a file (PEM) holds this certificate (DER); not where it was removed meanwhile."""
    try:
        return ssl.PEM_cert_to_DER_cert(path.read_text()) == certificate
    except (OSError, ValueError):
        return False


def _filled(
    context: ssl.SSLContext, certificate: Path, key: Path, known: Iterable[Path], routes: Sequence[str]
) -> ssl.SSLContext:
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.set_alpn_protocols(list(routes))
    try:
        context.load_cert_chain(certificate, key)
    except OSError as error:
        raise ConfigurationError(
            f"{certificate} and {key} cannot be used: {error}; expected the files that `grader hosts` made"
        ) from error
    for path in known:
        try:
            context.load_verify_locations(path)
        except OSError as error:
            raise ConfigurationError(f"{path} is no certificate: {error}") from error
    return context
