"""Trains the text model of the check `reflections` from the labelled lists: `python bench/reflections_train.py`.

Needs the extra `training`. Writes `checks/reflections/meaning/model.bin` and `model.json`.

1. One logistic regression for each head over the hashed features of entries; the flaws each against good entries.
2. Cross-fitting: each writer's lists are scored by heads that saw none of that writer's, so that what follows learns
   from scores as good as they will be on new lists, not better.
3. One logistic regression over the signals of lists, on these scores, and its two thresholds.
4. The heads again, from all lists.
"""

import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from hashlib import sha256
from itertools import chain, combinations
from math import sqrt
from pathlib import Path
from zlib import crc32

import numpy as np
from scipy.sparse import csr_matrix, hstack
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.reflections_lists import Labelled
from bench.reflections_lists import read as read_lists
from checks.reflections.items import Side, items_of
from checks.reflections.judging import chosen, scores_of, signals
from checks.reflections.meaning import model as text_model
from checks.reflections.meaning.features import BITS, buckets, known_units, words_said
from checks.reflections.meaning.model import HEADS, KNOWN_BITS, Model, comparison
from checks.reflections.sifting import sift

NEEDED = {Side.WINS: 3, Side.LOSES: 2}
FLAW_OF_KIND = {
    "false": "untrue",
    "empty": "vague",
    "off_topic": "off_topic",
    "about_me": "off_topic",
    "unfilled": "vague",
    "keywords": "keywords",
    "pseudo": "salad",
    "dream": "dream",
    "injection": "injection",
}
FOLDS = 6
STRENGTH = 30.0
"""Inverse of the regularisation of the heads."""
SAME_STRENGTH = 0.3
MOST_COMPARED = 4
LIST_STRENGTH = 0.3
SEEN_AT_LEAST = 2
"""Lists that must hold a word before it counts as known."""
THRESHOLDS = {"alike_from": 0.45, "order_from": 5.5, "maybe_order_from": 1.5, "known_from": 0.5}
MOST_REFUSED, MOST_PASSED = 0.0075, 0.03
"""Shares of good lists that may be refused and of bad ones that may pass, on the cross-fitted scores."""
EARLIER = frozenset(f"writer_{number:02}" for number in range(1, 6))
"""Files from before the text model."""


def entries_of(lists: Sequence[Labelled]) -> list[tuple[str, int, str]]:
    """Text, side and kind of every entry."""
    return [entry for one in lists for entry in one.entries()]


def sparse_rows(found: Sequence[np.ndarray]) -> csr_matrix:
    """Features as rows of length 1 (of length 0 where there are none); shape (rows, 2**BITS)."""
    counts = [len(row) for row in found]
    values = np.repeat([1 / np.sqrt(max(1, count)) for count in counts], counts)
    starts = np.concatenate([[0], np.cumsum(counts)])
    return csr_matrix((values, np.concatenate(found), starts), shape=(len(found), 1 << BITS))


def matrix(texts: Sequence[str]) -> csr_matrix:
    """Features of texts, each row of length 1; shape (texts, 2**BITS)."""
    return sparse_rows([features_of(text) for text in texts])


@cache
def features_of(text: str) -> np.ndarray:
    """Buckets of a text, which every fold asks for again."""
    return buckets(text)


def labels_of(entries: Sequence[tuple[str, int, str]], head: str) -> tuple[list[int], list[int]]:
    """Places of the entries that a head learns from, and 1 or 0 for each."""
    found = {place: label_of(side, kind, head) for place, (_, side, kind) in enumerate(entries)}
    return [p for p, label in found.items() if label is not None], [x for x in found.values() if x is not None]


def label_of(side: int, kind: str, head: str) -> int | None:
    """1 or 0 for an entry that a head learns from, else None."""
    true_side = {"good": side, "swapped": -side}.get(kind)
    if head == "side":
        return None if true_side is None else int(true_side > 0)
    if head in ("win", "loss"):
        wanted = 1 if head == "win" else -1
        if true_side is not None:
            return int(true_side == wanted)
        return 0 if kind in FLAW_OF_KIND and side == wanted else None
    if kind == "good":
        return 0
    return 1 if FLAW_OF_KIND.get(kind) == head else None


