"""Compare verdicts on claims with given evidence with human labels.

The sets: WiCE, Factcheck-GPT, Fool Me Twice, FEVER-Symmetric, BEGIN.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.human import stats
from benchmarks.human.cache import Remembered
from benchmarks.human.slices import json_lines, slice_rows
from workbench.credit.attribute import words
from workbench.types import Passage
from workbench.verifier import Row, Verifier
from workbench.verifier.calibrate import reliability
from workbench.verifier.rows import LABELS

HALVES = ("tuned on", "kept aside")
FIXED = 0.7  # share of the claim's words, chosen before any measurement


@dataclass(frozen=True)
class Pair:
    """A claim, its evidence and human label (a position in `LABELS`); a group is resampled
    together.
    """

    claim: str
    passages: tuple[Passage | str, ...]
    label: int
    group: str


@dataclass(frozen=True)
class DataSet:
    """`classes` names its labels; `clean` says that the verifier's training data has no claim of
    it.
    """

    read: Callable[[Path], list[Pair]]
    classes: str
    clean: bool = True


def from_rows(name: str, group: Callable[[Row], str]) -> Callable[[Path], list[Pair]]:
    """Return a reader of a file of `benchmarks.human.slices`."""
    return lambda folder: pairs(slice_rows(folder, name), group)


def pairs(rows: Sequence[Row], group: Callable[[Row], str]) -> list[Pair]:
    return [Pair(row.claim, (row.premise,), row.label, group(row)) for row in rows]


def fool_me_twice_retrieved(folder: Path) -> list[Pair]:
    """Return pairs with the gold evidence among the page's extracts of the authors' retrieval."""
    found = []
    for row in json_lines(folder / "fool_me_twice" / "dev.jsonl"):
        texts = dict.fromkeys(
            piece["text"] for piece in [*row["retrieved_evidence"], *row["gold_evidence"]]
        )
        passages = tuple(
            Passage(str(n), row["wikipedia_page"], text) for n, text in enumerate(texts)
        )
        found.append(
            Pair(
                row["text"], passages, 0 if row["label"] == "SUPPORTS" else 1, row["wikipedia_page"]
            )
        )
    return found


def factcheck_claims(folder: Path) -> list[Pair]:
    """Return ChatGPT's claims (true, false or unknown) with all web evidence found for each."""
    known = {
        "True": LABELS.index("support"),
        "False": LABELS.index("contradict"),
        "unknown": LABELS.index("neutral"),
    }
    return [
        Pair(claim, tuple(evidence), known[str(label)], row["prompt"])
        for row in json_lines(folder / "factcheck_gpt" / "factcheck-GPT-benchmark.jsonl")
        for sentence in row["sentences"].values()
        for claim, evidence, label in zip(
            sentence["claims"],
            sentence["auto_evidence"],
            sentence["claims_factuality_label"],
            strict=False,
        )
        if evidence
    ]


def by_claim(row: Row) -> str:
    return row.claim


def by_premise(row: Row) -> str:
    return row.premise


SETS: dict[str, DataSet] = {
    "WiCE, whole page": DataSet(
        from_rows("wice/claim.dev.jsonl", by_claim), "supported, partially or not"
    ),
    "WiCE, oracle chunk": DataSet(
        from_rows("wice/oracle_chunks.claim.dev.jsonl", by_claim), "supported, partially or not"
    ),
    "Factcheck-GPT, stance": DataSet(
        from_rows("factcheck_gpt/subtask3_claim_evidence_stance.jsonl", by_claim),
        "support, refute, rest",
        clean=False,
    ),
    "Factcheck-GPT, claim": DataSet(factcheck_claims, "true, false, unknown", clean=False),
    "Fool Me Twice, gold evidence": DataSet(
        from_rows("fool_me_twice/dev.jsonl", by_premise), "supports, refutes"
    ),
    "Fool Me Twice, retrieved": DataSet(fool_me_twice_retrieved, "supports, refutes"),
    "FEVER-Symmetric": DataSet(
        from_rows("fever_symmetric/fever_symmetric_dev.jsonl", by_premise), "supports, refutes"
    ),
    "BEGIN, Wizard of Wikipedia": DataSet(
        from_rows("begin/begin_test_wow.tsv", by_premise), "attributable or not"
    ),
    "BEGIN, CMU-DoG": DataSet(
        from_rows("begin/begin_dev_cmu.tsv", by_premise), "attributable or not"
    ),
}


