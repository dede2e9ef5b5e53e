"""Where the broker is."""

from urllib.parse import quote, urlsplit, urlunsplit

from grader_service.settings import Settings


def redis_url(settings: Settings) -> str:
    """The broker's URL with the password of the secret file put in."""
    parts = urlsplit(settings.redis_url)
    password = settings.redis_password()
    if password is None:
        return settings.redis_url
    host = parts.netloc.rpartition("@")[2]
    user = parts.username or ""
    return urlunsplit(parts._replace(netloc=f"{user}:{quote(password, safe='')}@{host}"))
