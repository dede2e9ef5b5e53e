"""A check as a function: its arguments say what it looks at, its keywords what a lab may set, its results its codes."""

import inspect
import re
from collections.abc import Callable, Mapping
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
from checks.codes import GRAPH_PROBE, LEARNER_PROBE, common
from checks.contract import Check
from checks.own_codes import computed_codes, own_codes
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
        tier: what its results are worth; by default as much as its weakest evidence, which may only be shown. None for
            what is no proof of anything else, such as a text that a learner wrote.
        codes: meanings of codes that are computed, or other meanings than the sentences that learners read, by the last
            word of the code; a meaning begins with its outcome where that is no failure, such as `unverified: …`.
        names: a function of the same keywords: each name that a submission must define for this check, and what it
            holds, in words that follow "It should hold".
        second_opinion: see `checks.contract.Check.second_opinion`.

    Raises:
        TypeError: of the function that is marked, when it is no check; the message says what was expected.
    """

    def mark(function: Callable[ArgumentsP, Result]) -> FunctionCheck[ArgumentsP]:
        return FunctionCheck(
            function,
            version=version,
            title=title,
            word=word,
            tier=tier,
            codes=codes or {},
            names=names,
            second_opinion=second_opinion,
        )

    return mark


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
        worth = [one.taken.tier for one in self._arguments if one.taken.tier is not None]
        self._tier = min(worth, key=_WEAKEST.index, default=None) if tier == "weakest" else tier
        self.own_probes = {one.probe_id: one.own for one in self._arguments if one.own is not None}
        self._named = {last if "." in last else f"{self.word}.{last}": meaning for last, meaning in codes.items()}

    @cached_property
    def codes(self) -> Mapping[str, str]:  # type: ignore[override]  # the base has a plain attribute
        """As `checks.contract.Check.codes`, read from the source when somebody asks: judging needs none of it.

        Raises:
            TypeError: one of them is computed, and none is named.
        """
        if not self._named and (unread := computed_codes(self.function)):
            raise TypeError(
                f"the code of `{unread[0][:100]}` is computed; write it there, or name every code that it may be in "
                "@check(codes={…})"
            )
        shared = (group for one in self._arguments for group in one.taken.codes)
        return common(self.word, *shared) | own_codes(self.function, self.word) | self._named

    def __call__(self, *args: ArgumentsP.args, **kwargs: ArgumentsP.kwargs) -> Result:
        """The function itself, for tests of its author's."""
        return self.function(*args, **kwargs)

    @property
    def file(self) -> Path:
        """The file of the function."""
        return Path(self.function.__code__.co_filename)

    def observe(self, evidence: Evidence) -> BaseModel | Result:
        """Takes each argument; answers with the first result that there is in place of one."""
        found: dict[str, object] = {}
        for one in self._arguments:
            value = one.taken.take(evidence)
            if isinstance(value, Result) and not one.optional:
                return value
            found[one.name] = None if isinstance(value, Result) else value
        return self.observation_model(**found)

    def judge(self, observation: BaseModel, params: BaseModel) -> Result:
        """Calls the function."""
        seen = {name: getattr(observation, name) for name in self.observation_model.model_fields}
        given = {name: getattr(params, name) for name in self.params_model.model_fields}
        result = self.whole(cast(Callable[..., Result], self.function)(**seen, **given))
        if result.tier is not None or result.outcome in _NOT_LOOKED:
            return result
        return result.model_copy(update={"tier": self._tier})

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


def _argument(check_id: str, name: str, hint: Any, function: Callable[..., Any]) -> _Argument:
    optional = get_origin(hint) in (Union, UnionType) and type(None) in get_args(hint)
    bare = next(one for one in get_args(hint) if one is not type(None)) if optional else hint
    kind, *marks = get_args(bare) if get_origin(bare) is Annotated else (bare,)
    for mark in marks:
        if isinstance(mark, Taken):
            return _Argument(name, mark, optional)
        if isinstance(mark, FromProbe):
            return _Argument(name, _observed(mark.probe_id, kind, mark.site), optional, mark.probe_id)
    if kind in WHOLE:
        return _Argument(name, WHOLE[kind], optional)
    for value in function.__globals__.values():
        if isinstance(value, OwnProbe) and value.returns is kind:
            taken = _observed(value.file.id, kind, value.file.site)
            return _Argument(name, taken, optional, value.file.id, value.file)
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
