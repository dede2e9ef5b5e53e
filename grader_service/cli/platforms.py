"""`grader platforms`: who may post submissions, each with a user of its own in both Redis."""

import json
from typing import Annotated

import typer

from grader_service import wiring
from grader_service.cli.arguments import operator, service_store
from grader_service.cli.loading import group
from grader_service.cli.output import console, table_of, tell, when
from grader_service.errors import ConfigurationError
from grader_service.queue.platform_users import PlatformUsers, user_of
from grader_service.settings import Settings, as_user, secret
from grader_service.store.engine import Store
from grader_service.store.events import record

app = group("Platforms that may post: list, add, remove.")

PlatformName = Annotated[str, typer.Argument(metavar="NAME", help="`default` is the platform without a name.")]


@app.command("list")
def list_platforms() -> None:
    """List the platforms, with the queues and prefixes of task ids that only they may use."""
    rows = (
        (
            platform.name,
            " ".join(platform.owned),
            "" if platform.made_at is None else when(platform.made_at),
            str(platform.connections),
            "on" if platform.on else "off",
        )
        for platform in _users(Settings()).platforms()
    )
    console().print(table_of("platform", "own names", "added", "connections", "state", rows=rows))


@app.command("add")
def add(
    name: PlatformName,
    *,
    queues: Annotated[
        list[str] | None,
        typer.Option("--queue", metavar="QUEUE", help="Another name that only it may use, as a queue; repeatable."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="As a JSON object.")] = False,
) -> None:
    """Give a platform access, and print its two URLs, which are not shown again. `default` keeps its password."""
    settings = Settings()
    users = _users(settings)
    store = service_store()  # before anything is done of which the audit trail could not tell
    password = users.add(name, queues or ())
    _record(store, "platform_added", name)
    if password is None:
        tell(f"{name} has access again, with its old password")
        return
    urls = _urls(settings, name, password)
    if as_json:
        typer.echo(json.dumps({"name": name, **urls}))
        return
    tell(f"{name} has access; this is shown once:")
    for variable, url in urls.items():
        typer.echo(f"GRADER_{variable.upper()}={url}")


@app.command("remove")
def remove(name: PlatformName) -> None:
    """Take a platform's access away, and end its connections. Its answers stay until they expire."""
    users = _users(Settings())
    store = service_store()
    users.remove(name)
    _record(store, "platform_removed", name)
    tell(f"{name} has no access any more")


def _users(settings: Settings) -> PlatformUsers:
    """Both Redis servers, as their administrator.

    Raises:
        ConfigurationError: the settings name one server only, or no password.
    """
    if settings.result_url is None or settings.redis_admin_password_file is None:
        raise ConfigurationError(
            "GRADER_RESULT_URL or GRADER_REDIS_ADMIN_PASSWORD_FILE is not set; expected a Redis for answers beside the "
            "broker, and a file with the password of the user `admin` of both, such as secrets/redis_admin_password. "
            "With compose: images/compose.sh run --rm platforms platforms list"
        )
    password = secret(settings.redis_admin_password_file) or ""
    broker, results = (
        wiring.redis_client(as_user(url, "admin", password)) for url in (settings.redis_url, settings.result_url)
    )
    return PlatformUsers(broker, results)


def _urls(settings: Settings, name: str, password: str) -> dict[str, str]:
    """Where a platform posts (`redis_url`), and where it reads (`result_url`), with its user and password."""
    at = {
        "redis_url": settings.platform_redis_url or settings.redis_url,
        "result_url": settings.platform_result_url or settings.result_url or settings.redis_url,
    }
    return {which: as_user(url, user_of(name), password) for which, url in at.items()}


def _record(store: Store, kind: str, name: str) -> None:
    with store.transaction() as connection:
        record(connection, kind, operator(), platform=name)