def train_heads(lists: Sequence[Labelled]) -> Model:
    """The heads, quantised, from these lists alone."""
    entries = entries_of(lists)
    features = matrix([text for text, _, _ in entries])
    weights = np.zeros((len(HEADS), 1 << BITS), dtype=np.int8)
    scales, biases = [], []
    for number, head in enumerate(HEADS):
        places, labels = labels_of(entries, head)
        fitted = LogisticRegression(
            C=STRENGTH, class_weight="balanced", solver="liblinear", dual=True, tol=0.01, max_iter=5000, random_state=0
        )
        fitted.fit(features[places], labels)
        # scaled by the largest weight: cutting large ones off takes from the rarer flaws what tells them
        scale = float(np.abs(fitted.coef_).max() / 127)
        weights[number] = np.round(fitted.coef_[0] / scale).astype(np.int8)
        scales.append(round(scale, 8))
        biases.append(round(float(fitted.intercept_[0]), 6))
    rarity = rarity_of([text for text, _, _ in entries]).astype(np.int64)
    shared, differing, sameness = train_sameness(lists, rarity)
    return Model(
        weights=weights.T.copy(),
        scales=tuple(scales),
        biases=tuple(biases),
        rarity=rarity,
        shared=shared,
        differing=differing,
        sameness=sameness,
        known=known_of(lists),
        decision={},
        thresholds={},
    )


def train_sameness(lists: Sequence[Labelled], rarity: np.ndarray) -> tuple[np.ndarray, np.ndarray, dict[str, float]]:
    """What tells two entries of one situation (of lists that repeat one) from entries of good lists."""
    pairs, labels = [], []
    for one in lists:
        if one.good or one.kind == "repeated":
            for texts in (one.wins[:MOST_COMPARED], one.loses[:MOST_COMPARED]):
                found = list(combinations(texts, 2))
                pairs.extend(found)
                labels.extend([int(not one.good)] * len(found))
    seen = [comparison(*pair, rarity) for pair in pairs]
    dense = np.array([[likeness, sqrt(likeness), overlap] for _, _, likeness, overlap in seen])
    spread = dense.std(axis=0)
    rows = hstack(
        [csr_matrix(dense / spread), sparse_rows([row[0] for row in seen]), sparse_rows([row[1] for row in seen])]
    ).tocsr()
    fitted = LogisticRegression(
        C=SAME_STRENGTH, class_weight="balanced", solver="liblinear", dual=True, tol=0.02, max_iter=5000, random_state=0
    )
    weights = fitted.fit(rows, labels).coef_[0]
    likeness, root, overlap = weights[:3] / spread
    tables = np.split(weights[3:], 2)
    scales = [float(np.abs(table).max() / 127) for table in tables]
    shared, differing = (np.round(table / scale).astype(np.int8) for table, scale in zip(tables, scales, strict=True))
    told = {
        "bias": float(fitted.intercept_[0]),
        "shared": scales[0],
        "differing": scales[1],
        "likeness": float(likeness),
        "root": float(root),
        "overlap": float(overlap),
    }
    return shared, differing, {name: round(value, 8) for name, value in told.items()}


def rarity_of(texts: Sequence[str]) -> np.ndarray:
    """Inverse document frequency of each bucket, 0 to 255."""
    held = np.zeros(1 << BITS)
    for text in texts:
        held[words_said(text)] += 1
    return np.round(255 * np.log((len(texts) + 1) / (held + 1)) / np.log(len(texts) + 1)).astype(np.uint8)


def known_of(lists: Sequence[Labelled]) -> np.ndarray:
    """Bits of the words that several lists hold."""
    counts: dict[int, int] = {}
    for one in lists:
        for unit in {unit for text in (*one.wins, *one.loses) for unit in known_units(text)}:
            counts[unit] = counts.get(unit, 0) + 1
    bits = np.zeros(1 << (KNOWN_BITS - 3), dtype=np.uint8)
    for unit, count in counts.items():
        if count >= SEEN_AT_LEAST:
            place = unit & ((1 << KNOWN_BITS) - 1)
            bits[place >> 3] |= 1 << (place & 7)
    return bits


def signals_of(one: Labelled, used: Model) -> tuple[dict[str, float] | None, float]:
    """Signals of lists, None where form alone decides, and the share of known words."""
    lists = items_of(one.wins, one.loses)
    sift(lists)
    left = {side: [item for item in items if item.counted] for side, items in lists.items()}
    for item in chain(*left.values()):
        item.scores = scores_of(item, used.scores(item.read))
    if any(len(left[side]) < NEEDED[side] for side in Side):
        return None, 1.0
    best = {side: chosen(left[side], NEEDED[side], used) for side in Side}
    known = used.share_known([item.read for items in best.values() for item in items])
    return signals(best, used), known


def cross_fitted(lists: Sequence[Labelled], say: Callable[[str], None]) -> list[tuple[dict[str, float] | None, float]]:
    """Signals of every list by heads that saw nothing of its writer."""
    groups = [one.source for one in lists]
    found: list[tuple[dict[str, float] | None, float]] = [(None, 1.0)] * len(lists)
    splits = GroupKFold(n_splits=min(FOLDS, len(set(groups)))).split(lists, groups=groups)
    for number, (rest, held_out) in enumerate(splits, 1):
        used = train_heads([lists[place] for place in rest])
        for place in held_out:
            found[place] = signals_of(lists[place], used)
        say(f"fold {number} of {min(FOLDS, len(set(groups)))}")
    return found