EVIDENCE = {  # the sets by kind of evidence
    "one short text": (
        "Factcheck-GPT, stance",
        "Fool Me Twice, gold evidence",
        "FEVER-Symmetric",
        "BEGIN, Wizard of Wikipedia",
    ),
    "a page, or many passages": (
        "WiCE, whole page",
        "WiCE, oracle chunk",
        "Factcheck-GPT, claim",
        "Fool Me Twice, retrieved",
        "BEGIN, CMU-DoG",
    ),
}


@dataclass(frozen=True)
class Halved:
    """A set's pairs by half.

    `left_out` counts pairs of the second half whose claim is in the first half of any set.
    """

    pairs: Mapping[str, Sequence[Pair]]
    left_out: int


def same(claim: str) -> str:
    """Return the key of equal claims: the words in lower case."""
    return " ".join(re.findall(r"\w+", claim.casefold()))


def halves(
    sets: Mapping[str, Sequence[Pair]], half: Callable[[str], int], limit: int | None = None
) -> dict[str, Halved]:
    """Split the first `limit` pairs of each set into halves, by group.

    A claim can occur in several sets and groups. If it is in a first half, where it may have
    influenced the rules, it is not held out.
    """
    seen = {same(pair.claim) for given in sets.values() for pair in given if half(pair.group) == 0}
    found = {}
    for name, given in sets.items():
        first, second = (
            [pair for pair in given[:limit] if half(pair.group) == number]
            for number in range(len(HALVES))
        )
        kept = [pair for pair in second if same(pair.claim) not in seen]
        found[name] = Halved(dict(zip(HALVES, (first, kept), strict=True)), len(second) - len(kept))
    return found


def measure(
    given: Sequence[Pair], verifier: Remembered, tuned: float, seed: int
) -> tuple[dict[str, Any], list, list]:
    """Measure the decision "supported or not" on pairs.

    The threshold of p(support) is the verifier's `split`, chosen on its dev rows. Other figures use
    .5, the label that a user sees, and all three classes if they occur.

    Also returns p(support) and the human label "supported" of each pair.
    """
    checks = verifier.check_all([(pair.claim, pair.passages) for pair in given])
    label = np.array([pair.label for pair in given])
    triples = np.array([(check.support, check.contradict, check.neutral) for check in checks])
    groups = [pair.group for pair in given]
    gold, p = label == 0, triples[:, 0]
    said = p >= verifier.settings.split
    correct = np.array([verifier.label(check) == "correct" for check in checks])
    shared = np.array([overlap(pair.claim, pair.passages) for pair in given])
    thresholds = {"fixed": FIXED, "tuned_on_nli_dev": tuned}
    rivals = {
        name: stats.balanced(gold, shared >= at, np.ones(len(gold)))
        for name, at in thresholds.items()
    }
    best = shared >= thresholds[max(rivals, key=lambda name: rivals[name])]

    def interval(statistic: stats.Statistic) -> dict[str, float | None]:
        return stats.interval(statistic, groups, seed)

    by_p, by_overlap = stats.auroc(gold, p), stats.auroc(gold, shared)
    found: dict[str, Any] = {
        "n": len(given),
        "groups": len(set(groups)),
        "labels": {name: int((label == number).sum()) for number, name in enumerate(LABELS)},
        "balanced_accuracy": interval(partial(stats.balanced, gold, said)),
        "balanced_accuracy_of_label_correct": interval(partial(stats.balanced, gold, correct)),
        "auroc": interval(by_p),
        "accuracy": interval(partial(stats.accuracy, gold == said)),
        "ece": interval(partial(stats.ece, p, gold)),
        "windows": sum(check.windows for check in checks),
        "all_supported": {
            "balanced_accuracy": 0.5,
            "accuracy": interval(partial(stats.accuracy, gold)),
        },
        "overlap": {
            name: {
                "threshold": at,
                "balanced_accuracy": interval(partial(stats.balanced, gold, shared >= at)),
            }
            for name, at in thresholds.items()
        },
        "minus_overlap": {
            "balanced_accuracy": interval(
                lambda w: stats.balanced(gold, said, w) - stats.balanced(gold, best, w)
            ),
            "auroc": interval(lambda w: by_p(w) - by_overlap(w)),
        },
    }
    found["overlap"]["auroc"] = interval(by_overlap)
    if len(set(label.tolist())) == 3:
        top = triples.argmax(axis=1)
        right = {
            "accuracy": partial(stats.accuracy, label == top),
            "balanced_accuracy": partial(stats.balanced, label, top),
        }
        found["three_way"] = {name: interval(statistic) for name, statistic in right.items()}
    return found, p.tolist(), gold.tolist()


