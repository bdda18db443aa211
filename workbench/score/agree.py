"""How far two feedback files agree, on the same responses: two judges, or an annotator and a
judge.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from workbench.failures import failed, judged
from workbench.metrics.rows import file_of
from workbench.score.source import Malformed, read
from workbench.score.survey import Reader
from workbench.types import Feedback, Verdict, WorkbenchError

Pair = tuple[str, str]  # the label in the first file, the label in the second
NAMED = 100  # ids that are told
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
    failures = 0
    first, second = file_of(first), file_of(second)
    rows, other_rows = _judged(first, excluded), _judged(second, excluded)
    pairs: dict[str, list[Pair]] = {name: [] for name in ASPECTS}
    common = [identity for identity in other_rows if identity in rows]
    differ = [identity for identity in common if rows[identity].text != other_rows[identity].text]
    _check_common(first, second, common, differ)
    for row, other in ((rows[identity], other_rows[identity]) for identity in common):
        if row.text != other.text:
            continue
        if not (row.judged and other.judged):
            excluded["not_judged"] += 1
            continue
        failures += row.failed or other.failed
        for name in ASPECTS:
            pairs[name] += _pairs(row.labels[name], other.labels[name], name, excluded)
    excluded["only_first"], excluded["only_second"] = (
        len(rows) - len(common),
        len(other_rows) - len(common),
    )
    excluded["other_response"] = len(differ)
    scores = {
        name: compare(aspect_pairs)
        for name, aspect_pairs in pairs.items()
        if aspect_pairs or name in ("claims", "outcomes")
    }
    compared = len(common) - len(differ) - excluded["not_judged"]
    return {
        "rows": compared,
        "failed": failures,
        **scores,
        "excluded": dict(excluded),
        "other_responses": differ[:NAMED],
    }


def _check_common(first: Path, second: Path, common: Sequence[str], differ: Sequence[str]) -> None:
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
    """What is kept of a row: what tells its response from another, its labels, and what became
    of it.
    """

    text: int
    labels: Mapping[str, Labels]
    judged: bool
    failed: bool


def _judged(path: Path, excluded: Counter[str]) -> dict[str, _Row]:
    """The rows of a file by their ids.

    Raises:
        WorkbenchError: it has no row that can be read, or not one of them is judged.
    """
    rows: dict[str, _Row] = {}
    unreadable = excluded["unreadable"]
    for identity, row in _compact(path, excluded):
        excluded["duplicates"] += identity in rows
        rows.setdefault(identity, row)
    if not rows:
        bad = excluded["unreadable"] - unreadable
        raise WorkbenchError(
            f"'{path}' has nothing to compare: "
            + (
                f"none of its {bad} rows is a feedback row in UTF-8, as `workbench score` writes it"
                if bad
                else "it is empty"
            )
        )
    if not any(row.judged for row in rows.values()):
        raise WorkbenchError(
            f"'{path}' has nothing to compare: none of its {len(rows)} rows is judged; `workbench"
            f" score --in {path} --out NEW.jsonl` judges them"
        )
    return rows


def _compact(path: Path, excluded: Counter[str]) -> Iterator[tuple[str, _Row]]:
    reader = Reader(path)
    for line in read(path):
        try:
            item = reader.item(line, split=False)
        except Malformed:
            excluded["unreadable"] += 1
            continue
        row = line.row or {}
        labels = {name: _labels(item.feedback, aspect) for name, aspect in ASPECTS.items()}
        text = hash(" ".join(item.response.text.split()))
        yield item.response.id, _Row(text, labels, judged(row), failed(row))


def _labels(feedback: Feedback, aspect: str) -> Labels:
    texts = {
        f"claim:{claim.id}": " ".join(claim.text.casefold().split()) for claim in feedback.claims
    }
    verdicts: dict[str, Verdict] = {}
    for verdict in feedback.verdicts:
        if verdict.aspect == aspect and (
            aspect != "checklist" or verdict.target.startswith("item:")
        ):
            verdicts.setdefault(verdict.target, verdict)
    labelled = {
        target: (texts.get(target, ""), verdict.label) for target, verdict in verdicts.items()
    }
    silent = {
        target: (text, None)
        for target, text in texts.items()
        if aspect == "fact" and target not in labelled
    }
    return labelled | silent


def _pairs(first: Labels, second: Labels, name: str, excluded: Counter[str]) -> list[Pair]:
    """The labels of what both have: by target where its text is the same, else by text, each
    once; `name` says what it is.
    """
    remaining, pairs = dict(second), []
    by_text: dict[str, list[str]] = {}
    for target, (text, _) in second.items():
        by_text.setdefault(text, []).append(target)
    unmatched = 0
    for target, (text, label) in sorted(
        first.items(), key=lambda entry: second.get(entry[0], ("", None))[0] != entry[1][0]
    ):
        same = target if remaining.get(target, ("\0", None))[0] == text else None
        partner = same or next(
            (candidate for candidate in by_text.get(text, ()) if candidate in remaining and text),
            None,
        )
        if partner is None:
            unmatched += 1
            continue
        other_label = remaining.pop(partner)[1]
        if label is None or other_label is None:
            excluded["verdicts"] += 1
        else:
            pairs.append((label, other_label))
    excluded[name] += unmatched + len(remaining)
    return pairs
