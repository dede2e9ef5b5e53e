"""Services of the tests work as the roles of the database that compose gives them."""

from sqlalchemy import make_url

from grader_service.store.rights import RIGHTS

PASSWORDS = {role: f"password-of-{role}" for role in RIGHTS}
_ROLES = {
    "worker judge": "judge", "worker run": "runner", "worker regrade": "regrade", "metrics": "metrics", "web": "web",
    "backup make": "backup", "store migrate": None, "backup restore": None,
}  # fmt: skip
"""What a command of a service works as, by its first words; None as the owner. Others work as in the judge's shell."""


def as_role(url: str, role: str | None) -> str:
    """The URL of a database, for one of its roles; the owner's for None, and the same one for SQLite."""
    parsed = make_url(url)
    if role is None or parsed.get_backend_name() == "sqlite":
        return url
    return parsed.set(username=f"{parsed.username}_{role}").render_as_string(hide_password=False)


def environment(url: str, command: tuple[str, ...]) -> dict[str, str]:
    """Settings with which compose starts a command of the service, as far as they are of roles."""
    role = next((_ROLES[words] for n in (2, 1) if (words := " ".join(command[:n])) in _ROLES), "judge")
    found = {"GRADER_DATABASE_URL": as_role(url, role)}
    if role in {"judge", "web"}:
        found["GRADER_OPERATOR_DATABASE_URL"] = as_role(url, "operator")
    return found
