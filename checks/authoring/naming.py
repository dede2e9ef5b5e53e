"""Finds the target for a check that an author's test names: the object itself, an id, or a path."""

from pathlib import Path

from checks.api import Check
from checks.authoring.target import Target, find_targets, load_target
from grader_service.errors import ConfigurationError, UsageError


def target_of(check: object) -> Target:
    """The check with its probes and material.

    Args:
        check: a check's object, whose project is looked for above its file; an id; or the path of a file or project.

    Raises:
        UsageError: there is no such check, or the path stands for several.
        ConfigurationError: it does not load.
    """
    if isinstance(check, (str, Path)):
        found = find_targets(str(check))
        if len(found) != 1:
            raise UsageError(f"{check} holds {len(found)} checks; name one of them by its file or id")
        return load_target(found[0])
    if not isinstance(check, Check) or check.file is None:
        raise ConfigurationError(f"{check!r} is no check that a module of its own defines")
    for parent in check.file.resolve().parents:
        if (parent / "pyproject.toml").is_file():
            wanted = f"project:{parent}:{check.id}"
            if wanted in find_targets(str(parent)):
                return load_target(wanted)
            break
    try:
        return target_of(check.id)
    except UsageError:
        return load_target(f"file:{check.file.resolve()}")
