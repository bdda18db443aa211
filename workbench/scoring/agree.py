"""Agreement of two feedback files on the same responses, such as an annotator's and a judge's."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from workbench.data.files import open_rows
from workbench.metrics.rows import file_of
from workbench.scoring.rows import Malformed, Reader
from workbench.types import Feedback, JsonObject, WorkbenchError
from workbench.util.failures import judged

Pair = tuple[str, str]  # the label in the first file, the label in the second
ASPECTS = {"claims": "fact", "outcomes": "answer", "items": "checklist", "reasoning": "reasoning"}
# what is not compared: rows, then labels in one file only (by kind) or of failed verdicts
LEFT_OUT = (
    *"only_first only_second unreadable other_response not_judged".split(),
    *ASPECTS,
    "verdicts",
)


def agreement(first: Path, second: Path) -> JsonObject:
    """Compare the labels in two feedback files, or folders of runs, and return their agreement.

    A row of `first` is compared with the row of `second` that has the same id, if both are judged
    and their responses are equal except for white space. In these two rows, claims with equal texts
    are compared. `first` is the reference for precision and recall.

    Returns:
        `rows`: number of compared rows.
        `claims`, `outcomes` (of final answers), `items` (of checklists), `reasoning`: the agreement
        on each kind of label, as `{n, accuracy, kappa, labels}` (see `compare`). `items` and
        `reasoning` are left out if there are no such labels.
        `excluded`: reason -> number of rows or labels that were not compared.

    Raises:
        WorkbenchError: a file cannot be read or has no judged row, or the files have no response in
            common.
    """
    excluded: Counter[str] = Counter(dict.fromkeys(LEFT_OUT, 0))
    first, second = file_of(first), file_of(second)
    rows, others = _rows(first, excluded), _rows(second, excluded)
    common = [identity for identity in others if identity in rows]
    same = [identity for identity in common if rows[identity].text == others[identity].text]
    if not same:
        reason = f"{len(common)} ids in common, but with different responses"
        raise WorkbenchError(
            f"'{first}' and '{second}' have {reason if common else 'no response id in common'}:"
            " give two files about the same responses"
        )
    excluded["only_first"] = len(rows) - len(common)
    excluded["only_second"] = len(others) - len(common)
    excluded["other_response"] = len(common) - len(same)
    pairs: dict[str, list[Pair]] = {name: [] for name in ASPECTS}
    compared = 0
    for row, other in ((rows[identity], others[identity]) for identity in same):
        if not (row.judged and other.judged):
            excluded["not_judged"] += 1
            continue
        compared += 1
        for name, label_pairs in pairs.items():
            labels, partners = row.labels[name], other.labels[name]
            excluded[name] += len(labels.keys() ^ partners.keys())
            for key in labels.keys() & partners.keys():
                label, partner = labels[key], partners[key]
                # a failed verdict is neither agreement nor disagreement
                if label is None or partner is None:
                    excluded["verdicts"] += 1
                else:
                    label_pairs.append((label, partner))
    scores = {
        name: compare(label_pairs)
        for name, label_pairs in pairs.items()
        if label_pairs or name in ("claims", "outcomes")
    }
    return {"rows": compared, **scores, "excluded": dict(excluded)}


def compare(pairs: Sequence[Pair]) -> JsonObject:
    """Compute the agreement of two files' labels: `{n, accuracy, kappa, labels}`.

    * `n`: number of pairs
    * `accuracy`: share of pairs with equal labels
    * `kappa`: Cohen's κ
    * `labels`: label -> `{first, second, precision, recall, f1}`. `first` and `second` are the
      label's counts in the two files. The first file is the reference for the other three.

    Undefined values are None, such as κ if all labels are equal.

    Args:
        pairs: for each compared item, (label in the first file, label in the second file).
    """
    n, pair_counts = len(pairs), Counter(pairs)
    second_counts, first_counts = Counter(b for _, b in pairs), Counter(a for a, _ in pairs)
    right = sum(count for (a, b), count in pair_counts.items() if a == b)
    # agreement of random labels with the same frequencies, which κ subtracts
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
    return {
        "n": n,
        "accuracy": _share(right, n),
        "kappa": None if kappa is None else round(kappa, 6),
        "labels": labels,
    }


def _share(part: int, whole: int) -> float | None:
    return round(part / whole, 6) if whole else None


# (claim text, its number among claims with this text) or (target, 0) -> label; None if the verdict
# failed or is missing
Labels = dict[tuple[str, int], str | None]


class _Row(NamedTuple):
    """The compared parts of a row. `text` is its response with single spaces between words."""

    text: str
    labels: Mapping[str, Labels]
    judged: bool


def _rows(path: Path, excluded: Counter[str]) -> dict[str, _Row]:
    """Return the rows of a file by id.

    Unreadable rows and rows with a repeated id are left out and counted in `excluded`.

    Raises:
        WorkbenchError: the file has no judged row.
    """
    rows: dict[str, _Row] = {}
    reader = Reader(path)
    for _, row in open_rows(path)[1]:
        try:
            item = reader.item(row, split=False)
        except Malformed:
            item = None
        if item is None or isinstance(row, str) or item.response.id in rows:
            excluded["unreadable"] += 1
            continue
        labels = {name: _labels(item.feedback, aspect) for name, aspect in ASPECTS.items()}
        rows[item.response.id] = _Row(" ".join(item.response.text.split()), labels, judged(row))
    if not any(row.judged for row in rows.values()):
        raise WorkbenchError(
            f"'{path}' has nothing to compare: it has no readable row with verdicts; run `workbench"
            f" score --in {path} --out NEW.jsonl`"
        )
    return rows


def _labels(feedback: Feedback, aspect: str) -> Labels:
    by_target: dict[str, str | None] = {}
    for verdict in feedback.verdicts:
        item = aspect != "checklist" or verdict.target.startswith("item:")
        if verdict.aspect == aspect and item:
            by_target.setdefault(verdict.target, verdict.label)
    if aspect != "fact":
        return {(target, 0): label for target, label in by_target.items()}
    labels: Labels = {}
    seen: Counter[str] = Counter()
    for claim in feedback.claims:
        text = " ".join(claim.text.casefold().split())
        labels[text, seen[text]] = by_target.get(f"claim:{claim.id}")
        seen[text] += 1
    return labels
