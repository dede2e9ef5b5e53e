"""V: objects in the place of numbers. A claim must be there and positive, so that is what is forged."""

from tests.corpus.case import Cheat
from tests.corpus.parts import DATASET, joined
from tests.corpus.parts_files import baseline_cheat

_LOADER = """
import torch

loader = torch.utils.data.DataLoader([torch.zeros(3, 96, 96)] * 100, batch_size=16)
"""
_RIGGED = """
class Rigged{base}:
    def __float__(self):
        return 5000.0

    __int__ = __index__ = lambda self: 5000
    __eq__ = __ne__ = __lt__ = __gt__ = __le__ = __ge__ = __bool__ = lambda self, *other: True
    __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __add__ = __sub__ = lambda self, other: self
    __hash__ = object.__hash__
    __repr__ = __str__ = lambda self: "5000.0"


pytorch_throughput = {value}
"""


def _rigged(base: str, value: str) -> str:
    return _RIGGED.format(base=base, value=value)


def _cheat(name: str, title: str, forged: str, code: str = "pytorch_throughput_invalid") -> Cheat:
    """A data set, a loader, and a forged number beside them."""
    return baseline_cheat(name, title, joined(DATASET, _LOADER, forged), f"jpeg.{code}")


CASES = (
    _cheat(
        "V02-float",
        "a float of 0 that compares, computes, converts and prints as it likes",
        _rigged("(float)", "Rigged(0.0)"),
        "pytorch_throughput_not_positive",
    ),
    _cheat("V02-int", "the same from int", _rigged("(int)", "Rigged(-3)"), "pytorch_throughput_not_positive"),
    _cheat("V03-equals-all", "an object that equals and exceeds everything", _rigged("", "Rigged()")),
    _cheat(
        "V03-pretender",
        "a mock that has whatever attribute is asked for",
        "from unittest.mock import MagicMock\npytorch_throughput = MagicMock(__float__=lambda self: 5000.0)",
    ),
    baseline_cheat(
        "V03-loader",
        "an object that is a DataLoader for whoever asks politely",
        joined(
            DATASET,
            """
            import torch


            class Pretender:
                __class__ = torch.utils.data.DataLoader
                batch_size, num_workers, dataset = 16, 8, range(100)

                def __iter__(self):
                    return iter(())


            loader, pytorch_throughput = Pretender(), 900.0
            """,
        ),
        "jpeg.no_loader",
    ),
    _cheat("V04-nan", "not a number", 'pytorch_throughput = float("nan")'),
    _cheat("V04-infinite", "infinitely many images per second", 'pytorch_throughput = float("inf")'),
    _cheat("V04-negative", "a negative rate", "pytorch_throughput = -900.0", "pytorch_throughput_not_positive"),
    _cheat("V04-zero", "a baseline of nothing", "pytorch_throughput = -0.0", "pytorch_throughput_not_positive"),
    _cheat(
        "V05-property",
        "a module whose property is another number at every look",
        """
        import itertools, sys, types


        class Shifty(types.ModuleType):
            numbers = itertools.count(900)

            @property
            def pytorch_throughput(self):
                return float(next(self.numbers))

            def __getattr__(self, name):
                return self.pytorch_throughput


        sys.modules[__name__].__class__ = Shifty
        """,
        "pytorch_throughput_missing",
    ),
    _cheat(
        "V05-conversion",
        "a number that is positive only when it is looked at for the first time",
        """
        class Shifty(float):
            looks = 0

            def __float__(self):
                Shifty.looks += 1
                return 900.0 if Shifty.looks == 1 else -1.0


        pytorch_throughput = Shifty(-1.0)
        """,
        "pytorch_throughput_not_positive",
    ),
    _cheat("V06-digits", "an integer of a million digits", "pytorch_throughput = 10**1_000_000"),
    _cheat(
        "V06-decimal",
        "a decimal that is infinite as a float",
        'import decimal\npytorch_throughput = decimal.Decimal("1E+1000000")',
    ),
    _cheat(
        "V06-repr",
        "an object that prints fifty megabytes, and a list that holds itself",
        """
        class Wide:
            def __repr__(self):
                return "5" * 50_000_000


        pytorch_throughput = [Wide()]
        pytorch_throughput.append(pytorch_throughput)
        where_dali_wins, where_dali_loses = [pytorch_throughput] * 9, {Wide(): Wide()}
        """,
    ),
    _cheat("V07-bool", "true, which is 1", "pytorch_throughput = True"),
    _cheat("V07-text", "a number in a text", 'pytorch_throughput = "5000.0"'),
    _cheat("V07-complex", "a complex number", "pytorch_throughput = 5000 + 0j"),
    _cheat("V07-tensor", "a tensor of a truth value", "pytorch_throughput = torch.tensor(True)"),
    _cheat(
        "V07-array",
        "an array that holds an object with a number",
        _rigged("", "np.array(Rigged(), dtype=object)"),
    ),
)
