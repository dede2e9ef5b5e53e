"""Generated observations: JSON in any case, and mostly what the model takes."""

import json
import random
from typing import Annotated, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import Field, ValidationError

from checks.authoring.cases import any_json
from checks.authoring.schema_values import values_for
from checks.cuda_batch.check import cuda_batch
from checks.jpeg_dataset.check import jpeg_dataset
from grader_service.model.base import ShortText, Wire


class Inner(Wire):
    name: ShortText
    share: Annotated[float, Field(gt=0, lt=1)]


class Model(Wire):
    count: Annotated[int, Field(ge=3, le=9)]
    kind: Literal["a", "b"]
    inner: tuple[Inner, ...] = ()
    pair: tuple[int, str] | None = None
    flags: dict[str, bool] = Field(default_factory=dict)
    text: Annotated[str, Field(min_length=4, max_length=6)] = "word"


@pytest.mark.parametrize(
    ("model", "least"),
    [(Model, 0.9), (cuda_batch.observation_model, 0.5), (jpeg_dataset.observation_model, 0.5)],
)
def test_most_values_are_taken(model, least):
    """Bounds, enums and nested models are kept, so that judging is reached and not only validation."""
    taken = 0
    values = list(values_for(model.model_json_schema(), random.Random(5), 200))
    for value in values:
        try:
            model.model_validate_json(json.dumps(value))
        except ValidationError:
            continue
        taken += 1
    assert taken >= least * len(values)


def test_the_same_seed_gives_the_same_values():
    """Two processes have to try the same."""
    schema = Model.model_json_schema()
    first, second = (list(values_for(schema, random.Random(9), 50)) for _ in range(2))
    assert first == second
    assert len({json.dumps(value) for value in first}) > 40


@settings(max_examples=50)
@given(seed=st.integers())
def test_any_json_is_json(seed):
    """It can be written and read again, whatever the seed."""
    value = any_json(random.Random(seed))
    assert json.loads(json.dumps(value, allow_nan=False)) == value


def test_a_model_that_holds_itself_ends():
    """A recursive schema is drawn to a bounded depth."""

    class Tree(Wire):
        children: "tuple[Tree, ...]" = ()

    for value in values_for(Tree.model_json_schema(), random.Random(1), 20):
        assert len(json.dumps(value)) < 1_000_000
