"""A project of checks that break their promises, each in ways of its own."""

import json

_HEAD = """
import datetime, os, random, time
from typing import Annotated
from checks.api import Check, Result, failed, passed
from grader_service.model.base import Wire
from grader_service.model.evidence import Need
from grader_service.model.feedback import Feedback
from grader_service.model.verdict import Outcome
from pydantic import Field


BLANK = Feedback(outcome=" ")


class Params(Wire):
    least: int = Field(3, json_schema_extra={"hidden": True})
    word: str = Field("x", max_length=64, json_schema_extra={"hidden": True})


class Observation(Wire):
    n: int = 0
    text: str = ""
    extra: dict[str, object] = {}


class Base(Check[Params, Observation]):
    version = "1.0.0"
    title = "rogue"
    needs = frozenset({Need.DISCOVERY})
    params_model = Params
    observation_model = Observation

    def observe(self, evidence):
        return Observation(n=len(evidence.run.pods))
"""

_CHECKS = {
    "impure": """
class Check(Base):
    id = "impure"

    def observe(self, evidence):
        evidence.run.host["seen"] = True
        return Observation(n=1)

    def judge(self, observation, params):
        open("/etc/hostname").close()
        os.environ.get("HOME"), random.random(), datetime.datetime.now(), time.monotonic()
        return passed("fine")
""",
    "talks": '''
class Check(Base):
    """Says too much, in the wrong form. Points: none. Cannot detect: anything."""

    id = "talks"
    secret = ""

    def observe(self, evidence):
        return Observation(n=len(evidence.run.pods), text=evidence.run.seed)

    def judge(self, observation, params):
        if observation.n == 7:
            return Result(outcome=Outcome.FAILED, code="talks.odd", score=1.0, parts=BLANK, details={"x": {1, 2}})
        if observation.n == 2:
            return failed("talks.few", Feedback(outcome=f"few, {params.word}", numbers={"wanted": params.least}))
        return passed(observation.text or "fine")
''',
    "shuffles": """
class Check(Base):
    id = "shuffles"

    def judge(self, observation, params):
        return passed(" ".join({"red", "green", "blue", "white", "black"}))
""",
    "strays": """
class Check(Base):
    id = "strays"
    codes = {"strays.ok": "as it should be", "strays.maybe": "unverified: nobody can tell"}

    def judge(self, observation, params):
        if observation.n == 1:
            return failed("strays.maybe", "it may be so, " * 16)
        if observation.n == 2:
            return failed("strays.surprise", "nobody knew")
        return passed("fine")
""",
    "raises": """
class Check(Base):
    id = "raises"

    def observe(self, evidence):
        return Observation(n=len(evidence.scan.sizes), text=evidence.discovery.loaders[0].name)

    def judge(self, observation, params):
        if observation.n > 100:
            return None
        return passed(f"{1 / observation.n}")
""",
    "ends": """
class Check(Base):
    id = "ends"
    probes = ("nowhere",)

    def judge(self, observation, params):
        if observation.n == 2:
            os._exit(3)
        return passed("fine")
""",
    "hangs": """
class Check(Base):
    id = "hangs"

    def judge(self, observation, params):
        while observation.n == 2:
            try:
                observation.n + 1
            except Exception:
                continue
        return passed("fine")
""",
    "broken": """
class Check(Base):
    id = "another"

    def judge(self, observation, params):
        return passed("fine")
""",
}

RECORDED = (
    {"name": "one", "observation": {"n": 1}, "expect": {"outcome": "passed", "code": "impure.ok"}},
    {"name": "two", "observation": {"n": 2}, "expect": {"outcome": "failed", "code": "impure.few"}},
)


def write_project(folder):
    """Writes the project; every rogue is a module of its own in one package."""
    package = folder / "rogues"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    points = []
    for name, text in _CHECKS.items():
        (package / f"{name}.py").write_text(f"{_HEAD}{text}\n\nCHECK = Check()\n")
        points.append(f'{name} = "rogues.{name}:CHECK"')
    (folder / "pyproject.toml").write_text(
        '[project]\nname = "rogues"\nversion = "0.1.0"\n\n[project.entry-points."grader.checks"]\n' + "\n".join(points)
    )
    return folder


def record(folder, lines=RECORDED):
    """Puts recorded observations into the folder of each check."""
    for path in (folder / "rogues").glob("[a-z]*.py"):
        home = path.with_suffix("")
        home.mkdir()
        (home / "observations.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
