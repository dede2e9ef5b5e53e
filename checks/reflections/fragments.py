"""Finds one sentence that was cut into several list items.

Signs are a word or comma that cannot end a sentence, followed by an item that goes on in lower case, and a list in
which only the last item has a full stop while the others go on in lower case. Lists written without capitals and
without full stops show no such break and are left alone. English may strand a word at the end of a sentence ("slow at
that", "what it is good for"), which proves nothing in notes without capitals.
"""

from collections.abc import Sequence

from checks.reflections.reading import Reading

_ENDS = (".", "!", "?", "。", "！", "？", "।", "…", "؟", "۔")
_OPEN_ENDS = (",", "，", "、", "،", "-", "–", "—", ":")
_DANGLING = {
    # articles, prepositions, conjunctions and auxiliaries after which something must follow
    "en": "the a an of to and or with by from into for that which whose is are was were has have had because since "
    "than few its their our so when where while if becomes be although but per",
    "de": "der die das den dem des ein eine einen einem einer und oder mit von fur auf im zu zum zur weil da dass wenn "
    "wobei nur deren sehr",
    "fr": "le la les un une des du de et ou avec pour par sur dans qui que dont parce car est sont si au aux tres",
    "es": "el la los las una unos del de y o con para por en que porque cuando es son se al muy cuyo",
    "pt": "o os as um uma do da dos das de e com na no em que porque quando sao muito para",
    "it": "il lo la gli i della dei delle di con per che perche quando e sono nel nella sul molto",
    "nl": "het de een en van voor op om omdat dat die met te bij uit zeer",
    "pl": "i w z na do ze bo ktory ktora ktore gdy oraz od dla przy bardzo",
    "ru": "и в на с по к что как из для потому чтобы которыи которая которые где когда при а не очень",
    "uk": "и та у з до що як для бо якии яка яки де коли при дуже",
    "cs": "a v na s se z k o ze ktery ktera ktere protoze kdyz pro pri velmi",
    "sv": "och att som med av till for pa en ett den det eftersom mycket",
    "da": "og at som med af til for pa en et den det fordi meget",
    "no": "og at som med av til for pa en et den det fordi mye",
    "fi": "ja etta joka jotka kun koska jonka",
    "tr": "ve ile icin bir ki cok",
    "ro": "si cu de la pe care pentru ca foarte un o",
    "hu": "es hogy egy a az amely mert nagyon",
    "el": "και να που για με σε το τα του της στο στη στην η ο οι των",
}
_STRANDED = frozenset(
    {
        *("that", "which", "is", "are", "was", "were", "has", "have", "had", "do", "be", "than", "few"),
        *("to", "with", "by", "from", "into", "for", "at", "on", "in", "up", "of", "if"),
    }
)  # fmt: skip
"""English words that may end a sentence after all."""
_DANGLING_RUNS = (
    "的",
    "和",
    "与",
    "在",
    "因为",
    "把",
    "是",
    "は",
    "が",
    "を",
    "に",
    "の",
    "と",
    "で",
    "를",
    "을",
    "의",
    "और",
    "का",
    "की",
    "के",
)


def fragments(items: Sequence[tuple[str, Reading]], languages: Sequence[str] | None) -> set[int]:
    """Positions of items that are pieces of one sentence."""
    dangling = frozenset(" ".join(_DANGLING.get(language, "") for language in languages or ("en",)).split())
    found: set[int] = set()
    texts = [text.strip() for text, _ in items]
    one_sentence = _is_one_sentence(texts)
    capitals = "de" in (languages or ())  # nouns go on in upper case
    for position in range(len(items) - 1):
        after = texts[position + 1]
        goes_on = after[:1].islower() or not _has_case(after[:1]) or capitals
        broken = goes_on and not texts[position].endswith(_ENDS) and _dangles(*items[position], dangling)
        if broken and _is_stranded(*items[position]):
            broken = texts[position][:1].isupper()
        if broken or (one_sentence and goes_on and not texts[position].endswith(_ENDS)):
            found |= {position, position + 1}
    return found


def _is_one_sentence(texts: Sequence[str]) -> bool:
    """Whether the list opens with a capital, goes on in lower case and has its only full stop at the end."""
    return (
        len(texts) > 1
        and texts[0][:1].isupper()
        and texts[-1].endswith(_ENDS)
        and not any(text.endswith(_ENDS) for text in texts[:-1])
        and any(text[:1].islower() for text in texts[1:])
    )


def _dangles(text: str, reading: Reading, dangling: frozenset[str]) -> bool:
    if text.strip().endswith(_OPEN_ENDS):
        return True
    if not reading.words:
        return False
    last = reading.words[-1]
    if last.kind in {"han", "hangul"}:
        return last.text.endswith(_DANGLING_RUNS)
    return last.text in dangling or last.text in _DANGLING_RUNS


def _is_stranded(text: str, reading: Reading) -> bool:
    return not text.strip().endswith(_OPEN_ENDS) and reading.words[-1].text in _STRANDED


def _has_case(character: str) -> bool:
    return character.lower() != character.upper()