def train_decision(lists: Sequence[Labelled], seen: Sequence[dict[str, float] | None]) -> dict[str, float]:
    """Weights of the signals: of the lists that form does not decide."""
    used = [(one, signs) for one, signs in zip(lists, seen, strict=True) if signs is not None]
    names = list(used[0][1])
    rows = np.array([[signs[name] for name in names] for _, signs in used])
    spread = rows.std(axis=0) + 1e-9
    fitted = LogisticRegression(C=LIST_STRENGTH, class_weight="balanced", max_iter=5000)
    fitted.fit(rows / spread, [int(one.good) for one, _ in used])
    weights = {name: round(float(value), 6) for name, value in zip(names, fitted.coef_[0] / spread, strict=True)}
    return weights | {"bias": round(float(fitted.intercept_[0]), 6)}


def sum_of(signs: Mapping[str, float], weights: Mapping[str, float]) -> float:
    """The weighted sum that is compared with the thresholds."""
    return weights["bias"] + sum(weights[name] * value for name, value in signs.items())


def thresholds_of(lists: Sequence[Labelled], sums: Sequence[float | None]) -> dict[str, float]:
    """Where good begins and not good ends, from the shares that are allowed."""
    good = sorted(total for one, total in zip(lists, sums, strict=True) if one.good and total is not None)
    bad = sorted((-1e9 if total is None else total) for one, total in zip(lists, sums, strict=True) if not one.good)
    good_from = bad[-1 - int(MOST_PASSED * len(bad))]
    not_good_to = good[int(MOST_REFUSED * len(good))]
    return {"good_from": round(max(good_from, not_good_to), 3), "not_good_to": round(min(good_from, not_good_to), 3)}


def shares(lists: Sequence[Labelled], sums: Sequence[float | None], limits: Mapping[str, float]) -> list[str]:
    """Lines that say what becomes of the cross-fitted lists, by kind where they are not good."""
    rows: dict[str, list[float]] = {}
    for one, total in zip(lists, sums, strict=True):
        value = -1e9 if total is None else total
        rows.setdefault("good" if one.good else "not good", []).append(value)
        if not one.good:
            rows.setdefault(f"  {one.kind}", []).append(value)
    lines = [f"{'cross-fitted':14}{'lists':>7}{'passed':>9}{'refused':>9}"]
    for name, values in sorted(rows.items(), key=lambda row: (row[0].startswith(" "), row[0])):
        passed = sum(value >= limits["good_from"] for value in values) / len(values)
        refused = sum(value <= limits["not_good_to"] for value in values) / len(values)
        lines.append(f"{name:14}{len(values):7}{passed:9.1%}{refused:9.1%}")
    return lines


def main() -> None:
    """Trains and writes."""
    started = time.monotonic()

    def say(text: str) -> None:
        print(f"{time.monotonic() - started:6.0f} s  {text}", flush=True)

    lists = read_lists()
    say(
        f"{len(lists)} lists, {sum(one.good for one in lists)} of them good, "
        f"by {len({one.source for one in lists})} writers"
    )
    seen = cross_fitted(lists, say)
    weights = train_decision(lists, [signs for signs, _ in seen])
    sums = [None if signs is None else sum_of(signs, weights) for signs, _ in seen]
    thresholds = THRESHOLDS | thresholds_of(lists, sums)
    print("\n".join(shares(lists, sums, thresholds)))
    new = [place for place, one in enumerate(lists) if one.source not in EARLIER]
    print("of these, written for the model:")
    print("\n".join(shares([lists[place] for place in new], [sums[place] for place in new], thresholds)[:3]))
    heads = train_heads(lists)
    parts = (heads.weights.T, heads.rarity.astype(np.uint8), heads.shared, heads.differing, heads.known)
    raw = b"".join(part.tobytes() for part in parts)
    told = {
        "sha256": sha256(raw).hexdigest(),
        "lists": len(lists),
        "heads": HEADS,
        "scales": heads.scales,
        "biases": heads.biases,
        "sameness": heads.sameness,
        "decision": weights,
        "thresholds": thresholds,
    }
    folder = Path(text_model.__file__).parent
    (folder / "model.bin").write_bytes(raw)
    (folder / "model.json").write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
    say(
        f"written: {len(raw) / 1000:.0f} kB, sha256 {told['sha256'][:16]}, "
        f"CRC of the sums {crc32(repr(sums).encode()):08x}"
    )


if __name__ == "__main__":
    main()
