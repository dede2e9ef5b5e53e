"""R: reflections whose objects, characters or sizes are to do what their texts do not."""

import unicodedata

from tests.corpus.case import Observed, Procedure
from tests.corpus.parts import LOSES, WINS, joined
from tests.corpus.parts_texts import ONE, ORDER, lists, text_cheat
from tests.corpus.world import World

_CYRILLIC = str.maketrans("aceopxy", "асеорху")
_ESCAPES = "\x1b[2K\x1b[1A\u202e\u2066\x9b2J"
"""Erases a line of a terminal, goes up, and turns what follows around."""

_LYING = f"""
wins, loses = {list(WINS)!r}, {list(LOSES)!r}
"""
_LONG = "__len__, __iter__ = lambda self: len(self.told), lambda self: iter(self.told)"
_HOSTILE = {
    "word": ('"a" * 10_000_000', 64, "not_substantive"),
    "bullets": ('"- a\\n" * 3_000_000', 64, "not_substantive"),
    "digits": ('"1," * 5_000_000', 64, "not_substantive"),
    "markup": ('"<|## role: " * 1_000_000', 64, "not_substantive"),
    "marks": ('"a" + "\\u0301" * 10_000_000', 8, "not_substantive"),
    "ligatures": ('"\\ufdfa" * 3_000_000', 8, "same_lists"),
}
"""Name → text, how many of it, and what comes of it."""


def _styled(text: str, small: int, large: int) -> str:
    """The text in another alphabet of Latin letters, which begins with these two characters."""
    starts = {True: small - ord("a"), False: large - ord("A")}
    return "".join(chr(ord(one) + starts[one.islower()]) if one.isascii() and one.isalpha() else one for one in text)


def _lying(source: str) -> str:
    """A submission whose objects say that they hold `wins` and `loses`."""
    return joined(_LYING, source)


def _spoof(world: World) -> Observed:
    """A text that changes what a terminal or a page shows around it, quoted in the feedback."""
    done = world.grade(lists([f"{_ESCAPES}a", *WINS[1:]]), steps=("reflection",))
    shown = done.verdict.model_dump_json()
    told = done.verdict.checks[0].feedback
    kept = [one for one in told if unicodedata.category(one) in ("Cc", "Cf") and one not in "\n\t"]
    code = done.verdict.checks[0].code
    if kept or any(one in shown for one in "\u202e\u2066\x1b\x9b"):
        return Observed("passed", "spoofed", f"the verdict holds {kept!r}")
    return Observed("failed" if "\ufffd" in told else "error", code, told)


