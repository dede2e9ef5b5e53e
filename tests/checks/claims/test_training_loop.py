"""Training loops that really ran, good ones and broken ones."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from checks.training_loop.check import training_loop
from checks.training_loop.trend import trend_of
from grader_service.model.verdict import Outcome, Tier
from tests.checks.brief import assert_brief
from tests.checks.claims.conftest import evidence_with
from tests.checks.judged import judged
from tests.factories import a_discovery

CHECK = training_loop
START = """
import torch
from torch import nn
torch.manual_seed(5)
layers = [nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 2)]
model = nn.Sequential(*layers)
optimizer = torch.optim.SGD(model.parameters(), lr=0.3)
criterion = nn.CrossEntropyLoss()

def batches(count, size=8):
    for _ in range(count):
        label = torch.randint(0, 2, (size, 1), dtype=torch.int32)
        yield [{"data": torch.randn(size, 3, 16, 16) + 2.0 * label.view(-1, 1, 1, 1), "label": label}]
"""
LOOP = """
losses = []
for batch in batches(24):
    images = batch[0]["data"]
    labels = batch[0]["label"].squeeze(-1).long()
    outputs = model(images)
    loss = criterion(outputs, labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
"""
FUNCTION = """
def train(model, optimizer, steps):
    model.train()
    kept = []
    for batch in batches(steps):
        loss = criterion(model(batch[0]["data"]), batch[0]["label"].flatten().to(torch.int64))
        optimizer.zero_grad(); loss.backward(); optimizer.step()
        kept.append(KEEP)
    return kept
"""
DALI = """
import os
import numpy as np
from PIL import Image
from nvidia.dali import fn, pipeline_def, types
from nvidia.dali.plugin.pytorch import DALIClassificationIterator

dataset_dir = "dataset"
for number in range(32):
    os.makedirs(f"{dataset_dir}/c{number % 2}", exist_ok=True)
    pixels = np.random.default_rng(number).integers(0, 90, (24, 24, 3)) + 160 * (number % 2)
    Image.fromarray(pixels.astype(np.uint8)).save(f"{dataset_dir}/c{number % 2}/{number}.jpg")


@pipeline_def(batch_size=8, num_threads=1, device_id=0)
def pipeline():
    jpegs, labels = fn.readers.file(file_root=dataset_dir, random_shuffle=True, name="Reader")
    images = fn.resize(fn.decoders.image(jpegs, device="mixed"), size=(16, 16))
    return fn.crop_mirror_normalize(images, mean=[128.0] * 3, std=[64.0] * 3, dtype=types.FLOAT), labels.gpu()


train_loader = DALIClassificationIterator(pipeline(), reader_name="Reader", auto_reset=True)
model = model.cuda()
losses = []
for epoch in range(6):
    for data in train_loader:
        images = data[0]["data"]
        label = data[0]["label"].squeeze(-1).long()
        loss = criterion(model(images), label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
"""
KEPT = FUNCTION.replace("KEEP", "loss.item()")
TYPED = "losses = [2.0 / (1 + step) for step in range(30)]\n"
GOOD = {
    "at the top level": START + LOOP,
    "in a function": START + KEPT + "train_losses = train(model, optimizer, 24)\n",
    "history of a dict": START + KEPT + "history = {'epoch': [1], 'loss': train(model, optimizer, 24)}\n",
    "tensors": START + FUNCTION.replace("KEEP", "loss.detach()") + "losses = train(model, optimizer, 24)\n",
    "an array": START + KEPT + "import numpy as np\nloss_history = np.array(train(model, optimizer, 24))\n",
    "records": START + FUNCTION.replace("KEEP", "{'step': 1, 'loss': loss.item()}") + "log = train(model, "
    "optimizer, 24)\n",
    "epochs": START + KEPT + "epoch_losses = [sum(train(model, optimizer, 4)) / 4 for _ in range(12)]\n",
    "lists per epoch": START + KEPT + "losses = [train(model, optimizer, 8) for _ in range(3)]\n",
    "Adam": START.replace("SGD(model.parameters(), lr=0.3)", "Adam(model.parameters(), lr=0.05)") + LOOP,
    "a frozen backbone": START + "for p in model[0].parameters():\n    p.requires_grad = False\n" + LOOP,
    "evaluated last": START + LOOP + "model.eval()\n",
    "fused": START.replace("lr=0.3", "lr=0.3, fused=True") + LOOP,
    "a copy beside it": START + LOOP + "import copy\nbest_model = copy.deepcopy(model)\n",
    "cells": [START, LOOP, "model.eval()"],
    "DALI on the GPU": START + DALI,
}
STRICT = {"tensors": "required"}
BAD = {
    "nothing": (START, {}, "no_losses"),
    "another type": (START + LOOP + "losses = 'falling'\n", {}, "no_losses"),
    "few": (START + LOOP.replace("24", "4"), {}, "too_few_steps"),
    "NaN": (START + LOOP + "losses[5] = float('nan')\n", {}, "not_finite"),
    "not falling": (
        START.replace("lr=0.3", "lr=0.0") + LOOP.replace("batches(24)", "list(batches(1)) * 24"),
        {},
        "not_falling",
    ),
    "never stepped": (START + LOOP.replace("    optimizer.step()\n", ""), {}, "not_falling"),
    "constant": (START + LOOP + "losses = [0.7] * 40\n", {}, "not_falling"),
    "rising": (START + LOOP + "losses = losses[::-1]\n", {}, "not_falling"),
    "labels not squeezed": (START + LOOP + "labels = batch[0]['label'].long()\n", STRICT, "labels_shape"),
    "labels int32": (START + LOOP + "labels = labels.int()\n", STRICT, "labels_dtype"),
    "typed in": (START + TYPED, {}, "not_trained"),
    "another model's optimizer": (
        START.replace("SGD(model.", "SGD(nn.Linear(2, 2).")
        + "model(torch.randn(2, 3, 16, 16)).sum().backward()\n"
        + TYPED,
        {},
        "not_trained",
    ),
    "two devices": (START + LOOP + "images = images.cuda()\n", STRICT, "two_devices"),
    "no classifier": (START + LOOP + "model = model[:3]\ndel images, outputs\n", {}, "outputs_shape"),
    "eval mode": (START + LOOP + "model.eval()\n", {"train_mode": "required"}, "eval_mode"),
    "no model": (START + LOOP + "del model\n", {"model": "required"}, "no_model"),
}


@pytest.mark.parametrize("name", GOOD)
def test_loops_that_learn_pass_as_claims(evidence, name):
    """Losses are found under the usual names and in the usual types; the result says that they are claims."""
    result = judged(CHECK, evidence[name])
    assert (result.code, result.tier) == ("training.ok", Tier.CLAIMS), result.feedback
    assert "This is what your own code says." in result.feedback
    assert "the grader's random images worked" in result.feedback
    assert_brief(result)


@pytest.mark.parametrize("name", BAD)
def test_broken_loops_fail_by_name(evidence, name):
    """Each usual mistake has its own code."""
    _, params, reason = BAD[name]
    result = judged(CHECK, evidence[name], **params)
    assert (result.outcome, result.code) == (Outcome.FAILED, f"training.{reason}"), result.feedback
    assert_brief(result)


def test_tensors_of_such_names_are_only_told_unless_the_lab_requires_them(evidence):
    """A later cell may have used the name for something else, so the loop is not failed for it."""
    result = judged(CHECK, evidence["labels not squeezed"])
    assert result.outcome is Outcome.PASSED
    assert [advice.code for advice in result.parts.advice] == ["advice.labels_shape"]
    assert "squeeze(-1)" in result.feedback
    assert_brief(result)


def test_noise_rarely_falls_and_learning_rarely_does_not():
    """The error rates of the trend test, counted on simulated series with a fixed seed."""
    rng = random.Random(11)
    noise = falling = unclear = unseen = 0
    for _ in range(2000):
        length = rng.choice((10, 20, 40, 100, 300))
        scale = rng.uniform(0.02, 0.5)
        found = trend_of([0.7 + scale * rng.gauss(0, 1) for _ in range(length)])
        noise += found.falls(0.02, 0.05)
        unclear += not found.falls(0.02, 0.05) and found.is_hidden(0.02)
        end = rng.uniform(0.1, 0.6)
        values = [end + (1 - end) * 2.718 ** (-4 * step / length) + 0.08 * rng.gauss(0, 1) for step in range(length)]
        found = trend_of(values)
        falling += found.falls(0.02, 0.05)
        unseen += not found.falls(0.02, 0.05) and found.is_hidden(0.02)
    text = " ".join(CHECK.about.split())
    assert "of pure noise (of 3 to 71 % of the losses) " in text
    assert f"{noise / 20:.1f} % pass as falling and {unclear / 20:.1f} % are too noisy to tell" in text
    assert f"2,000 noisy falling ones {(2000 - falling) / 20:.1f} % do not pass" in text
    assert f"and {unseen / 20:.1f} % are too noisy to tell" in text


TRAINED = {"name": "model", "type": "Net", "training": True, "device": "cpu", "parameters": 9, "updates": 30,
           "with_gradient": 4, "optimizer_steps": 10}  # fmt: skip


def with_losses(values, changes=None, model=None, **params):
    """What the check says of these losses beside a model that was trained, and works unless it is said otherwise."""
    observations = {
        "losses": {"name": "losses", "count": len(values), "values": list(values)},
        "model": TRAINED | (model or {}),
        "step": {"done": True, "outputs": [4, 2], "loss": 0.7, "gradients": True, "batch": 4},
    }
    return judged(CHECK, evidence_with("training_loop", observations=observations | (changes or {})), **params)


def noisy(first, last, noise, count=12):
    """Losses from one value to another, with this much noise."""
    rng = random.Random(3)
    return [first + (last - first) * at / (count - 1) + noise * rng.gauss(0, 1) for at in range(count)]


def test_losses_in_which_noise_could_hide_a_fall_are_not_said_not_to_fall():
    """A fall by a third under noise of half of the losses: nobody can tell, and nothing is counted."""
    result = with_losses(noisy(0.9, 0.6, 0.4))
    assert (result.outcome, result.code, result.score) == (Outcome.INCONCLUSIVE, "training.too_noisy", None)
    assert "nothing is counted" in result.feedback
    assert result.parts.numbers["low"] < 0 < result.parts.numbers["high"]
    assert_brief(result)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (noisy(0.7, 0.7, 0.02, 40), ""),
        (noisy(0.7, 0.7, 0.3, 400), ""),
        ([0.7] * 40, "does not fall"),
        (noisy(0.5, 0.9, 0.02), "does not fall"),
        (noisy(1.0, 0.99, 0.0001), "% only"),
    ],
)
def test_losses_that_would_show_a_fall_and_do_not_fail(values, said):
    """Little noise, or many steps, show that there is no fall that training would make."""
    result = with_losses(values)
    assert (result.outcome, result.code) == (Outcome.FAILED, "training.not_falling"), result.feedback
    assert said in result.parts.outcome
    assert_brief(result)


def test_noise_excuses_no_model_that_was_never_updated_or_cannot_learn():
    """What is certain goes before what is not."""
    values = noisy(0.9, 0.6, 0.4)
    result = with_losses(values, model={"updates": 1, "optimizer_steps": 0})
    assert result.code == "training.not_falling"
    assert "`model` was never updated" in result.parts.outcome
    assert "optimizer.step()" in result.parts.next.code
    broken = {"step": {"done": True, "outputs": [4, 2], "loss": 0.7, "gradients": False, "batch": 4}}
    assert with_losses(values, broken).code == "training.no_gradients"


def test_noise_does_not_matter_where_the_lab_asks_for_no_fall():
    """Then losses are only counted."""
    result = with_losses(noisy(0.9, 0.6, 0.4), falling=False)
    assert (result.outcome, "fall" in result.parts.outcome) == (Outcome.PASSED, False)


def test_numbers_that_no_sum_can_hold_are_not_finite():
    """They would make medians and slopes infinite."""
    assert with_losses([1.7e308, 1.6e308] * 10).code == "training.not_finite"


@pytest.mark.parametrize(("needs_gpu", "score"), [("", 0.0), ("a kernel", None)])
@pytest.mark.parametrize("losses", [None, {"name": "losses", "count": 4, "values": [2.0, 1.5, 1.2, 1.0]}])
def test_a_loop_that_stopped_half_way_is_not_too_short(losses, needs_gpu, score):
    """What stopped it is told by the run."""
    stopped = a_discovery(ran="raised", needs_gpu=needs_gpu)
    evidence = evidence_with("training_loop", observations={"losses": losses}, discovery=stopped)
    result = judged(CHECK, evidence)
    assert (result.outcome, result.code, result.score) == (Outcome.SKIPPED, "run.not_reached", score)


def test_losses_are_asked_for_under_the_name_of_the_lab():
    """A key of a dict is written as one."""
    result = judged(CHECK, evidence_with("training_loop", observations={}), losses=("history.loss",))
    assert "`history.loss`" in result.parts.outcome
    assert result.parts.next.code == 'history["loss"].append(loss.item())'


def test_a_model_with_other_ways_of_output_is_stepped(learner):
    """An output object with logits, and a model that wants its own image size, are understood."""
    source = START + LOOP + (
        "import collections\nclass Wrapped(nn.Module):\n    def __init__(s):\n        super().__init__()\n"
        "        s.inner = model\n        s.head = nn.Linear(2, 3)\n    def forward(s, x):\n"
        "        assert x.shape[-1] == 224\n"
        "        return collections.namedtuple('Out', 'logits aux')(s.head(s.inner(x)), None)\n"
        "net = Wrapped()\nopt = torch.optim.Adam(net.parameters())\nfor _ in range(4):\n    opt.zero_grad()\n"
        "    net(torch.randn(2, 3, 224, 224)).logits.sum().backward()\n    opt.step()\ndel model, images, outputs\n"
    )  # fmt: skip
    found = learner.evidence(source, "training_loop")
    step = found.probe("training_loop").observations["step"]
    assert (step["outputs"], step["gradients"], step["problem"]) == ([4, 3], True, "")


@pytest.mark.parametrize(
    ("last", "code"),
    [
        ("class E:\n    def __getattribute__(self, n): raise SystemExit\nlosses = E()", "training.no_losses"),
        ("class B(nn.Module):\n    def forward(self, x): raise KeyboardInterrupt\nmodel_b = B()", "training.ok"),
        ("class P(nn.Module):\n    def parameters(self, *a, **k): raise SystemExit\nmodel_p = P()", "training.ok"),
        ("model.forward = lambda x: (_ for _ in ()).throw(SystemExit)", "training.ok"),
        ("model.forward = lambda x: torch.full((len(x), 2), float('nan'))", "training.step_not_finite"),
        ("model.forward = lambda x: torch.zeros(len(x), 2, requires_grad=True)", "training.no_gradients"),
    ],
)
def test_objects_that_raise_or_lie_do_not_stop_the_look(learner, last, code):
    """The model is the learner's code: what it raises is noted, what it gives is judged."""
    result = judged(CHECK, learner.evidence(START + LOOP + last, "training_loop"))
    assert result.code == code, result.feedback


@settings(deadline=None)
@given(st.lists(st.floats(-1e300, 1e300), min_size=3, max_size=700))
def test_any_series_has_a_trend(values):
    """No finite series breaks the statistics."""
    assert 0 <= trend_of(values).p <= 1
