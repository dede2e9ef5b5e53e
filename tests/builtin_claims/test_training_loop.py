"""Training loops that really ran, good ones and broken ones."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from checks.training_loop.check import CHECK
from checks.training_loop.trend import trend_of
from grader_service.model.verdict import Outcome, Tier
from tests.checks.judged import judged

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
    "not falling": (START.replace("lr=0.3", "lr=0.0") + LOOP, {}, "not_falling"),
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
    assert "tier D" in result.feedback
    assert "the grader's random images worked" in result.feedback


@pytest.mark.parametrize("name", BAD)
def test_broken_loops_fail_by_name(evidence, name):
    """Each usual mistake has its own code."""
    _, params, reason = BAD[name]
    result = judged(CHECK, evidence[name], **params)
    assert (result.outcome, result.code) == (Outcome.FAILED, f"training.{reason}"), result.feedback


def test_tensors_of_such_names_are_only_told_unless_the_lab_requires_them(evidence):
    """A later cell may have used the name for something else, so the loop is not failed for it."""
    result = judged(CHECK, evidence["labels not squeezed"])
    assert result.outcome is Outcome.PASSED
    assert "squeeze(-1)" in result.feedback


def test_noise_rarely_falls_and_learning_rarely_does_not():
    """The error rates of the trend test, counted on simulated series with a fixed seed."""
    rng = random.Random(11)
    noise = falling = 0
    for _ in range(2000):
        length = rng.choice((10, 20, 40, 100, 300))
        scale = rng.uniform(0.02, 0.5)
        noise += trend_of([0.7 + scale * rng.gauss(0, 1) for _ in range(length)]).falls(0.02, 0.05)
        end = rng.uniform(0.1, 0.6)
        values = [end + (1 - end) * 2.718 ** (-4 * step / length) + 0.08 * rng.gauss(0, 1) for step in range(length)]
        falling += trend_of(values).falls(0.02, 0.05)
    text = " ".join((type(CHECK).__doc__ or "").split())
    assert f"2,000 series of pure noise {noise / 20:.1f} % pass" in text
    assert f"2,000 noisy falling ones {(2000 - falling) / 20:.1f} % do not" in text


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
