"""Normalisation and cutting."""

import pytest

from checks.prose.text import clean, fold, length, sentences, words


@pytest.mark.parametrize(
    ("typed", "cleaned"),
    [
        ("ＪＰＥＧ", "jpeg"),
        ("JP\u200bEG\u202e", "jpeg"),
        ("JРЕG", "jpeg"),  # Cyrillic Er and Ie
        ("٤ هسته", "4 هسته"),
        ("Процессор", "процессор"),
    ],
)
def test_clean(typed, cleaned):
    """Width, invisible characters, look-alikes inside Latin words and digits; a Russian word stays one."""
    assert clean(typed) == cleaned


@pytest.mark.parametrize(
    ("typed", "folded"), [("décodage", "decodage"), ("ядёр", "ядер"), ("łącze", "lacze"), ("كرة", "كره")]
)
def test_fold(typed, folded):
    """Accents and spelling variants fall away."""
    assert fold(typed) == folded


def test_words_split_scripts():
    """Runs of a script without spaces stand apart from Latin words and numbers."""
    assert words("GPU利用率只有30%，4K") == ("gpu", "利用率只有", "30", "4k")


def test_length_counts_words_in_any_script():
    """The same sentence is about as long in Chinese as in English."""
    english, chinese = length("The CPU cores cannot decode the photos fast enough"), length("CPU核心来不及解码这些照片")
    assert abs(english - chinese) <= 3


def test_sentences():
    """Full stops of several scripts and line ends part them; a decimal point does not."""
    assert sentences("Photos of 2.5 MP. Few cores!\n再见。好的") == [
        "Photos of 2.5 MP.",
        "Few cores!",
        "再见。",
        "好的",
    ]


def test_expanding_characters_do_not_lengthen():
    """U+FDFA stands for 18 characters; cleaned text is at most twice as long as what was typed."""
    assert len(clean("\ufdfa" * 100)) <= 200
