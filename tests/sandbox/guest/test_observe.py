"""What is said of the names that a learner's code left behind."""

from types import ModuleType

from sandbox.guest.learner import observe


def test_names_are_told_whatever_they_hold():
    """The newest first; neither private ones nor keys that are no names."""
    module = ModuleType("__main__")
    exec("import os\nplacement = {}\n_own = 1\ndef build(): pass\nplacement = []\nlast = 2", module.__dict__)  # noqa: S102
    module.__dict__[3] = "no name"
    assert observe.defined(module) == ["last", "build", "placement", "os"]


def test_many_and_long_names_are_bounded():
    """The evidence has room for so many."""
    module = ModuleType("__main__")
    module.__dict__.update({f"n{number}": 0 for number in range(1000)})
    module.__dict__["x" * 1000] = 0
    found = observe.defined(module)
    assert len(found) == observe.MAX_DEFINED
    assert found[0] == "x" * 100
