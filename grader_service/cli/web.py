"""`grader web`: the admin page."""

from typing import Annotated

import typer

from grader_service.cli.output import say
from grader_service.host.garbage import look_seldom
from grader_service.logs import configure_logs
from grader_service.settings import Settings


def web(
    host: Annotated[str | None, typer.Option(help="Address to listen on, instead of GRADER_WEB_HOST.")] = None,
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="Instead of GRADER_WEB_PORT; 0 takes a free one.")
    ] = None,
    name: Annotated[
        list[str] | None, typer.Option(help="Host name under which a reverse proxy serves the page; repeatable.")
    ] = None,
) -> None:
    """Serve the admin page until stopped: queue, devices, submissions, cohorts, batches of re-grades.

    Users sign in through an OpenID provider or with a token, as configured; see docs/web.md. Exit code 2 when a setting
    is wrong, or when others could read the page without signing in.
    """
    from grader_service import wiring  # noqa: PLC0415 - other commands should not wait for a database driver
    from grader_service.web import oidc  # noqa: PLC0415 - see above
    from grader_service.web.access import read_tokens  # noqa: PLC0415 - see above
    from grader_service.web.hosts import trusted_proxies  # noqa: PLC0415 - see above
    from grader_service.web.serving import make_site, serve  # noqa: PLC0415 - see above

    settings = Settings()
    configure_logs("web")
    host = host if host is not None else settings.web_host
    port = port if port is not None else settings.web_port
    tokens = read_tokens(settings.web_viewer_token_file, settings.web_operator_token_file)
    provider, proxies = oidc.configured(settings), trusted_proxies(settings.web_trusted_proxies)
    site = make_site(wiring.ready_store(settings), tokens, host, name or (), provider, wiring.operator_store(settings))
    look_seldom()  # its pages of a cohort or a batch read thousands of verdicts
    serve(site, host, port, say, proxies)
