"""R: reflections without substance."""

from tests.corpus.case import Cheat

CASES = (
    Cheat(
        id="R01-lying-list",
        title="a list subclass that claims more entries than it has",
        content="""
            class Long(list):
                def __len__(self):
                    return 9

                def __iter__(self):
                    yield from self.told

            where_dali_wins, where_dali_loses = Long(), Long()
            where_dali_wins.told = [
                "ResNet-50 on ImageNet with four CPU cores per GPU: JPEG decoding starves the GPU.",
                "Video action recognition reads long H.264 clips; NVDEC leaves the CPU free for sampling.",
                "A photo service decodes and resizes user uploads on the GPU, so latency stays below 20 ms.",
            ]
            where_dali_loses.told = [
                "BERT on text that was tokenised before: there is nothing to decode in a memory-mapped file.",
                "Tabular data of 40 columns fits into GPU memory once; a loader only adds copies of small rows.",
            ]
        """,
        steps=("reflection",),
        target="reflections",
        codes=("reflections.too_few",),
        quick=True,
    ),
)
