"""Lists of texts that cheats on the reflections are made of."""

from collections.abc import Sequence

WINS = (
    "ResNet-50 on ImageNet with four CPU cores per GPU: JPEG decoding starves the GPU; nvJPEG takes it over.",
    "Video action recognition reads long H.264 clips; decoding frames on NVDEC leaves the CPU free for sampling.",
    "A server that classifies photos of users decodes and resizes on the GPU, so latency stays below 20 ms.",
)
LOSES = (
    "BERT on text that was tokenised before: nothing is left to decode, and a memory-mapped file feeds the GPU.",
    "Tabular data of 40 columns fits into GPU memory once; a loader of any kind only adds copies of small rows.",
)
"""Both pass as they are: what a cheat adds or replaces is what fails."""


def lists(wins: Sequence[str] = WINS, loses: Sequence[str] = LOSES) -> str:
    """A submission that holds these two lists and nothing else."""
    return f"where_dali_wins = {list(wins)!r}\nwhere_dali_loses = {list(loses)!r}\n"
