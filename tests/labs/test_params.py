"""Parameters of any check are explained through the check's own model, however it is built."""

from collections.abc import Callable
from importlib.metadata import EntryPoint
from typing import Annotated, Literal

import pytest
from pydantic import Field, field_validator, model_validator

from checks.registry import GROUP, Registry
from grader_service.model.base import Wire
from tests.checks.test_registry import GoodCheck
from tests.labs.texts import lines


class Size(Wire):
    width: Annotated[int, Field(gt=0, lt=100)]
    height: Annotated[float, Field(le=10)] = 1


class Rich(Wire):
    """Nested, with choices, lists, rules of its own, and a required field."""

    name: str
    size: Size | None = None
    sizes: tuple[Size, ...] = ()
    mode: Literal["fast", "slow"] = "fast"
    limit: int | list[str] = 1
    exactly: Annotated[tuple[int, int], Field()] = (1, 2)

    @field_validator("name")
    @classmethod
    def _named(cls, name: str) -> str:
        if name == "bug":
            raise TypeError("a bug of the author's")
        return name

    @model_validator(mode="after")
    def _fits(self) -> "Rich":
        if self.mode == "slow" and self.limit == 1:
            raise ValueError("slow needs a limit")
        return self


class Opaque(Wire):
    """Has a type that no JSON Schema describes."""

    call: Callable[[], int] | None = None
    count: int = 0


class RichCheck(GoodCheck):
    """A check whose parameters are `Rich`."""

    id = "rich"
    params_model = Rich


class OpaqueCheck(GoodCheck):
    """A check whose parameters are `Opaque`."""

    id = "opaque"
    params_model = Opaque


RICH, OPAQUE = RichCheck(), OpaqueCheck()
REGISTRY = Registry([EntryPoint(name, f"{__name__}:{name.upper()}", GROUP) for name in ("rich", "opaque", "gone")])
HEAD = """\
schema = "grader.lab/v1"
id = "x"
version = "1.0.0"
title = "X"
[[steps]]
id = "s"
title = "S"
[[steps.checks]]
"""


def said(check_id, params):
    return lines(f'{HEAD}id = "{check_id}"\npoints = 1\n{params}', REGISTRY)


P = "steps[0].checks[0].params"


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        ('params = { name = "n" }', []),
        ("", [f"lab:8:9: {P}.name: missing; expected text"]),
        ("params = {}", [f"lab:11:10: {P}.name: missing; expected text"]),
        ("params = 3", ["lab:11:10: steps[0].checks[0].params: expected a table, got 3"]),
        ("params = { name = 3 }", [f"lab:11:19: {P}.name: expected text, got 3"]),
        (
            'params.name = "n"\nparams.size.width = 100',
            [f"lab:12:21: {P}.size.width: expected an integer above 0 and below 100, got 100"],
        ),
        (
            '[steps.checks.params]\nname = "n"\n[steps.checks.params.size]\nheigth = 1',
            [
                f"lab:13:22: {P}.size.width: missing; expected an integer above 0 and below 100",
                f'lab:14:1: {P}.size.heigth: unknown field; did you mean "height"? Fields here: height, width',
            ],
        ),
        (
            'params.name = "n"\nparams.sizes = [{ width = 1 },\n  { width = 2, height = 11 }]',
            [f"lab:13:25: {P}.sizes[1].height: expected a number at most 10, got 11"],
        ),
        (
            'params = { name = "n", mode = "quick" }',
            [f'lab:11:31: {P}.mode: expected one of "fast", "slow", got "quick"'],
        ),
        ('params = { name = "n", mode = "slow" }', [f"lab:11:10: {P}: slow needs a limit"]),
        (
            'params = { name = "n", limit = "many" }',
            [f'lab:11:32: {P}.limit: expected an integer or a list, got "many"'],
        ),
        ('params = { name = "n", exactly = [1] }', [f"lab:11:34: {P}.exactly[1]: missing; expected an integer"]),
        (
            'params = { name = "bug" }',
            ["lab:9:6: steps[0].checks[0].id: check 'rich' of unknown: its parameters cannot be validated: "
             "TypeError: a bug of the author's"],
        ),
    ],
)  # fmt: skip
def test_parameters_are_explained_at_their_line(params, expected):
    """Nested tables, lists, choices, and rules of the author's."""
    assert said("rich", params) == expected


def test_a_model_without_a_schema_is_explained_in_other_words():
    """pydantic's own words then, and still the line."""
    (line,) = said("opaque", 'params = { count = "x" }')
    assert line.startswith(f"lab:11:20: {P}.count: ")
    assert "integer" in line
    assert line.endswith('got "x"')


def test_a_check_that_does_not_load_blocks_with_its_reason():
    """It is installed, so it is not called unknown."""
    (line,) = said("gone", "")
    assert line.startswith("lab:9:6: steps[0].checks[0].id: check 'gone' of an unknown distribution")
    assert "does not load" in line
