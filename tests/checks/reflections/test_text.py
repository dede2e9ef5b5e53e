"""Normalisation and cutting."""

import pytest

from checks.reflections.text import clean, fold, pieces, skeleton


@pytest.mark.parametrize(
    ("typed", "cleaned"),
    [
        ("ＪＰＥＧ", "jpeg"),
        ("JP\u200bEG\u202e", "jpeg"),
        ("H.264 and h 265", "h264 and h265"),
        ("JРЕG", "jpeg"),  # Cyrillic Er and Ie
        ("٤ هسته", "4 هسته"),
        ("2xGPU", "2 x gpu"),
        ("Процессор", "процессор"),
    ],
)
def test_clean(typed, cleaned):
    """Width, invisible characters, look-alikes inside Latin words, digits and codec names; a Russian word stays one."""
    assert clean(typed).startswith(cleaned)


@pytest.mark.parametrize(
    ("typed", "folded"), [("décodage", "decodage"), ("ядёр", "ядер"), ("łącze", "lacze"), ("كرة", "كره")]
)
def test_fold(typed, folded):
    """Accents and spelling variants fall away."""
    assert fold(typed) == folded


def test_skeletons_of_lookalikes_are_equal():
    """A sentence written in mixed alphabets has the same skeleton."""
    assert skeleton("decode on four cores") == skeleton("dесоdе оn fоur соrеs")


def test_pieces_split_scripts_and_numbers():
    """Runs of one script stay together, numbers stand alone, signs are kept."""
    assert [piece.text for piece in pieces(clean("GPU利用率只有30%，4K"))] == ["gpu", "利用率只有", "30", "%", "4", "k"]


def test_positions_count_words_in_any_script():
    """The same sentence is about as long in Chinese as in English."""
    english = pieces(clean("The CPU cores cannot decode the photos fast enough"))
    chinese = pieces(clean("CPU核心来不及解码这些照片"))
    assert abs(sum(piece.width for piece in english) - sum(piece.width for piece in chinese)) < 3


def test_expanding_characters_do_not_lengthen():
    """U+FDFA stands for 18 characters; cleaned text is at most twice as long as what was typed."""
    assert len(clean("\ufdfa" * 100)) <= 200
