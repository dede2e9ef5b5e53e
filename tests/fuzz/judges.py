"""Stored evidence as judges read it: each part may hold whatever a learner's process said."""

import functools
import json
from typing import Any

from checks.api import Result
from checks.diagnosis import diagnose
from checks.reflections.items import Side
from checks.reflections.judging import judge_lists
from checks.registry import LoadedCheck
from grader_service.judging.checks import judge_one
from grader_service.judging.rubric import plain
from grader_service.model.discovery import LearnerException
from grader_service.model.evidence import Evidence
from grader_service.model.lab import LabCheck
from grader_service.run.probing import Probed, _unusable
from tests.checks.judged import a_record
from tests.factories import a_run, an_evidence
from tests.fuzz.stored import registry

SAID = ("discovery", "scan", "clean_room")


def judges(data: bytes) -> object:
    """`{"check": id, "probes": {probe: observations}, "status": …, "discovery": …}` as the evidence of one check."""
    try:
        said = json.loads(data)
    except (ValueError, RecursionError):
        return None
    if not isinstance(said, dict):
        return None
    checks = registry()
    known = checks.ids()
    wanted = said.get("check")
    loaded = checks.load(wanted if isinstance(wanted, str) and wanted in known else "jpeg_dataset")
    evidence = _evidence(said, loaded)
    result = judge_one(loaded, evidence, LabCheck(id=loaded.check.id, points=1.0)).result
    json.dumps(plain(result.details), allow_nan=False)
    assert Result.model_validate(result.model_dump()) == result
    result.model_dump_json()
    return result.code


def reflections(data: bytes) -> object:
    """Lines of text as both lists; the first empty line parts them."""
    text = data.decode("utf-8", "replace")[:8192]
    wins, _, loses = text.partition("\n\n")
    found = judge_lists(tuple(wins.split("\n")[:64]), tuple(loses.split("\n")[:64]), {Side.WINS: 3, Side.LOSES: 2})
    return [item.reason for items in found.lists.values() for item in items]


def diagnosis(data: bytes) -> object:
    """An exception of the learner's, as its process tells it."""
    exception = LearnerException.model_validate_json(data)
    found = diagnose(exception)
    return None if found is None else (found.cause, found.remedy)


def _evidence(said: dict[str, Any], loaded: LoadedCheck) -> Evidence:
    base = dict(_base())
    base |= {part: said[part] for part in SAID if part in said}
    probes = said.get("probes") if isinstance(said.get("probes"), dict) else {}
    base["probes"] = [
        {**record, "status": said.get("status", "ok"), "observations": probes.get(record["id"])}
        for record in (_record(probe) for probe in loaded.check.probes)
    ]
    made = Evidence.model_validate(base)
    if any(_unusable(Probed(kind="probed", status="ok", text="", observations=r.observations)) for r in made.probes):
        made = made.model_copy(update={"probes": ()})  # the host keeps no such observations
    # As it goes into the store, and as judges get it out of there.
    return Evidence.model_validate_json(made.model_dump_json())


@functools.cache
def _base() -> dict[str, Any]:
    made = an_evidence(run=a_run(device="cpu"))
    # What learners have a hand in stands as JSON, what the host measured as it is.
    return {**made.model_dump(mode="json"), "run": made.run, "measurement": made.measurement}


@functools.cache
def _record(probe: str) -> dict[str, Any]:
    return a_record(probe, "raised").model_dump(mode="json")
