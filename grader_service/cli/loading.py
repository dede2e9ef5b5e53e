"""Imports a command's module when the command is called, so that none waits for what only the others need."""

from collections.abc import Callable
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperGroup

_WHERE = {
    "grade": "grade:grade",
    "preflight": "preflight:preflight",
    "verify": "verify:verify",
    "export": "export:export",
    "doctor": "doctor:doctor",
    "schema": "schema:schema",
    "submit": "submit:submit",
    "status": "operate:status",
    "queue": "operate:queue",
    "retry": "operate:retry",
    "cancel": "operate:cancel",
    "erase": "erase:erase",
    "metrics": "operate:metrics",
    "web": "web:web",
    "worker": "worker:app",
    "signer": "keys:signer",
    "pods": "pods:pods",
    "regrade": "regrade:app",
    "reviews": "reviews:app",
    "cohort": "cohorts:app",
    "devices": "devices:app",
    "hosts": "hosts:app",
    "dead-letters": "dead_letters:app",
    "platforms": "platforms:app",
    "store": "operate:store_app",
    "backup": "backup:app",
    "reconcile": "reconcile:reconcile",
    "keys": "keys:app",
    "checks": "checks:app",
    "labs": "labs:app",
    "images": "images:app",
}
"""Command to its module in this package and what it is there: a function, or commands of its own."""


class CommandsByName(TyperGroup):
    """The commands of `grader`, in the order in which `grader --help` names them."""

    def __init__(self, **settings: Any) -> None:
        """Takes what a group takes; the commands are those of this module."""
        super().__init__(**settings)
        self.commands = _Commands(_WHERE)


class _Commands(dict[str, Any]):
    """Every command by its name, made when it is asked for."""

    def __getitem__(self, name: str) -> Any:
        return _made(name)

    def get(self, name: str, default: Any = None) -> Any:
        return _made(name) if name in self else default


def group(told: str, callback: Callable[[], None] | None = None) -> typer.Typer:
    """Commands under one name, with help in plain text; `callback` is called before any of them."""
    return typer.Typer(help=told, no_args_is_help=True, rich_markup_mode=None, callback=callback)


def _made(name: str) -> Any:
    module, _, attribute = _WHERE[name].partition(":")
    found = getattr(import_module(f"grader_service.cli.{module}"), attribute)
    alone = typer.Typer(add_completion=False, rich_markup_mode=None)
    if isinstance(found, typer.Typer):
        alone.add_typer(found, name=name)
        root = typer.main.get_command(alone)
        assert isinstance(root, TyperGroup)  # noqa: S101 - for the type checker: it has a group of its own
        return root.commands[name]
    alone.command(name)(found)
    return typer.main.get_command(alone)
