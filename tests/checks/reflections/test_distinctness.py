"""Same scenario or another."""

import itertools

import pytest

from checks.reflections.distinctness import LOSS_WEIGHTS, WIN_WEIGHTS, likeness, same_scenario, same_words
from checks.reflections.reader import read

SAME_WINS = [
    (
        "ResNet-50 on ImageNet, too few cores for JPEG decoding",
        "RN50 over ILSVRC: a small number of cores can't unpack the .jpg files",
    ),
    ("H.264 clips decoded by NVDEC", "AVC footage, because the video engine on the card relieves the processor"),
    ("Clips de vídeo H.264 decodificados por NVDEC", "H.264 video clips decoded by NVDEC"),
    ("大量JPEG照片，CPU核心少，GPU等待解码", "Many JPEG photos with few CPU cores, the GPU waits for decode"),
    ("Decoding photos starves the GPU, case 1", "Decoding photos starves the GPU, case 2"),
    ("Decoding photos starves the GPU", "Dесоding рhоtоs stаrvеs thе GPU"),
]
SAME_LOSSES = [
    ("Tiny CIFAR images, nothing to decode", "MNIST-sized pictures decode in no time"),
    ("The disk is slow", "Slow storage: both loaders wait for the drive"),
    ("显存被占满，缓冲区引起OOM", "GPU memory is full, buffers cause OOM"),
]
OTHER_WINS = [
    "training on photos with a weak cpu: gpu decode frees the cpu",
    "training on photos with a weak (small) model: gpu finishes early, waits for decode",
    "serving a model on photos: gpu decode of uploaded jpegs raises requests/s",
    "CPU-bound video understanding: frame decode takes all cores",
    "CPU-bound audio training: spectrograms take all cores",
    "Random augmentation of photos that saturates the workers",
    "Eight GPUs compete for one CPU that prepares the photos",
]


@pytest.mark.parametrize(
    ("left", "right", "weights"),
    [*((*pair, WIN_WEIGHTS) for pair in SAME_WINS), *((*pair, LOSS_WEIGHTS) for pair in SAME_LOSSES)],
)
def test_reworded_scenarios(left, right, weights):
    """Synonyms, languages, counters and look-alikes hide nothing; losses are told apart by why they are losses."""
    assert same_scenario(read(left), read(right), weights)


@pytest.mark.parametrize(("left", "right"), list(itertools.combinations(OTHER_WINS, 2)))
def test_shared_vocabulary_is_no_repetition(left, right):
    """Different scenarios may use the same words."""
    assert not same_scenario(read(left), read(right), WIN_WEIGHTS)


def test_little_understood_is_not_the_same():
    """Two items of which only `picture` was recognised may still differ."""
    assert not same_scenario(read("zzkla image brrk"), read("ploo image vvrk qwe"))


def test_likeness_is_symmetric_and_bounded():
    """From 0 to 1, the same both ways."""
    for left, right in itertools.product(map(read, OTHER_WINS), repeat=2):
        assert 0 <= likeness(left, right) == likeness(right, left) <= 1
    assert likeness(read(""), read("")) == 0


def test_negated_copies():
    """`does not help with X` repeats `helps with X`."""
    assert same_words(
        read("It helps with JPEG photos on few cores"), read("It doesn't help with JPEG photos on few cores")
    )