def measure_halves(given: Halved, verifier: Verifier) -> dict[str, dict[str, Any]]:
    """Return each half's balanced accuracy, by p(support) and by the label that a user sees.

    It is null if a class is missing.
    """
    found = {}
    for name, some in given.pairs.items():
        checks = verifier.check_all([(pair.claim, pair.passages) for pair in some])
        gold = np.array([pair.label == 0 for pair in some], dtype=bool)
        p, ones = np.array([check.support for check in checks], dtype=float), np.ones(len(some))
        correct = np.array([verifier.label(check) == "correct" for check in checks], dtype=bool)
        said = {"balanced_accuracy": p >= verifier.settings.split, "of_label_correct": correct}
        scores: dict[str, float | None] = dict.fromkeys((*said, "auroc"))
        if len(set(gold.tolist())) == 2:
            scores = {
                key: stats.number(stats.balanced(gold, one, ones)) for key, one in said.items()
            }
            scores["auroc"] = stats.number(stats.auroc(gold, p)(ones))
        counts: dict[str, float | None] = {
            "supported": int(gold.sum()),
            "called_correct": int(correct.sum()),
            "both": int((correct & gold).sum()),
        }
        found[name] = {
            "n": len(some),
            "claims": len({same(pair.claim) for pair in some}),
            **scores,
            **counts,
        }
    found[HALVES[1]]["left_out"] = given.left_out
    return found


def agreement(
    given: Mapping[str, Halved], verifier: Verifier
) -> dict[str, dict[str, dict[str, Any]]]:
    """Return how often people agree with verdicts on held-out claims, by kind of evidence.

    "rest" has all verdicts except "correct", read as "not supported". Each claim counts once;
    `verdicts` counts all texts.
    """
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for evidence, names in EVIDENCE.items():
        some = [pair for name in names if name in given for pair in given[name].pairs[HALVES[1]]]
        checks = verifier.check_all([(pair.claim, pair.passages) for pair in some])
        said = [
            (pair, verifier.label(check) == "correct")
            for pair, check in zip(some, checks, strict=True)
        ]
        for title, correct in (("correct", True), ("rest", False)):
            rows = [
                (same(pair.claim), (pair.label == 0) == correct)
                for pair, called in said
                if called == correct
            ]
            share = stats.once_each([name for name, _ in rows], [right for _, right in rows])
            found.setdefault(evidence, {})[title] = {**share, "verdicts": len(rows)}
    return found


def overlap(claim: str, passages: Sequence[Passage | str]) -> float:
    """Return the share of the claim's words that occur in the evidence, titles included."""
    texts = [f"{one.title} {one.text}" if isinstance(one, Passage) else one for one in passages]
    wanted, known = set(words(claim)), set(words(" ".join(texts)))
    return len(wanted & known) / len(wanted) if wanted else 0.0


def tune(rows: Sequence[Row]) -> float:
    """Return the threshold with the best balanced accuracy on rows outside these sets."""
    shared = np.array([overlap(row.claim, [row.premise]) for row in rows])
    gold, ones = np.array([row.label == 0 for row in rows]), np.ones(len(rows))
    return float(
        max(np.arange(1, 21) / 20, key=lambda at: stats.balanced(gold, shared >= at, ones))
    )


def pooled(p: Sequence[float], gold: Sequence[bool]) -> dict[str, Any]:
    """Return the reliability of p(support) over all sets together."""
    return {"n": len(p), **reliability(p, gold)}
