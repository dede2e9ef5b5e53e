"""Facts drawn from words and numbers that stand together."""

import pytest

from checks.reflections.reader import read


@pytest.mark.parametrize(
    ("text", "fact", "holds"),
    [
        ("4 CPU cores per GPU", "few_cores", True),
        ("128 cores for one GPU", "few_cores", False),
        ("128 cores for one GPU", "many_cores", True),
        ("a weak CPU", "few_cores", True),
        ("vier Kerne", "few_cores", True),
        ("8 GPUs in a box", "multi_gpu", True),
        ("one GPU", "multi_gpu", False),
        ("GPU at 30 %", "gpu_idle", True),
        ("GPU at 99 %", "gpu_idle", False),
        ("GPU at 99 %", "gpu_busy", True),
        ("all workers at 100 %", "cpu_busy", True),
        ("32x32 images", "tiny", True),
        ("4096x4096 images", "tiny", False),
        ("4096x4096 images", "high_resolution", True),
        ("20 MP photos", "high_resolution", True),
        ("4k img/s", "high_resolution", False),
        ("a small network", "light_model", True),
        ("small pictures", "light_model", False),
        ("a huge transformer", "big_model", True),
        ("ResNet on large JPEG images", "big_model", False),
        ("a slow network drive", "slow_storage", True),
        ("nothing to decode", "nothing_to_do", True),
        ("the CPU cannot decode fast enough", "nothing_to_do", False),
        ("each step takes two seconds", "long_step", True),
        ("loading is 1 % of the time", "little_loading", True),
        ("显卡利用率只有30%", "gpu_idle", True),
        ("四个核心", "few_cores", True),
        ("an epoch takes 5 s", "smalldata", True),
        ("an epoch takes 500 s", "smalldata", False),
        ("the epoch's end", "smalldata", False),
        ("video in a codec that the GPU does not support", "custom", True),
        ("video in a codec that the GPU supports", "custom", False),
        ("the GPU is maxed already, the loader is not", "cpu_busy", False),
        ("my DALI pipeline was slower than the DataLoader", "measured_loss", True),
        ("DALI was only 0.4x as fast here", "measured_loss", True),
        ("DALI reached 10.4x", "measured_loss", False),
        ("with DALI the DataLoader is slower than before", "measured_loss", False),
        ("the DataLoader was slower than DALI", "measured_loss", False),
        ("صور كثيرة وأنوية قليلة", "few_and_many", False),
    ],
)
def test_facts(text, fact, holds):
    """Numbers mean what the words beside them say."""
    assert (fact in read(text).facts) is holds


@pytest.mark.parametrize(("typed", "value"), [("1.5", 1.5), ("1,5", 1.5), ("4,096", 4096.0), ("1.2.3", 0.0)])
def test_numbers(typed, value):
    """Both decimal signs are read; what is no number counts as zero."""
    assert read(f"{typed} things").numbers[0][0] == value
