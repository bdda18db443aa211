"""Verdicts on claims with given evidence, against people's: WiCE, Factcheck-GPT, Fool Me Twice, FEVER-Symmetric, BEGIN."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.human import stats
from benchmarks.human.cache import Remembered
from workbench.credit.attribute import words
from workbench.entailment import LABELS, Row, Verifier
from workbench.entailment.calibrate import reliability
from workbench.entailment.slices import slice_rows
from workbench.types import Passage

FIXED = 0.7  # of the claim's words: chosen before any figure was seen


@dataclass(frozen=True)
class Pair:
    """A claim with its evidence and people's label (a position in `LABELS`). Pairs of one group are resampled together."""

    claim: str
    passages: tuple[Passage | str, ...]
    label: int
    group: str


@dataclass(frozen=True)
class DataSet:
    """`classes` are those its labels tell apart; `clean` says that no claim of it is among the verifier's training claims."""

    read: Callable[[Path], list[Pair]]
    classes: str
    clean: bool = True


def from_rows(name: str, group: Callable[[Row], str]) -> Callable[[Path], list[Pair]]:
    """A file that `workbench.entailment.slices` reads."""
    return lambda folder: pairs(slice_rows(folder, name), group)


def pairs(rows: Sequence[Row], group: Callable[[Row], str]) -> list[Pair]:
    return [Pair(row.claim, (row.premise,), row.label, group(row)) for row in rows]


def fool_me_twice_retrieved(folder: Path) -> list[Pair]:
    """The gold evidence among the other extracts of the page that the authors' retrieval gave."""
    found = []
    for row in json_lines(folder / "fool_me_twice" / "dev.jsonl"):
        texts = dict.fromkeys(piece["text"] for piece in [*row["retrieved_evidence"], *row["gold_evidence"]])
        passages = tuple(Passage(str(n), row["wikipedia_page"], text) for n, text in enumerate(texts))
        found.append(Pair(row["text"], passages, 0 if row["label"] == "SUPPORTS" else 1, row["wikipedia_page"]))
    return found


def factcheck_claims(folder: Path) -> list[Pair]:
    """Claims of ChatGPT's answers with all web evidence found for each: is the claim true, false, or not to be told?"""
    known = {"True": LABELS.index("support"), "False": LABELS.index("contradict"), "unknown": LABELS.index("neutral")}
    return [
        Pair(claim, tuple(evidence), known[str(label)], row["prompt"])
        for row in json_lines(folder / "factcheck_gpt" / "factcheck-GPT-benchmark.jsonl")
        for sentence in row["sentences"].values()
        for claim, evidence, label in zip(
            sentence["claims"], sentence["auto_evidence"], sentence["claims_factuality_label"], strict=False
        )
        if evidence
    ]


def by_claim(row: Row) -> str:
    return row.claim


def by_premise(row: Row) -> str:
    return row.premise


SETS: dict[str, DataSet] = {
    "WiCE, whole page": DataSet(from_rows("wice/claim.dev.jsonl", by_claim), "supported, partially or not"),
    "WiCE, oracle chunk": DataSet(from_rows("wice/oracle_chunks.claim.dev.jsonl", by_claim), "supported, partially or not"),
    "Factcheck-GPT, stance": DataSet(
        from_rows("factcheck_gpt/subtask3_claim_evidence_stance.jsonl", by_claim), "support, refute, rest", clean=False
    ),
    "Factcheck-GPT, claim": DataSet(factcheck_claims, "true, false, unknown", clean=False),
    "Fool Me Twice, gold evidence": DataSet(from_rows("fool_me_twice/dev.jsonl", by_premise), "supports, refutes"),
    "Fool Me Twice, retrieved": DataSet(fool_me_twice_retrieved, "supports, refutes"),
    "FEVER-Symmetric": DataSet(from_rows("fever_symmetric/fever_symmetric_dev.jsonl", by_premise), "supports, refutes"),
    "BEGIN, Wizard of Wikipedia": DataSet(from_rows("begin/begin_test_wow.tsv", by_premise), "attributable or not"),
    "BEGIN, CMU-DoG": DataSet(from_rows("begin/begin_dev_cmu.tsv", by_premise), "attributable or not"),
}


