"""Finds a metric, a threshold with its unit and measuring conditions in a short text; rules of words and numbers.

The words are English, with the commonest of German, French, Spanish, Portuguese and Italian.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from checks.prose.text import clean, fold

Condition = Literal["batch_size", "data", "warm_up", "hardware"]

_NUMBER = r"(?:\d+(?:[.,]\d+)*\s?k?)"
_UNITS = (
    r"(?:x\b|×|%|percent|per cent|prozent|pour ?cent|por ?ciento|times|fold|fach|mal\b|veces|fois|volte|vezes"
    r"|(?:training )?(?:images?|imgs?|samples?|pictures?|frames?|files?|bilder|imagenes|imagens|immagini|batches"
    r"|steps?|it(?:erations)?)\s*(?:/|per|a|each|pro|par|por|al|je)\s*(?:s|sec|second|sekunde|seconde|segundo|secondo"
    r"|min)|fps|ips\b|it/s|ms\b|milliseconds?|millisekunden|s\b|secs?\b|seconds?|sekunden|secondes|segundos|secondi"
    r"|mins?\b|minutes?|minuten|minutos|minuti|hours?|stunden|heures|horas|h\b|gb/s|mb/s|usd|eur|euros?|dollars?|\$|€)"
)
_QUANTITY = re.compile(rf"(?:\$|€)?{_NUMBER}\s*(?:[-–]\s*{_NUMBER}\s*)?-?{_UNITS}|[x×]\s?{_NUMBER}\b")
_WRITTEN = re.compile(
    r"\b(?:twice|double[sd]?|doubling|tripl\w+|half|halv\w+|by a (?:third|quarter)|doppelt\w*|verdoppel\w*|halbier\w*"
    r"|halfte|le double|doble|doppio|dobro|mitad|moitie|metade|meta)\b"
)
_COMPARES = re.compile(
    r"[<>≥≤]|=>|\b(?:at least|at most|no (?:more|less|fewer) than|not (?:more|less) than|(?:more|less|fewer) than"
    r"|above|below|under|over|exceed\w*|beat\w*|reach\w*|hit|hits|drop\w*|fall\w*|sink\w*|rise\w*|rising|grow\w*"
    r"|gain\w*|increase\w*|decrease\w*|improv\w*|reduc\w*|cut|cuts|save[sd]?|faster|quicker|higher|lower|shorter"
    r"|better|worth|minimum|maximum|min|max|target\w*|threshold|accept\w*|goal|within|up to|down to|stay\w*|keep\w*"
    r"|must|needs? to|should|has to|require\w*|mindestens|hochstens|uber|unter|schneller|kurzer|steig\w*|sinkt?"
    r"|au moins|au plus|plus de|moins de|plus rapide|al menos|como minimo|mas rapid\w*|menos de|mas de|pelo menos"
    r"|mais rapid\w*|almeno|piu veloc\w*|meno di|speed-?\s?up|twice|double[sd]?|half|halv\w+|as fast|as long)\b"
)
_METRICS: Mapping[str, re.Pattern[str]] = {
    "rate": re.compile(
        r"(?:images?|imgs?|samples?|pictures?|frames?|files?|bilder|imagenes|imagens|immagini|batches|steps"
        r"|iterations?|it)\s*(?:/|per|a|each|pro|par|por|al|je)\s*(?:s|sec|second|sekunde|seconde|segundo|secondo|min)"
        r"|through-?\s?put|\b(?:image|sample|frame|data|loading)[- ]rate\b|\bfps\b|\bimg/s|durchsatz|\bdebit\b"
        r"|rendimiento|\bips\b"
    ),
    "time": re.compile(
        r"(?:epoch|step|iteration|batch|training|train|wall[- ]?clock|run|loading|load|decode|data)[- ]?\s?(?:time"
        r"|duration|latency|seconds)|time (?:per|for|of|to|an|one|each|spent)|(?:seconds?|minutes?|s|ms|min"
        r"|hours?) (?:per|an|each|for) (?:an? |one |each )?(?:\w+ )?(?:epoch|step|batch|iteration)|wall[- ]?clock"
        r"|latency|epochs?\s?(?:dauer|zeit)|epoch (?:takes|lasts|finishes|drops|falls|should)|zeit pro|dauer|duree"
        r"|temps|tiempo|tempo"
    ),
    "utilisation": re.compile(
        r"utili[sz]ation|gpu[- ]util\w*|\butil\b|gpu idle|idle (?:time|share|gpu|sms?)|(?:gpu|sm|input"
        r"|data)[- ](?:busy|active|stall\w*|wait\w*|starv\w*)|wait\w* (?:for|on) (?:the )?(?:data|input|batch|loader)"
        r"|data[- ]wait|auslastung|sm (?:activity|occupancy)|cpu load"
    ),
    "ratio": re.compile(
        r"speed-?\s?up|times (?:faster|as fast)|ratio|x faster|fold faster|schneller als|beschleunigung"
    ),
    "cost": re.compile(r"\bcosts?\b|gpu[- ]hours?|euros? per|dollars? per|kosten"),
}
_CONDITIONS: Mapping[Condition, re.Pattern[str]] = {
    "batch_size": re.compile(
        r"batch[- _]?\s?(?:size|grosse)|batche?s? (?:of|von|de|di) \d|\bbs\s*=?\s*\d|\bbatch\s*=?:?\s*\d"
        r"|\d+[- ](?:images?|samples?)(?: per| a)? (?:gpu )?batch|taille de (?:lot|batch)|tamano de (?:lote|batch)"
        r"|(?:same|fixed|equal|gleiche\w*) batch"
    ),
    "data": re.compile(
        r"data ?-?sets?\b|\bdata\b(?!\s*-?\s?(?:loader|load|wait))|imagenet\w*|\bcoco\b|\bcifar\w*|jpe?gs?\b"
        r"|\d+k? (?:training |held-?out )?(?:images|files|photos|pictures|bilder|imagenes)|(?:same|identical"
        r"|equal) (?:images|files|inputs?|transforms?|augmentations?|crop\w*|pictures|photos|daten|bilder)|resolution"
        r"|\d{2,4}\s?[x×]\s?\d{2,4}|image size|held-?out|daten|donnees|datos|dados|dati\b"
    ),
    "warm_up": re.compile(
        r"warm\w*|steady|(?:after|without|excluding|ignoring|skip\w*|discard\w*|drop\w*"
        r"|not counting) (?:the )?(?:first|initial|\d+)|prefill\w*|cold start|second epoch|(?:over|across"
        r"|of|for|at least|on) (?:\w+ )?(?:\d+|two|three|four|five|ten|several)\s?(?:full |whole |complete "
        r"|timed )?(?:epochs?|batches|steps|iterations|runs|repeats|repetitions|seconds|minutes)|not counted|left out"
        r"|excluded|median|mean of|average\w* (?:over|of)|best of|repeat\w*|synchroni[sz]\w*|aufwarm\w*|eingeschwungen"
        r"|echauffement|calentamiento|aquecimento|riscaldamento|(?:\d+|two|three|several) (?:warm|epochs|runs)"
    ),
    "hardware": re.compile(
        r"\b(?:a100|h100|h200|b200|t4|v100|l4|l40s?|a10g?|rtx\w*|\d*\s?gpus?|cpu cores?|cores|num_workers|workers"
        r"|threads|same (?:gpu|machine|host|pod|node|hardware)|host|machine|pod|node)\b"
    ),
}
_THRESHOLD_KEYS = re.compile(
    r"threshold|target|goal|accept|min|max|at[ _]?least|bound|limit|criterion|pass|require|schwelle|ziel|seuil|umbral"
    r"|value"
)
_BARE_NUMBER = re.compile(rf"^\W*{_NUMBER}\W*$")
_COUNTED = re.compile(
    r"(?:warm\w*|discard\w*|skip\w*|ignor\w*|exclud\w*|first|timed|measured|averag\w*|median|mean|runs?|for|over|last"
    r"|nach|apres)[ ,:(-]+(?:\w+[ ,:(-]+){0,3}$"
)
_UNIT_BEFORE = re.compile(
    rf"(?:speed-?\s?up|ratio|factor|\bfps|(?:images?|imgs?|samples?)\s?(?:/|per)\s?s(?:ec|econd)?)\W"
    rf"(?:[^\W\d][\w-]*\W+){{0,4}}[<>≥≤= ]*({_NUMBER})(?![\w])"
)
"""A number whose unit stands before it: `a speed-up of at least 1.25`, `fps above 3000`."""
_REACH = 60
"""Characters within which a comparison and its number stand."""


def metrics_in(text: str) -> list[str]:
    """Kinds of metrics that a cleaned text names, in the order of the table."""
    return [kind for kind, pattern in _METRICS.items() if pattern.search(text)]


def conditions_in(text: str) -> list[Condition]:
    """The measuring conditions that a cleaned text fixes."""
    return [condition for condition, pattern in _CONDITIONS.items() if pattern.search(text)]


def threshold_in(parts: Sequence[tuple[str, str]]) -> str:
    """The number with its unit from which on the result is accepted, as the text has it; empty where there is none.

    Args:
        parts: (key, text) pairs, cleaned; the key is empty where there is none.
    """
    unit_elsewhere = bool(metrics_in(" ".join(f"{key} {text}" for key, text in parts)))
    for key, text in parts:
        if _THRESHOLD_KEYS.search(key):
            found = _QUANTITY.search(text) or _WRITTEN.search(text)
            if found:
                return found.group().strip()
            if _BARE_NUMBER.match(text) and unit_elsewhere:
                return text.strip()
        elif key and _BARE_NUMBER.match(text) and metrics_in(key):
            return text.strip()
    return next(filter(None, (_compared(text) for _, text in parts)), "")


def lacks_unit(parts: Iterable[tuple[str, str]]) -> bool:
    """Whether a number is compared with something, without a unit."""
    pattern = re.compile(rf"(?:{_COMPARES.pattern})\W{{0,4}}(?:\w+\W){{0,2}}{_NUMBER}")
    return any(
        pattern.search(text) or (_THRESHOLD_KEYS.search(key) and _BARE_NUMBER.match(text)) for key, text in parts
    )


def cleaned(text: str) -> str:
    """One comparable form: folded, lower case, without repeated white space."""
    return " ".join(fold(clean(text)).split())


def _compared(text: str) -> str:
    for pattern in (_QUANTITY, _WRITTEN):
        for found in pattern.finditer(text):
            counted = _COUNTED.search(text[max(0, found.start() - 40) : found.start()])
            if counted is not None and not _COMPARES.search(counted.group()):
                continue  # so long a warm-up, so many seconds of timing: a condition
            before = re.split(r"[.;!?](?!\d)", text[max(0, found.start() - _REACH) : found.start()])[-1]
            after = re.split(r"[.;!?](?!\d)", text[found.end() : found.end() + _REACH // 2])[0]
            if pattern is _WRITTEN or _COMPARES.search(before) or _COMPARES.search(after):
                return found.group().strip()
    before_it = _UNIT_BEFORE.search(text)
    return before_it.group(1).strip() if before_it is not None and _COMPARES.search(before_it.group()) else ""
