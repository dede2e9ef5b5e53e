"""A plugin whose checks leave some answers to a person, its lab, and submissions of it."""

import json
import os
from functools import cache

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from checks.registry import Registry
from grader_service.labs import specs
from grader_service.labs.discovery import LabDiscovery
from grader_service.model.discovery import TextList
from grader_service.model.evidence import Need, RunPlan
from grader_service.model.lab import LabRef
from grader_service.service.judge import JudgeDeps, judge_next
from grader_service.service.kept_labs import installed_lab
from grader_service.service.reviewing import judge_reviewed
from grader_service.signer.signatures import KeySigner
from grader_service.store import acceptance, leases, results
from grader_service.store.acceptance import Arrival, IntakeLimits
from grader_service.store.outbox import Waiter
from grader_service.store.review_tables import ReviewDecisionRow
from grader_service.store.tables import VerdictRow
from tests.factories import a_discovery, a_run, an_evidence
from tests.regrade.deps import read
from tests.store.factories import a_submission

LAB, CHECK, OTHER = "doubtful-lab", "doubtful", "doubtful_too"
_MODULE = '''
"""Left to a person, unless the first word says otherwise."""

from pydantic import BaseModel

from checks.api import Check, failed, passed, undecided
from grader_service.model.base import Frozen, Wire
from grader_service.model.evidence import Need
from grader_service.model.verdict import Outcome


class Params(Frozen):
    strict: bool = False


class Seen(Wire):
    words: tuple[str, ...]


class Doubtful(Check):
    version, title = "1.0.0", "Left to a person"
    needs, params_model, observation_model = frozenset({Need.DISCOVERY}), Params, Seen

    def __init__(self, name, attribute):
        self.id, self.attribute = name, attribute
        self.codes = {f"{name}.ok": "good", f"{name}.bad": "bad"}
        self.codes[f"{name}.needs_review"] = "inconclusive: a person decides"

    def observe(self, evidence):
        return Seen(words=getattr(evidence.discovery, self.attribute).items)

    def judge(self, observation, params):
        details = {"counted": len(observation.words)}
        if observation.words[0] == "good":
            return passed("Good.", details=details)
        if observation.words[0] == "bad" or params.strict:
            return failed(f"{self.id}.bad", "Bad.", details=details)
        return undecided(Outcome.INCONCLUSIVE, f"{self.id}.needs_review", "A person will look at it.", details=details)


DOUBTFUL, DOUBTFUL_TOO = Doubtful("doubtful", "where_dali_wins"), Doubtful("doubtful_too", "where_dali_loses")
DOUBTFUL.second_opinion = "Each word is one of a situation in which DALI wins."
'''
_LAB = f"""
schema = "grader.lab/v1"
id = "{LAB}"
version = "1.0.0"
title = "A lab of doubts"

[[steps]]
id = "first"
title = "First"
checks = [{{id = "{CHECK}", points = 10}}]

[[steps]]
id = "second"
title = "Second"
checks = [{{id = "{OTHER}", points = 5}}]
"""


def install(folder, monkeypatch):
    """Installs the plugin there, for this process and for those that it starts."""
    info = folder / "doubtful-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: doubtful\nVersion: 1.0\n")
    points = f"[grader.checks]\n{CHECK} = doubtful_check:DOUBTFUL\n{OTHER} = doubtful_check:DOUBTFUL_TOO\n"
    (info / "entry_points.txt").write_text(f"{points}[grader.labs]\n{LAB} = doubtful_labs\n")
    (folder / "doubtful_check.py").write_text(_MODULE)
    (folder / "doubtful_labs").mkdir()
    (folder / "doubtful_labs" / f"{LAB}.toml").write_text(_LAB)
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setattr(specs, "installed", cache(LabDiscovery))  # a process looks once
    monkeypatch.setenv(
        "PYTHONPATH", os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    )


def strict_lab(folder):
    """A file of the lab in which the first check leaves nothing to a person."""
    path = folder / f"{LAB}.toml"
    path.write_text(_LAB.replace("points = 10", "points = 10, params = {strict = true}"))
    return path


def a_judge(store):
    return JudgeDeps(store, Registry(), KeySigner(Ed25519PrivateKey.generate()), "judge")


def handed_in(judge, number=1, first="perhaps", second="good", **changes):
    """A graded submission whose two lists begin so; its id."""
    submission = a_submission(number, lab=LAB, **changes)
    waiter = Waiter(f"task-{number}", "lab-platform", "lab.verdict_ready")
    lab = installed_lab(LAB, judge.registry)
    with judge.store.transaction() as connection:
        results.store_blob(connection, lab.sha256, lab.text.content)
    plan = RunPlan(needs=(Need.DISCOVERY,), lab=LabRef(sha256=lab.sha256, form=lab.text.form.value))
    acceptance.accept_all(judge.store, [Arrival(submission, plan, "live", waiter)], IntakeLimits(), "test")
    run = leases.claim(judge.store, "run", "runner", 60)
    lists = {"where_dali_wins": (first, 'é "is" text'), "where_dali_loses": (second,)}
    found = a_discovery(**{name: TextList(status="present", items=items) for name, items in lists.items()})
    evidence = an_evidence(run=a_run(run_id=run.run_id), discovery=found, measurement=None)
    assert results.store_evidence(judge.store, run, "evidence", evidence.model_dump_json().encode(), {})
    assert judge_next(judge) is not None
    return submission.submission_id


def in_force(store, submission_id):
    """The document of the verdict in force."""
    where = [VerdictRow.submission_id == submission_id, VerdictRow.current]
    ((document,),) = read(store, VerdictRow.document, where=where)
    return document


def decisions(store):
    """Submission to whether it was accepted, and by whom."""
    row = ReviewDecisionRow
    return {one[0]: (one[1], one[2]) for one in read(store, row.submission_id, row.accepted, row.decided_by)}


def look(judge):
    """One round of who makes the verdicts of what was decided; how many it made."""
    return judge_reviewed(judge)


def check_of(document, name=CHECK):
    """The check's part of a verdict, and its submission's status and score."""
    verdict = json.loads(document)
    (found,) = (check for check in verdict["checks"] if check["id"] == name)
    return found, verdict["status"], verdict["score"]
