"""A check as a function: its arguments say what it looks at, its keywords what a lab may set, its results its codes."""

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from types import UnionType
from typing import (
    Annotated,
    Any,
    Generic,
    Literal,
    NamedTuple,
    ParamSpec,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from checks.arguments import WHOLE, FromProbe, Taken
from checks.codes import COMMON, GRAPH_PROBE, LEARNER_PROBE, code_problem, common, outcomes_of
from checks.contract import Check
from checks.own_codes import own_codes
from checks.own_probe import OwnProbe
from checks.probe_files import ProbeFile
from checks.probing import read_probe
from checks.results import Result
from grader_service.model.base import Wire, first_problem
from grader_service.model.evidence import Evidence, Need, ProbeSite
from grader_service.model.verdict import Outcome, Tier

ArgumentsP = ParamSpec("ArgumentsP")
_WEAKEST = (Tier.CLAIMS, Tier.COLD_PROOF, Tier.PROOF, Tier.GRAPH)
_NOT_LOOKED = (Outcome.SKIPPED, Outcome.ERROR)


class _Params(Wire):
    """Base of parameters: a default that the annotation does not allow is a mistake of the author's."""

    model_config = ConfigDict(validate_default=True)


def check(
    *,
    version: str,
    title: str = "",
    word: str = "",
    tier: Tier | Literal["weakest"] | None = "weakest",
    codes: Mapping[str, str] | None = None,
    names: Callable[..., Mapping[str, str]] | None = None,
    second_opinion: str = "",
) -> Callable[[Callable[ArgumentsP, Result]], "FunctionCheck[ArgumentsP]"]:
    """Makes a check of a function, whose name is the check's id.

    Its positional arguments are evidence, by their types (`checks.arguments`); its keyword-only arguments are what a
    lab may set, described below `Args:` in its docstring; it returns a `Result`.

    Args:
        version: three numbers; raised whenever the same evidence could be judged differently, or a default changed.
        title: a few words for tables; the first line of the docstring by default.
        word: first word of its codes; the function's name by default.
        tier: what its results are worth; by default as much as its weakest evidence, as it came, which may only be
            shown: without an argument that may be None they are claims. None for what is no proof of anything else,
            such as a text that a learner wrote.
        codes: meanings of codes that are computed, or other meanings than the sentences that learners read, by the last
            word of the code; a meaning begins with its outcome where that is no failure, such as `unverified: …`.
        names: a function of the same keywords: each name that a submission must define for this check, and what it
            holds, in words that follow "It should hold".
        second_opinion: see `checks.contract.Check.second_opinion`.

    Raises:
        TypeError: of the function that is marked, when it is no check; the message says what was expected.
    """
    return lambda function: FunctionCheck(
        function,
        version=version,
        title=title,
        word=word,
        tier=tier,
        codes=codes or {},
        names=names,
        second_opinion=second_opinion,
    )


class FunctionCheck(Check[BaseModel, BaseModel], Generic[ArgumentsP]):
    """What `check` makes of a function; called, it is that function."""

    def __init__(
        self,
        function: Callable[ArgumentsP, Result],
        *,
        version: str,
        title: str,
        word: str,
        tier: Tier | Literal["weakest"] | None,
        codes: Mapping[str, str],
        names: Callable[..., Mapping[str, str]] | None,
        second_opinion: str,
    ) -> None:
        self.function = function
        self.id = function.__name__
        self.word = word or self.id
        self.version = version
        self.about = inspect.getdoc(function) or ""
        self.title = title or self.about.partition("\n")[0].rstrip(".") or self.id
        self.second_opinion = second_opinion
        self._names = names
        hints = get_type_hints(function, include_extras=True)
        if hints.pop("return", None) is not Result:
            raise TypeError(f"check {self.id} expects `-> Result` behind its arguments")
        evidence, keywords = _split(self.id, inspect.signature(function), hints)
        self._arguments = [_argument(self.id, name, hints[name], function) for name in evidence]
        self.params_model = _params_model(self.id, keywords, hints, told_arguments(self.about))
        fields: dict[str, Any] = {name: hints[name] for name in evidence}
        self.observation_model = create_model(f"{self.id}_observation", __base__=Wire, **fields)
        self.needs = frozenset({Need.DISCOVERY}).union(*(one.taken.needs for one in self._arguments))
        self.probes = tuple(dict.fromkeys(one.probe_id for one in self._arguments if one.probe_id))
        self._tier = tier
        self.own_probes = {one.probe_id: one.own for one in self._arguments if one.own is not None}
        self._named = {last if "." in last else f"{self.word}.{last}": meaning for last, meaning in codes.items()}

    @cached_property
    def codes(self) -> Mapping[str, str]:  # type: ignore[override]  # the base has a plain attribute
        """As `checks.contract.Check.codes`, read from the source when somebody asks: judging needs none of it.

        Raises:
            TypeError: one of them is computed, and none is named; or no verdict can carry it.
        """
        own, computed = own_codes(self.function, self.word)
        if computed and not self._named:
            raise TypeError(
                f"the code of `{computed[0][:100]}` is computed; write it there, or name every code that it may be in "
                "@check(codes={…})"
            )
        shared = (one.answers(group) for one in self._arguments for group in one.taken.codes)
        found = common(self.word, *shared) | own | self._named
        if problems := list(filter(None, map(code_problem, found))):
            raise TypeError(problems[0])
        return found

    def __call__(self, *args: ArgumentsP.args, **kwargs: ArgumentsP.kwargs) -> Result:
        """The function itself, for tests of its author's."""
        return self.function(*args, **kwargs)

    @property
    def file(self) -> Path:
        """The file of the function."""
        return Path(self.function.__code__.co_filename)

    def observe(self, evidence: Evidence) -> BaseModel | Result:
        """Takes each argument; answers with the first result that there is in place of one.

        None stands for what the learner's run lacks, never for an error of ours, which the check would judge as if it
        were the learner's.
        """
        found: dict[str, object] = {}
        for one in self._arguments:
            value = one.taken.take(evidence)
            if isinstance(value, Result) and not one.is_none_for(value.outcome):
                return value
            found[one.name] = None if isinstance(value, Result) else value
        return self.observation_model(**found)

    def judge(self, observation: BaseModel, params: BaseModel) -> Result:
        """Calls the function."""
        seen = {name: getattr(observation, name) for name in self.observation_model.model_fields}
        given = {name: getattr(params, name) for name in self.params_model.model_fields}
        result = cast(Callable[..., Result], self.function)(**seen, **given)
        # `decide` says what is wrong with something else.
        if not isinstance(result, Result) or result.tier is not None or result.outcome in _NOT_LOOKED:
            return result
        return result.model_copy(update={"tier": self._weakest(seen) if self._tier == "weakest" else self._tier})

    def _weakest(self, seen: Mapping[str, object]) -> Tier | None:
        worth = [one.worth(seen[one.name]) for one in self._arguments]
        return min((tier for tier in worth if tier is not None), key=_WEAKEST.index, default=None)

    def names(self, params: BaseModel) -> Mapping[str, str]:
        """What the author's own function says."""
        return self._names(**dict(params)) if self._names is not None else {}


def _split(
    check_id: str, signature: inspect.Signature, hints: Mapping[str, object]
) -> tuple[list[str], dict[str, object]]:
    """Names of the evidence, and of the parameters with their defaults."""
    evidence: list[str] = []
    keywords: dict[str, object] = {}
    for name, one in signature.parameters.items():
        if name not in hints:
            raise TypeError(f"check {check_id}: the argument {name} has no type")
        if one.kind is one.KEYWORD_ONLY:
            keywords[name] = ... if one.default is one.empty else one.default
        elif one.kind is one.POSITIONAL_OR_KEYWORD and one.default is one.empty:
            evidence.append(name)
        else:
            raise TypeError(
                f"check {check_id}: {one} is neither evidence, such as `loaders: Loaders`, nor behind the `*` a "
                "parameter, such as `*, least: int = 2`"
            )
    return evidence, keywords


class _Argument(NamedTuple):
    """One argument of evidence."""

    name: str
    taken: Taken
    optional: bool
    probe_id: str = ""
    own: ProbeFile | None = None

    def is_none_for(self, outcome: Outcome | str) -> bool:
        """Whether the check is asked without it where a result of this outcome is in its place."""
        return self.optional and (outcome != Outcome.ERROR or self.taken.may_lack)

    def answers(self, group: Sequence[str]) -> list[str]:
        """Codes of a group that are answered in place of the check."""
        return [last for last in group if not all(map(self.is_none_for, outcomes_of(last, COMMON[last])))]

    def worth(self, value: object) -> Tier | None:
        """Of this value for a result. What is not there proves nothing: the learner may have seen to that."""
        return Tier.CLAIMS if self.optional and value is None else self.taken.worth(value)


def _argument(check_id: str, name: str, hint: Any, function: Callable[..., Any]) -> _Argument:
    either = get_args(hint) if get_origin(hint) in (Union, UnionType) else ()
    optional = type(None) in either
    bare, *others = [one for one in either if one is not type(None)] or [hint]
    if others:
        raise TypeError(
            f"check {check_id}: the argument {name} may be one of {len(others) + 1} kinds of evidence; expected one "
            "kind, with `| None` where it may be missing: make an argument of each"
        )
    kind, *marks = get_args(bare) if get_origin(bare) is Annotated else (bare,)
    for mark in marks:
        if isinstance(mark, Taken):
            return _Argument(name, mark, optional)
        if isinstance(mark, FromProbe):
            return _Argument(name, _observed(mark.probe_id, kind, mark.site), optional, mark.probe_id)
    if kind in WHOLE:
        return _Argument(name, WHOLE[kind], optional)
    probes = {
        value.file.id: value.file
        for value in function.__globals__.values()
        if isinstance(value, OwnProbe) and value.returns is kind
    }
    if len(probes) > 1:
        raise TypeError(
            f"check {check_id}: the argument {name} may come from {' or '.join(probes)}, which all return "
            f"{kind.__name__}; expected one probe for each class: let each return a class of its own"
        )
    if probes:
        file = next(iter(probes.values()))
        return _Argument(name, _observed(file.id, kind, file.site), optional, file.id, file)
    raise TypeError(
        f"check {check_id}: the argument {name} has the type {getattr(kind, '__name__', kind)}, which is no evidence; "
        "expected one of checks.arguments, or what a probe returns that stands above the check"
    )


def _observed(probe_id: str, model: type[BaseModel], site: ProbeSite) -> Taken:
    return Taken(
        lambda evidence: read_probe(evidence, probe_id, model, site),
        tier=Tier.GRAPH if site is ProbeSite.GRAPH else Tier.CLAIMS,
        codes=(GRAPH_PROBE if site is ProbeSite.GRAPH else LEARNER_PROBE,),
    )


def _params_model(
    check_id: str, keywords: Mapping[str, object], hints: Mapping[str, Any], told: Mapping[str, str]
) -> type[BaseModel]:
    fields: dict[str, Any] = {}
    for name, default in keywords.items():
        kind = Annotated[hints[name], Field(description=told[name])] if name in told else hints[name]
        fields[name] = (kind, default)
    model = create_model(f"{check_id}_params", __base__=_Params, **fields)
    if ... not in keywords.values():
        try:
            model()
        except ValidationError as error:
            problem = first_problem(error)
            raise TypeError(f"check {check_id}: a default is not what its type allows: {problem}") from error
    return model


_SECTION = re.compile(r"[A-Z][A-Za-z ]+:")
_ENTRY = re.compile(r"(\w+)(?: \([^)]*\))?: *(.*)")


def told_arguments(docstring: str) -> dict[str, str]:
    """Name → text of the section `Args:` of a docstring, as `inspect.getdoc` gives it."""
    found: dict[str, str] = {}
    inside, name, indent = False, "", 0
    for line in docstring.splitlines():
        deep = len(line) - len(line.lstrip())
        if _SECTION.match(line):
            inside = line.startswith("Args:")
        elif inside and line.strip():
            indent = indent or deep
            entry = _ENTRY.fullmatch(line.strip()) if deep == indent else None
            if entry is not None:
                name, found[entry[1]] = entry[1], entry[2]
            elif name:
                found[name] = f"{found[name]} {line.strip()}".strip()
    return found
