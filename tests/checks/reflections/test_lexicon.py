"""Matching of word lists."""

from importlib.resources import files

import pytest

from checks.reflections.compile_lexicon import compile_index, compiled, sources
from checks.reflections.languages import languages_of
from checks.reflections.lexicon import Lexicon, concepts, covered_languages
from checks.reflections.text import clean, pieces


def lexicon(*entries):
    """A small lexicon of (concept, language, patterns)."""
    index = compile_index(entries, {}).as_json()
    return Lexicon(index, index["phrases"])


def found(words, text, languages=None):
    """Names of the concepts in a text."""
    return {hit.concept for hit in words.find(pieces(clean(text)), languages)}


def test_the_compiled_file_is_current():
    """Whoever edits a list runs `python -m checks.reflections.compile_lexicon`."""
    stored = (files("checks.reflections") / "lexicon.json").read_text(encoding="utf-8")
    assert stored == compiled()


@pytest.mark.parametrize(
    ("pattern", "text", "matches"),
    [
        ("decod", "decoding", True),
        ("decod.", "decoding", False),
        ("gpu", "gpus", False),
        ("~bild", "hochzeitsbilder", True),
        ("keep up", "cannot keep up with", True),
        ("keep up", "keep it up", False),
        ("décod", "decodage", True),
        ("解码", "图像解码太慢", True),
        ("gpuメモリ", "GPUメモリが足りない", True),
    ],
)
def test_patterns(pattern, text, matches):
    """Stems, whole words, compounds, phrases, accents, scripts without spaces."""
    assert (found(lexicon(("it", "x", pattern)), text) == {"it"}) is matches


@pytest.mark.parametrize(("text", "matches"), [("sloooow", True), ("solw", False), ("vidoe", True), ("vieod", False)])
def test_sloppy_typing(text, matches):
    """Letters drawn out, and in longer words two swapped, are understood."""
    assert bool(concepts().find(pieces(clean(text)))) is matches


def test_punctuation_of_other_scripts_ends_words():
    """Arabic commas and Indian full stops are no letters."""
    assert [piece.text for piece in pieces(clean("جدول، متن । डेटा।"))] == ["جدول", "متن", "डेटा"]


def test_the_longest_stem_wins():
    """`language model` is about text although the word begins like the German for speech."""
    words = lexicon(("audio", "x", "sprach"), ("text", "x", "sprachmodell"))
    assert found(words, "Sprachmodelle") == {"text"}


def test_words_of_other_languages_do_not_count():
    """A Polish stem explains no English word once the text is known to be English."""
    words = lexicon(("text", "pl", "slow"), ("slow", "en", "slow"))
    assert found(words, "slow", ("en",)) == {"slow"}
    assert found(words, "slow", ("pl",)) == {"slow", "text"}


def test_phrases_mask_the_words_in_them():
    """Video memory is memory, not video."""
    assert found(concepts(), "video memory") & {"video", "memory"} == {"memory"}


def test_articles_attached_in_front():
    """Arabic and Hebrew write them as part of the word."""
    assert "image" in found(concepts(), "والصور")
    assert "gpu" in found(concepts(), "הכרטיס")


def test_every_covered_language_knows_the_core_terms():
    """Pictures, decoding, text and tables are known in each language that claims to be covered."""
    entries = {name: set() for name in ("image", "decode", "text", "tabular", "slow", "keepup", "storage", "negation")}
    for concept, language, _ in sources()[0]:
        if concept in entries:
            entries[concept].add(language)
    small = {"sk", "mr"}
    for concept, languages in entries.items():
        assert covered_languages() - small <= languages, concept


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("when the CPU is too slow for the photos and the GPU has to wait", "en"),
        ("wenn die CPU zu langsam ist und die GPU auf die Bilder wartet", "de"),
        ("когда процессор не успевает и карта ждёт, потому что ядер только четыре", "ru"),
        ("khi CPU không kịp giải mã ảnh nên GPU phải chờ", "vi"),
    ],
)
def test_languages(text, language):
    """The commonest words tell the language."""
    guessed = languages_of([pieces(clean(text))])
    assert guessed is not None
    assert guessed[0] == language


def test_two_words_tell_no_language():
    """Terse lists show none."""
    assert languages_of([pieces("imagenet jpegs")]) is None
