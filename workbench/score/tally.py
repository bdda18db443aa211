"""Running totals over feedback rows, new ones and those of an earlier run alike."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from workbench.types import Cost

# Failures of a check that the input gives nothing to check with: they make a row a failed one only if nothing else was scored.
LACKING = frozenset({"no_gold", "no_checklist"})


def failed(row: Mapping[str, Any], methods: Sequence[str]) -> bool:
    """Whether something went wrong with a stored row: its extraction, one of its checks, or all the rewards asked for."""
    errors = (verdict["error"] for verdict in row["verdicts"])
    if row["error"] is not None or any(error is not None and error["kind"] not in LACKING for error in errors):
        return True
    return bool(methods) and all(row["rewards"].get(name, {}).get("value") is None for name in methods)


@dataclass
class Tally:
    """Counts over rows as they are stored."""

    methods: Sequence[str]
    rows: int = 0
    failed: int = 0
    claims: int = 0
    labels: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)
    reasons: dict[str, str] = field(default_factory=dict)  # the first message of each kind of failure
    sums: Counter[str] = field(default_factory=Counter)
    paid: Counter[str] = field(default_factory=Counter)
    cost: Counter[str] = field(default_factory=lambda: Counter(asdict(Cost())))

    def add(self, row: Mapping[str, Any], paid_for: bool = True) -> None:
        """Count a row; `paid_for` if its judge calls were made by this command."""
        self.rows += 1
        self.failed += failed(row, self.methods)
        self.claims += len(row["claims"])
        for kind, message in _failures(row):
            self.failures[kind] += 1
            self.reasons.setdefault(kind, message)
        for verdict in row["verdicts"]:
            if verdict["label"] is not None and verdict["aspect"] in ("fact", "answer"):
                (self.labels if verdict["aspect"] == "fact" else self.outcomes)[verdict["label"]] += 1
        for name in self.methods:
            if (value := row["rewards"].get(name, {}).get("value")) is not None:
                self.paid[name] += 1
                self.sums[name] += value
        if paid_for:
            self.cost.update(row["cost"])

    def summary(self) -> dict[str, Any]:
        rewards = {
            name: {
                "mean": round(self.sums[name] / self.paid[name], 6) if self.paid[name] else None,
                "scored": self.paid[name],
                "unscored": self.rows - self.paid[name],
            }
            for name in self.methods
        }
        return {
            "rows": self.rows,
            "failed": self.failed,
            "claims": self.claims,
            "labels": dict(self.labels),
            "outcomes": dict(self.outcomes),
            "failures": dict(self.failures),
            "reasons": dict(self.reasons),
            "rewards": rewards,
        }


def _failures(row: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Stage and kind of everything that failed in a row, once each check, with its message."""
    errors = [row["error"], *(verdict["error"] for verdict in row["verdicts"])]
    return [(f"{error['stage']}: {error['kind']}", error["message"]) for error in errors if error is not None]
