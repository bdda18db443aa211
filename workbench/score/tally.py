"""Running totals over feedback rows, new ones and those of an earlier run alike."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from workbench.failures import failed, failures, lacking, unjudged
from workbench.types import LACKING, UNPARSED, Cost

NAMED = 100  # failed rows that are listed with their reason


def unscored(row: Mapping[str, Any], methods: Sequence[str]) -> bool:
    """Whether a row has none of the rewards asked for: it failed, or lacks what they look at."""
    values = [row["rewards"].get(name, {}).get("value") for name in methods]
    return bool(methods) and all(value is None for value in values)


def unfinished(row: Mapping[str, Any], methods: Sequence[str]) -> bool:
    """Whether the next run tries a row again."""
    return failed(row) or unscored(row, methods)


@dataclass
class Tally:
    """Counts over rows as they are stored.

    `failed` rows have a failure recorded on them; `unscored` ones have none, and yet none of the
    rewards asked for. `lacking` counts rows by what their input lacks, `unparsed` the claims that
    their judge cannot read, `unjudged` these and all others that were compared with nothing, by
    reason.
    """

    methods: Sequence[str]
    rows: int = 0
    failed: int = 0
    unscored: int = 0
    claims: int = 0
    labels: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)
    judged: int = 0  # outcomes that no rule decided
    failures: Counter[str] = field(default_factory=Counter)
    reasons: dict[str, str] = field(default_factory=dict)  # each kind's first message
    failed_rows: list[dict[str, str]] = field(default_factory=list)  # with their first failure
    lacking: Counter[str] = field(default_factory=Counter)
    sums: Counter[str] = field(default_factory=Counter)  # of rewards, by method
    scored: Counter[str] = field(default_factory=Counter)  # rows with a reward, by method
    why: dict[str, Counter[str]] = field(default_factory=dict)  # by method: reason -> rows
    unparsed: int = 0
    unjudged: Counter[str] = field(default_factory=Counter)
    cost: Counter[str] = field(default_factory=lambda: Counter(asdict(Cost())))

    def add(self, row: Mapping[str, Any], judged: bool = True) -> None:
        """Count a row; its cost only if it was `judged` by this command."""
        self.rows += 1
        self.claims += len(row["claims"])
        self._add_failures(row)
        for verdict in row["verdicts"]:
            reasons = unjudged(verdict)
            self.unparsed += UNPARSED in reasons
            self.unjudged.update(reasons.values())
            label, aspect = verdict["label"], verdict["aspect"]
            if label is not None and aspect == "fact":
                self.labels[label] += 1
            elif label is not None and aspect == "answer":
                self.outcomes[label] += 1
                self.judged += verdict["by"] != "rule"
        for name in self.methods:
            reward = row["rewards"].get(name, {})
            if (value := reward.get("value")) is None:
                error = reward.get("error") or row["error"] or {}
                reason = error.get("message", "no reward is recorded")
                self.why.setdefault(name, Counter())[reason] += 1
            else:
                self.scored[name] += 1
                self.sums[name] += value
        if judged:
            self.cost.update(row["cost"])

    def _add_failures(self, row: Mapping[str, Any]) -> None:
        errors = failures(row)
        self.failed += bool(errors)
        self.unscored += not errors and unscored(row, self.methods)
        self.lacking.update(lacking(row))
        if errors and len(self.failed_rows) < NAMED:
            first = {name: errors[0][name] for name in ("stage", "kind", "message")}
            self.failed_rows.append({"id": row["id"], **first})
        # once each check, unlike `failures`
        checked = [row["error"], *(verdict["error"] for verdict in row["verdicts"])]
        checked = [error for error in checked if error and error["kind"] not in LACKING]
        for error in [*checked, *(error for error in errors if error not in checked)]:
            kind = f"{error['stage']}: {error['kind']}"
            self.failures[kind] += 1
            self.reasons.setdefault(kind, error["message"])

    def summary(self) -> dict[str, Any]:
        rewards = {
            name: {
                "mean": round(self.sums[name] / scored, 6) if scored else None,
                "scored": scored,
                "unscored": self.rows - scored,
                "reason": self.why[name].most_common(1)[0][0] if name in self.why else None,
            }
            for name in self.methods
            for scored in [self.scored[name]]
        }
        outcomes = self.outcomes.total()
        return {
            "rows": self.rows,
            "failed": self.failed,
            "unscored": self.unscored,
            "lacking": dict(self.lacking),
            "claims": self.claims,
            "unparsed": self.unparsed,
            "unjudged": dict(self.unjudged),
            "labels": dict(self.labels),
            "outcomes": dict(self.outcomes),
            "outcomes_judged": round(100 * self.judged / outcomes, 1) if outcomes else None,
            "failures": dict(self.failures),
            "reasons": dict(self.reasons),
            "failed_rows": list(self.failed_rows),
            "rewards": rewards,
        }
