"""Finds the target for a check that an author's test names: the object itself, an id, or a path."""

import sys
from pathlib import Path

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
    module = sys.modules.get(type(check).__module__)
    file = getattr(module, "__file__", None)
    check_id = str(getattr(check, "id", ""))
    if file is None or not check_id:
        raise ConfigurationError(f"{check!r} is no check that a module of its own defines")
    for parent in Path(file).resolve().parents:
        if (parent / "pyproject.toml").is_file():
            wanted = f"project:{parent}:{check_id}"
            if wanted in find_targets(str(parent)):
                return load_target(wanted)
            break
    try:
        return target_of(check_id)
    except UsageError:
        return load_target(f"file:{Path(file).resolve()}")
