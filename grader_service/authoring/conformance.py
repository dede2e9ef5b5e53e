"""The whole conformance suite: judging, and the controls through a sandbox."""

from checks.authoring.report import Conformance, failed, skipped
from checks.authoring.suite import examine
from checks.authoring.target import load_target
from grader_service.authoring.controls import examine_controls
from grader_service.errors import ConfigurationError
from grader_service.run.progress import Progress, Silent


def conform(
    target_text: str,
    *,
    accept: bool = False,
    controls: bool = True,
    progress: Progress | None = None,
) -> Conformance:
    """Looks at every property of one check.

    Args:
        target_text: as `checks.authoring.target.find_targets` names it.
        accept: writes what the recorded observations give now into the lock.
        controls: whether control submissions are run, on the CPU, as plain processes of this machine.
        progress: hears about stages.

    Raises:
        ConfigurationError: the author's files beside the check are wrong.
        UsageError: `accept` for a check whose source is not kept here.
        InfrastructureError: a pod of ours does not start.
    """
    progress = progress or Silent()
    try:
        target = load_target(target_text)
    except ConfigurationError as error:
        name = target_text.rpartition(":")[2].rpartition("/")[2]
        wrong = failed("loads", str(error), "Fix this first; nothing else can be examined before.")
        return Conformance(check=name, version="?", source=target_text, properties=(wrong,))
    progress.stage("judging")
    properties = examine(target, accept=accept)
    if not controls:
        properties.append(skipped("controls", "control submissions were not run", "Leave out --skip-controls."))
    elif all(one.status != "failed" for one in properties if one.name in ("probes", "parameters")):
        properties.append(examine_controls(target, progress=progress))
    check = target.loaded.check
    return Conformance(
        check=check.id, version=check.version, source=target.loaded.distribution, properties=tuple(properties)
    )