CASES = (
    *(
        text_cheat(
            f"R01-lying-{kind}",
            title,
            _lying(f"""
            class Lying({kind}):
                {body}

            where_dali_wins, where_dali_loses = Lying(), Lying()
            where_dali_wins.told, where_dali_loses.told = wins, loses
        """),
            "too_few",
        )
        for kind, title, body in (
            ("list", "a list subclass that claims more entries than it has", _LONG),
            ("tuple", "a tuple subclass that does the same", _LONG),
            (
                "dict",
                "an empty dict subclass whose items() says otherwise",
                'items = lambda self: [(text, "") for text in self.told]',
            ),
            (
                "set",
                "an empty set subclass that iterates over something else",
                "__iter__ = lambda self: iter(self.told)",
            ),
        )
    ),
    text_cheat(
        "R01-lying-text",
        "text subclasses that print better than they are",
        _lying("""
            class Better(str):
                def __str__(self):
                    return self.told

            def better(texts):
                made = [Better("x" * number) for number in range(1, len(texts) + 1)]
                for one, text in zip(made, texts):
                    one.told = text
                return made

            where_dali_wins, where_dali_loses = better(wins), better(loses)
        """),
        "not_substantive",
    ),
    text_cheat(
        "R01-pretender",
        "an object that is a list for whoever asks politely",
        _lying("""
            class Pretender:
                __class__ = list

                def __init__(self, told):
                    self.told = told

                def __len__(self):
                    return len(self.told)

                def __getitem__(self, place):
                    return self.told[place]

            where_dali_wins, where_dali_loses = Pretender(wins), Pretender(loses)
        """),
        "unreadable",
    ),
    text_cheat(
        "R02-blank", "spaces of several kinds", lists(["   ", "\t\n", "\u3000" * 40], [" ", "\u00a0" * 40]), "too_few"
    ),
    text_cheat(
        "R02-invisible",
        "characters that nobody sees",
        lists(["\u200b\u200d\u2060\ufeff" * 20, "\u3164" * 30, "\u2800" * 30], ["\u00ad" * 90, "\U000e0041" * 40]),
        "too_few",
    ),
    text_cheat(
        "R02-emoji",
        "pictures of things",
        lists(["🚀" * 40, "🎥🖼️💻" * 9, "👩‍💻🔥🔥" * 9], ["📄📄" * 9, "📊" * 40]),
        "too_few",
    ),
    text_cheat(
        "R02-combining",
        "one letter under five hundred accents",
        lists([letter + mark * 500 for letter, mark in (("A", "\u0301"), ("E", "\u0300"), ("O", "\u0308"))]),
        "not_substantive",
    ),
    text_cheat(
        "R02-copies",
        "one scenario three times, told apart by what nobody sees",
        lists([ONE, ONE.replace(" ", " \u200b\u2060"), "".join(f"{one}\u034f" for one in ONE)]),
        "duplicate",
    ),
    text_cheat(
        "R02-order",
        "an order to a grader, hidden between invisible characters",
        lists([f"{text} {chr(0x200B).join(ORDER)}" for text in WINS]),
        "injection",
    ),
    text_cheat(
        "R11-copies",
        "one scenario three times, in letters that look alike",
        lists([ONE, ONE.translate(_CYRILLIC), f"\u202a{ONE.replace('e', 'е')}\u202c"]),
        "duplicate",
    ),
    text_cheat(
        "R11-order",
        "an order to a grader in letters that look alike",
        lists([f"{text} {ORDER.translate(_CYRILLIC)}" for text in WINS]),
        "injection",
    ),
    text_cheat(
        "R11-wide",
        "one scenario three times, in letters of other widths and styles",
        lists([ONE, _styled(ONE, 0xFF41, 0xFF21), _styled(ONE, 0x1D41A, 0x1D400)]),
        "duplicate",
    ),
    Procedure(
        "R11-spoof",
        "escapes and direction marks that rewrite what staff read",
        _spoof,
        ("reflections.needs_review",),
    ),
    text_cheat(
        "R12-one-string",
        "one scenario as a text, which has more than three characters",
        f"where_dali_wins = {ONE!r}\nwhere_dali_loses = {LOSES[0]!r}",
        "too_few",
    ),
    text_cheat("R12-nested", "all scenarios in one entry", lists([" ".join(WINS)], [" ".join(LOSES)]), "too_few"),
    text_cheat(
        "R12-range", "something with a length", "where_dali_wins, where_dali_loses = range(9), range(9)", "unreadable"
    ),
    text_cheat(
        "R12-generator",
        "scenarios without an end",
        _lying("import itertools as i\nwhere_dali_wins, where_dali_loses = i.cycle(wins), i.cycle(loses)"),
        "unreadable",
    ),
    text_cheat(
        "R12-recursive",
        "lists that hold themselves",
        "where_dali_wins, where_dali_loses = [], {}\n"
        "where_dali_wins += [where_dali_wins] * 3\n"
        "where_dali_loses.update(a=where_dali_loses, b=where_dali_wins)",
        "not_substantive",
    ),
    *(
        text_cheat(
            f"R13-{name}",
            "ten megabytes and more of what a pattern may choke on",
            f"text = {text}\nwhere_dali_wins, where_dali_loses = [text] * {count}, [text] * {count}",
            code,
            deadline_s=30.0,
        )
        for name, (text, count, code) in _HOSTILE.items()
    ),
    text_cheat(
        "R15-hints",
        "lists made of whatever the pod tells about grading",
        """
        import os, re, sys

        told = list(os.environ.values()) + sys.argv
        for place in ("/proc/1/environ", "/proc/1/cmdline", "/proc/self/environ", "/etc/hostname"):
            try:
                told.append(open(place, errors="replace").read())
            except OSError:
                pass
        for root in {"/", os.getcwd(), *sys.path}:
            for folder, folders, names in os.walk(root):
                if folder.count("/") > 4 or folder.startswith(("/proc", "/sys")):
                    folders.clear()
                for name in names:
                    if re.search("reflect|lexicon|rubric|expected|hint|answer", name, re.I):
                        try:
                            told.append(open(os.path.join(folder, name), errors="replace").read(100_000))
                        except OSError:
                            pass
        sentences = [one for text in told for one in re.split(r"(?<=[.!])\\s+|\\n", text) if "DALI" in one]
        where_dali_wins = [one for one in sentences if "wins" in one or "fast" in one][:20]
        where_dali_loses = [one for one in sentences if "loses" in one or "slow" in one][:20]
        """,
        "too_few",
        deadline_s=60.0,
    ),
)
