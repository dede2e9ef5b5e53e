"""Finds the target for a check that an author's test names: the object itself, an id, or a path."""

import contextlib
from pathlib import Path

from checks.api import Check
from checks.authoring.target import Target, find_targets, load_target, project_of, source_of
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
    file = check.file.resolve()
    project = project_of(file)
    named = [f"id:{check.id}"] if project is None else [f"project:{project}:{check.id}", f"id:{check.id}"]
    for text in named:
        with contextlib.suppress(ConfigurationError):
            # Another check may have the same id: that of the file is meant.
            target = load_target(text)
            if source_of(target.loaded).resolve() == file:
                return target
    return load_target(f"file:{file}")
