"""The figures of a verifier's `card.json` as Markdown, for `data/verifier/README.md`."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.tables import markdown
from workbench.verifier.evaluate import CLAIM_LABELS
from workbench.verifier.rows import LABELS
from workbench.verifier.verifier import OBJECTION_CAP

TEXT = Path(__file__).with_suffix(".md")


def measured_text(card: Mapping[str, Any]) -> str:
    """Return the figures of a card as Markdown."""
    dev, n_dev = card["dev"], card["rows"]["dev"]
    support, calibration = dev["support"], dev["calibration"]
    by_source = [
        (
            source,
            cell["n"],
            cell["accuracy"],
            cell["balanced_accuracy"],
            cell["support"]["balanced_accuracy"],
            cell["support"]["auroc"],
        )
        for source, cell in dev["by_source"].items()
    ]
    by_class = [
        (name, cell["n"], cell["recall"], cell["precision"])
        for name, cell in dev["by_class"].items()
    ]
    bins = [
        (f"{one['low']:.1f}–{one['high']:.1f}", one["n"], one["confidence"], one["accuracy"])
        for one in calibration["bins"]
    ]
    return TEXT.read_text(encoding="utf-8").format(
        settings=card["settings"],
        objected=OBJECTION_CAP,
        n_dev=n_dev,
        accuracy=dev["accuracy"],
        balanced=dev["balanced_accuracy"],
        support=support["balanced_accuracy"] or math.nan,
        auroc=support["auroc"] or math.nan,
        ece=calibration["ece"],
        ece_raw=card["uncalibrated_ece"],
        claims=card["one_thread"]["claims_per_second"],
        speed_rows=card["one_thread"]["rows"],
        by_source=_table(
            ("source", "n", "accuracy", "balanced", "support vs rest", "AUROC of p(support)"),
            by_source,
        ),
        by_class=_table(("class", "n", "recall", "precision"), by_class),
        confusion=_counts("gold \\ verdict", LABELS, dev["confusion"]),
        labels=_counts("gold \\ label", CLAIM_LABELS, dev["labels"]),
        bins=_table(("confidence", "n", "mean confidence", "share right"), bins),
    )


def _counts(title: str, names: Sequence[str], table: Mapping[str, Mapping[str, int]]) -> str:
    return _table((title, *names), [(gold, *counts.values()) for gold, counts in table.items()])


def _table(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    return markdown(list(head), [[_cell(value) for value in row] for row in rows])


def _cell(value: Any) -> str:
    return "–" if value is None else f"{value:.3f}" if isinstance(value, float) else str(value)