def measure(given: Sequence[Pair], verifier: Remembered, tuned: float, seed: int) -> tuple[dict[str, Any], list, list]:
    """Supported against all else by p(support) ≥ the verifier's `split`, which was chosen on its dev rows; also by
    p(support) ≥ .5 and by the label that a user sees. Three-way where all three classes occur.

    Also gives p(support) and whether people say supported, for each pair.
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
    rivals = {name: stats.balanced(gold, shared >= at, np.ones(len(gold))) for name, at in thresholds.items()}
    best = shared >= thresholds[max(rivals, key=lambda name: rivals[name])]

    def told(statistic: stats.Statistic) -> dict[str, float | None]:
        return stats.interval(statistic, groups, seed)

    by_p, by_overlap = stats.auroc(gold, p), stats.auroc(gold, shared)
    found: dict[str, Any] = {
        "n": len(given),
        "groups": len(set(groups)),
        "labels": {name: int((label == number).sum()) for number, name in enumerate(LABELS)},
        "balanced_accuracy": told(partial(stats.balanced, gold, said)),
        "balanced_accuracy_at_half": told(partial(stats.balanced, gold, p >= 0.5)),
        "balanced_accuracy_of_label_correct": told(partial(stats.balanced, gold, correct)),
        "auroc": told(by_p),
        "accuracy": told(partial(stats.accuracy, gold == said)),
        "ece": told(partial(stats.ece, p, gold)),
        "windows": sum(check.windows for check in checks),
        "all_supported": {"balanced_accuracy": 0.5, "accuracy": told(partial(stats.accuracy, gold))},
        "overlap": {
            name: {"threshold": at, "balanced_accuracy": told(partial(stats.balanced, gold, shared >= at))}
            for name, at in thresholds.items()
        },
        "minus_overlap": {
            "balanced_accuracy": told(lambda w: stats.balanced(gold, said, w) - stats.balanced(gold, best, w)),
            "auroc": told(lambda w: by_p(w) - by_overlap(w)),
        },
    }
    found["overlap"]["auroc"] = told(by_overlap)
    if len(set(label.tolist())) == 3:
        top = triples.argmax(axis=1)
        right = {"accuracy": partial(stats.accuracy, label == top), "balanced_accuracy": partial(stats.balanced, label, top)}
        found["three_way"] = {name: told(statistic) for name, statistic in right.items()}
    return found, p.tolist(), gold.tolist()


def measure_halves(
    given: Sequence[Pair], verifier: Verifier, half: Callable[[str], int], names: Sequence[str]
) -> dict[str, dict[str, Any]]:
    """Balanced accuracy of either half of the groups, by p(support) and by the label that a user sees."""
    found = {}
    for number, name in enumerate(names):
        some = [pair for pair in given if half(pair.group) == number]
        checks = verifier.check_all([(pair.claim, pair.passages) for pair in some])
        gold = np.array([pair.label == 0 for pair in some])
        p, ones = np.array([check.support for check in checks]), np.ones(len(some))
        correct = np.array([verifier.label(check) == "correct" for check in checks])
        said = {"balanced_accuracy": p >= verifier.settings.split, "of_label_correct": correct}
        measured = {key: round(stats.balanced(gold, one, ones), 4) for key, one in said.items()}
        counts = {"supported": int(gold.sum()), "called_correct": int(correct.sum()), "both": int((correct & gold).sum())}
        found[name] = {"n": len(some), **measured, "auroc": round(stats.auroc(gold, p)(ones), 4), **counts}
    return found


def overlap(claim: str, passages: Sequence[Passage | str]) -> float:
    """The share of the claim's words that occur in the evidence, titles included."""
    texts = [f"{one.title} {one.text}" if isinstance(one, Passage) else one for one in passages]
    wanted, known = set(words(claim)), set(words(" ".join(texts)))
    return len(wanted & known) / len(wanted) if wanted else 0.0


def tune(rows: Sequence[Row]) -> float:
    """The threshold of the best balanced accuracy on rows that are none of the people's sets measured here."""
    shared = np.array([overlap(row.claim, [row.premise]) for row in rows])
    gold, ones = np.array([row.label == 0 for row in rows]), np.ones(len(rows))
    return float(max(np.arange(1, 21) / 20, key=lambda at: stats.balanced(gold, shared >= at, ones)))


def pooled(p: Sequence[float], gold: Sequence[bool]) -> dict[str, Any]:
    """Reliability of p(support) over all sets together."""
    return {"n": len(p), **reliability(p, gold)}


def json_lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
