"""Names and addresses of the page, its visitors, and the proxies between them.

A page of another origin must not reach it through a name of its own.
"""

import ipaddress
from collections.abc import Iterable, Sequence

from grader_service.errors import ConfigurationError

LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})


def is_loopback(host: str) -> bool:
    """Whether only this machine can connect to this address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def is_anywhere(host: str) -> bool:
    """Whether this address stands for every interface."""
    try:
        return ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return False


def allowed_names(host: str, names: Iterable[str]) -> frozenset[str] | None:
    """The names that a request may ask for; None when any will do.

    A server on every interface cannot know its names: it takes any, unless some are given.
    """
    given = frozenset(name.lower() for name in names)
    if is_anywhere(host):
        return given | LOOPBACK_NAMES if given else None
    if is_loopback(host):
        return given | LOOPBACK_NAMES | {host.lower()}
    return given | {host.lower()}


def trusted_proxies(text: str) -> Sequence[str]:
    """The networks of a setting, those of IPv4 also as a server on `::` sees them.

    Raises:
        ConfigurationError: a part is neither an address nor a network.
    """
    found = []
    for part in text.split():
        try:
            network = ipaddress.ip_network(part)
        except ValueError as error:
            raise ConfigurationError(
                "GRADER_WEB_TRUSTED_PROXIES takes addresses and networks separated by spaces, such as "
                f"`127.0.0.1 10.1.0.0/16`: {error}"
            ) from None
        found.append(str(network))
        if network.version == 4:
            found.append(f"::ffff:{network.network_address}/{96 + network.prefixlen}")
    return found


def name_of(header: str) -> str:
    """The name in a `Host` header or in the part of an origin after `//`, without the port, in lower case."""
    if header.startswith("[") and "]" in header:
        return header[1:].partition("]")[0].lower()
    return header.rpartition(":")[0].lower() if header.count(":") == 1 else header.lower()


def address(host: str, port: int) -> str:
    """The address to open in a browser."""
    shown = "127.0.0.1" if is_anywhere(host) else host
    return f"http://[{shown}]:{port}/" if ":" in shown else f"http://{shown}:{port}/"
