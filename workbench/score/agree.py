"""How far two feedback files agree, on the same responses: two judges, or an annotator and a judge."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from workbench.score.source import Malformed, read
from workbench.score.survey import Reader
from workbench.types import Feedback, Verdict, WorkbenchError

Pair = tuple[str, str]  # the label in the first file, the label in the second
ASPECTS = {"claims": "fact", "outcomes": "answer", "items": "checklist", "reasoning": "reasoning"}


def agreement(first: Path, second: Path) -> dict[str, Any]:
    """Accuracy, Cohen's κ and per-label scores for claims and outcomes (and checklist items and reasoning, if there are any).

    Responses are matched by id, claims by id where both files have the same text there, else by their text. The first file is
    the reference of precision and recall. `excluded` counts what is left out: rows and claims that only one file has, rows that
    could not be read, and verdicts that failed or were not given in either.

    Raises:
        WorkbenchError: a file cannot be read, or the two have no response in common.
    """
    excluded: Counter[str] = Counter(dict.fromkeys(("only_first", "only_second", "unreadable", "claims", "failed"), 0))
    rows = dict(_compact(first, excluded))
    pairs: dict[str, list[Pair]] = {name: [] for name in ASPECTS}
    matched = set()
    for identity, other in _compact(second, excluded):
        if identity not in rows:
            excluded["only_second"] += 1
            continue
        matched.add(identity)
        for name in ASPECTS:
            pairs[name] += _pairs(rows[identity][name], other[name], excluded)
    if not matched:
        raise WorkbenchError(f"'{first}' and '{second}' have no response id in common: give two files about the same responses")
    excluded["only_first"] = len(rows) - len(matched)
    told = {name: compare(found) for name, found in pairs.items() if found or name in ("claims", "outcomes")}
    return {"rows": len(matched), **told, "excluded": dict(excluded)}


def compare(pairs: Sequence[Pair]) -> dict[str, Any]:
    """n, accuracy, Cohen's κ, and for each label precision, recall and F1 of the second against the first.

    What is not defined is None: κ where both always give the same one label, precision of a label that was never given.
    """
    n, both = len(pairs), Counter(pairs)
    given, wanted = Counter(b for _, b in pairs), Counter(a for a, _ in pairs)
    right = sum(count for (a, b), count in both.items() if a == b)
    chance = sum(wanted[label] * given[label] for label in wanted) / n**2 if n else 1.0
    kappa = (right / n - chance) / (1 - chance) if chance < 1 else None
    labels = {
        label: {
            "first": wanted[label],
            "second": given[label],
            "precision": _share(both[label, label], given[label]),
            "recall": _share(both[label, label], wanted[label]),
            "f1": _share(2 * both[label, label], given[label] + wanted[label]),
        }
        for label in sorted({*given, *wanted})
    }
    confusion = [{"first": a, "second": b, "n": count} for (a, b), count in sorted(both.items())]
    return {
        "n": n, "accuracy": _share(right, n), "kappa": None if kappa is None else round(kappa, 6),
        "labels": labels, "confusion": confusion,
    }  # fmt: skip


def _share(part: int, whole: int) -> float | None:
    return round(part / whole, 6) if whole else None


Labels = dict[str, tuple[str, str | None]]  # target -> text of the claim, label (None: failed or not given)


def _compact(path: Path, excluded: Counter[str]) -> Iterator[tuple[str, Mapping[str, Labels]]]:
    """The labels of each row of a file, by its id."""
    reader = Reader(path)
    for line in read(path):
        try:
            item = reader.item(line, split=False)
        except Malformed:
            excluded["unreadable"] += 1
            continue
        feedback = item.feedback
        yield item.response.id, {name: _labels(feedback, aspect) for name, aspect in ASPECTS.items()}


def _labels(feedback: Feedback, aspect: str) -> Labels:
    texts = {f"claim:{claim.id}": " ".join(claim.text.casefold().split()) for claim in feedback.claims}
    found: dict[str, Verdict] = {}
    for verdict in feedback.verdicts:
        if verdict.aspect == aspect and (aspect != "checklist" or verdict.target.startswith("item:")):
            found.setdefault(verdict.target, verdict)
    told = {target: (texts.get(target, ""), verdict.label) for target, verdict in found.items()}
    silent = {target: (text, None) for target, text in texts.items() if aspect == "fact" and target not in told}
    return told | silent


def _pairs(first: Labels, second: Labels, excluded: Counter[str]) -> list[Pair]:
    """The labels of what both have: by target where its text is the same, else by text, each once."""
    remaining, pairs = dict(second), []
    by_text: dict[str, list[str]] = {}
    for target, (text, _) in second.items():
        by_text.setdefault(text, []).append(target)
    unmatched = 0
    for target, (text, label) in sorted(first.items(), key=lambda entry: second.get(entry[0], ("", None))[0] != entry[1][0]):
        same = target if remaining.get(target, ("\0", None))[0] == text else None
        partner = same or next((other for other in by_text.get(text, ()) if other in remaining and text), None)
        if partner is None:
            unmatched += 1
            continue
        other = remaining.pop(partner)[1]
        if label is None or other is None:
            excluded["failed"] += 1
        else:
            pairs.append((label, other))
    excluded["claims"] += unmatched + len(remaining)
    return pairs
