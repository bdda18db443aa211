"""Agreement of two feedback files on the same responses, as of an annotator and a judge."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from workbench.failures import failed, judged
from workbench.metrics.rows import file_of
from workbench.score.source import Malformed, read
from workbench.score.survey import Reader
from workbench.types import Feedback, WorkbenchError

Pair = tuple[str, str]  # the label in the first file, the label in the second
NAMED = 100  # ids that are listed
ASPECTS = {"claims": "fact", "outcomes": "answer", "items": "checklist", "reasoning": "reasoning"}
LEFT_OUT = (
    "only_first",
    "only_second",
    "unreadable",
    "other_response",
    "not_judged",
    *ASPECTS,
    "verdicts",
    "duplicates",
)


def agreement(first: Path, second: Path) -> dict[str, Any]:
    """Accuracy, Cohen's κ and per-label scores for claims and outcomes (and checklist items and
    reasoning, if there are any).

    Responses are matched by id, if they are the same text but for white space; claims by id
    where both files have the same text there, else by their text. The first file is the
    reference of precision and recall. `excluded` counts what is left out: rows that only one
    file has, that could not be read, whose response differs (`other_responses` names them) or
    that one of the files has not judged, or whose id came before; claims, outcomes, items and
    reasoning that only one file has; verdicts without a label in either. `failed` rows have a
    failure recorded in either; what of them has a label is compared. A run's folder stands for
    its rollouts.

    Raises:
        WorkbenchError: a file cannot be read or has nothing judged, or the two have no response
        in common.
    """
    excluded: Counter[str] = Counter(dict.fromkeys(LEFT_OUT, 0))
    first, second = file_of(first), file_of(second)
    rows, others = _rows(first, excluded), _rows(second, excluded)
    common = [identity for identity in others if identity in rows]
    differ = [identity for identity in common if rows[identity].text != others[identity].text]
    if not common:
        raise WorkbenchError(
            f"'{first}' and '{second}' have no response id in common: give two files about the same"
            " responses"
        )
    if len(differ) == len(common):
        raise WorkbenchError(
            f"'{first}' and '{second}' have {len(common)} ids in common, and another response under"
            f" each (as under '{differ[0]}'): give two files about the same responses"
        )
    excluded["only_first"] = len(rows) - len(common)
    excluded["only_second"] = len(others) - len(common)
    excluded["other_response"] = len(differ)
    pairs: dict[str, list[Pair]] = {name: [] for name in ASPECTS}
    compared = failures = 0
    for row, other in ((rows[identity], others[identity]) for identity in common):
        if row.text != other.text:
            continue
        if not (row.judged and other.judged):
            excluded["not_judged"] += 1
            continue
        compared += 1
        failures += row.failed or other.failed
        for name, found in pairs.items():
            found += _pairs(row.labels[name], other.labels[name], name, excluded)
    scores = {
        name: compare(found)
        for name, found in pairs.items()
        if found or name in ("claims", "outcomes")
    }
    return {
        "rows": compared,
        "failed": failures,
        **scores,
        "excluded": dict(excluded),
        "other_responses": differ[:NAMED],
    }


def compare(pairs: Sequence[Pair]) -> dict[str, Any]:
    """n, accuracy, Cohen's κ, and for each label precision, recall and F1 of the second against
    the first.

    What is not defined is None: κ where both always give the same one label, precision of a
    label that was never given.
    """
    n, pair_counts = len(pairs), Counter(pairs)
    second_counts, first_counts = Counter(b for _, b in pairs), Counter(a for a, _ in pairs)
    right = sum(count for (a, b), count in pair_counts.items() if a == b)
    chance = (
        sum(first_counts[label] * second_counts[label] for label in first_counts) / n**2
        if n
        else 1.0
    )
    kappa = (right / n - chance) / (1 - chance) if chance < 1 else None
    labels = {
        label: {
            "first": first_counts[label],
            "second": second_counts[label],
            "precision": _share(pair_counts[label, label], second_counts[label]),
            "recall": _share(pair_counts[label, label], first_counts[label]),
            "f1": _share(2 * pair_counts[label, label], second_counts[label] + first_counts[label]),
        }
        for label in sorted({*second_counts, *first_counts})
    }
    confusion = [
        {"first": a, "second": b, "n": count} for (a, b), count in sorted(pair_counts.items())
    ]
    return {
        "n": n,
        "accuracy": _share(right, n),
        "kappa": None if kappa is None else round(kappa, 6),
        "labels": labels,
        "confusion": confusion,
    }


def _share(part: int, whole: int) -> float | None:
    return round(part / whole, 6) if whole else None


# target -> text of the claim, label (None: failed or not given)
Labels = dict[str, tuple[str, str | None]]


class _Row(NamedTuple):
    """What is compared of a row; `text` is a hash of its response without white space."""

    text: int
    labels: Mapping[str, Labels]
    judged: bool
    failed: bool


def _rows(path: Path, excluded: Counter[str]) -> dict[str, _Row]:
    """The rows of a file by their ids.

    Raises:
        WorkbenchError: no row can be read, or none is judged.
    """
    rows: dict[str, _Row] = {}
    reader, unreadable = Reader(path), 0
    for line in read(path):
        try:
            item = reader.item(line, split=False)
        except Malformed:
            unreadable += 1
            continue
        raw = line.row or {}
        labels = {name: _labels(item.feedback, aspect) for name, aspect in ASPECTS.items()}
        text = hash(" ".join(item.response.text.split()))
        excluded["duplicates"] += item.response.id in rows
        rows.setdefault(item.response.id, _Row(text, labels, judged(raw), failed(raw)))
    excluded["unreadable"] += unreadable
    problem = ""
    if not rows:
        problem = "it is empty"
        if unreadable:
            problem = (
                f"none of its {unreadable} rows is a feedback row in UTF-8, as `workbench score`"
                " writes it"
            )
    elif not any(row.judged for row in rows.values()):
        problem = (
            f"none of its {len(rows)} rows is judged; `workbench score --in {path} --out NEW.jsonl`"
            " judges them"
        )
    if problem:
        raise WorkbenchError(f"'{path}' has nothing to compare: {problem}")
    return rows


def _labels(feedback: Feedback, aspect: str) -> Labels:
    texts = {
        f"claim:{claim.id}": " ".join(claim.text.casefold().split()) for claim in feedback.claims
    }
    labels: Labels = {}
    for verdict in feedback.verdicts:
        item = aspect != "checklist" or verdict.target.startswith("item:")
        if verdict.aspect == aspect and item:
            labels.setdefault(verdict.target, (texts.get(verdict.target, ""), verdict.label))
    if aspect == "fact":
        labels |= {name: (text, None) for name, text in texts.items() if name not in labels}
    return labels


def _pairs(first: Labels, second: Labels, name: str, excluded: Counter[str]) -> list[Pair]:
    """The labels of what both have, each once: by target where its text is the same, else by
    text.
    """
    remaining, partners = dict(second), dict[str, str]()
    for target, (text, _) in first.items():
        if second.get(target, ("\0",))[0] == text:
            partners[target] = target
    free: dict[str, list[str]] = {}
    for target, (text, _) in second.items():
        if target not in partners:
            free.setdefault(text, []).append(target)
    for target, (text, _) in first.items():
        if target not in partners and text and free.get(text):
            partners[target] = free[text].pop(0)
    pairs: list[Pair] = []
    for target, partner in partners.items():
        label, other = first[target][1], remaining.pop(partner)[1]
        if label is None or other is None:
            excluded["verdicts"] += 1
        else:
            pairs.append((label, other))
    excluded[name] += len(first) - len(partners) + len(remaining)
    return pairs
