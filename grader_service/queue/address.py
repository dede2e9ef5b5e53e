"""Where messages come in, and where answers go."""

from urllib.parse import quote, urlsplit, urlunsplit

from grader_service.settings import Settings


def redis_url(settings: Settings) -> str:
    """The broker's URL with the password of the secret file put in."""
    return _with_password(settings.redis_url, settings.redis_password())


def result_url(settings: Settings) -> str:
    """That of the answers' Redis; the broker's where the settings name none of its own."""
    if settings.result_url is None:
        return redis_url(settings)
    return _with_password(settings.result_url, settings.result_password())


def as_user(url: str, user: str, password: str) -> str:
    """This URL with that user and password in it."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit(parts._replace(netloc=f"{user}:{quote(password, safe='')}@{host}"))


def _with_password(url: str, password: str | None) -> str:
    return url if password is None else as_user(url, urlsplit(url).username or "", password)
