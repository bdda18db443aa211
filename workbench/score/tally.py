"""Running totals over feedback rows, new ones and those of an earlier run alike."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from workbench.failures import failed, failures, lacking, unjudged
from workbench.types import LACKING, UNPARSED, Cost

NAMED = 100  # failed rows that are kept with their reason


def unpaid(row: Mapping[str, Any], methods: Sequence[str]) -> bool:
    """Whether none of the rewards asked for was scored: the row failed, or it lacks what they
    look at.
    """
    return bool(methods) and all(
        row["rewards"].get(name, {}).get("value") is None for name in methods
    )


def unfinished(row: Mapping[str, Any], methods: Sequence[str]) -> bool:
    """Whether a row is to be tried again by the next run: it failed, or earned nothing of what
    was asked for.
    """
    return failed(row) or unpaid(row, methods)


@dataclass
class Tally:
    """Counts over rows as they are stored.

    `failed` rows have a failure recorded on them; `unscored` ones have none, and yet earned none
    of the rewards asked for. `lacking` counts rows by what the input gives nothing for,
    `unparsed` the claims that their judge cannot read, `unjudged` these and all others that
    nobody compared with anything, by their reason, and `bad_format` by method the rows that are
    paid for a broken form. `reason` is what most of a method's unscored rows lack.
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
    # the first message of each kind of failure
    reasons: dict[str, str] = field(default_factory=dict)
    # the first of them, each with its first failure
    failed_rows: list[dict[str, str]] = field(default_factory=list)
    lacking: Counter[str] = field(default_factory=Counter)
    sums: Counter[str] = field(default_factory=Counter)
    paid: Counter[str] = field(default_factory=Counter)
    bad_format: Counter[str] = field(default_factory=Counter)
    # by method: why it scored nothing -> rows
    why_unpaid: dict[str, Counter[str]] = field(default_factory=dict)
    unparsed: int = 0
    unjudged: Counter[str] = field(default_factory=Counter)
    cost: Counter[str] = field(default_factory=lambda: Counter(asdict(Cost())))

    def add(self, row: Mapping[str, Any], paid_for: bool = True) -> None:
        """Count a row; `paid_for` if its judge calls were made by this command."""
        self.rows += 1
        self.claims += len(row["claims"])
        self._failures(row)
        for verdict in row["verdicts"]:
            reasons = unjudged(verdict)
            self.unparsed += UNPARSED in reasons
            self.unjudged.update(reasons.values())
            if verdict["label"] is not None and verdict["aspect"] in ("fact", "answer"):
                (self.labels if verdict["aspect"] == "fact" else self.outcomes)[
                    verdict["label"]
                ] += 1
                self.judged += verdict["aspect"] == "answer" and verdict["by"] != "rule"
        for name in self.methods:
            reward = row["rewards"].get(name, {})
            if (value := reward.get("value")) is not None:
                self.paid[name] += 1
                self.sums[name] += value
                self.bad_format[name] += (reward.get("parts") or {}).get("format", 0) < 0
            else:
                why = (reward.get("error") or row["error"] or {}).get(
                    "message", "no reward is recorded"
                )
                self.why_unpaid.setdefault(name, Counter())[why] += 1
        if paid_for:
            self.cost.update(row["cost"])

    def _failures(self, row: Mapping[str, Any]) -> None:
        errors = failures(row)
        self.failed += bool(errors)
        self.unscored += not errors and unpaid(row, self.methods)
        self.lacking.update(lacking(row))
        if errors and len(self.failed_rows) < NAMED:
            self.failed_rows.append(
                {
                    "id": row["id"],
                    **{name: errors[0][name] for name in ("stage", "kind", "message")},
                }
            )
        for kind, message in _by_check(row):
            self.failures[kind] += 1
            self.reasons.setdefault(kind, message)

    def summary(self) -> dict[str, Any]:
        rewards = {
            name: {
                "mean": round(self.sums[name] / self.paid[name], 6) if self.paid[name] else None,
                "scored": self.paid[name],
                "unscored": self.rows - self.paid[name],
                "reason": self.why_unpaid[name].most_common(1)[0][0]
                if name in self.why_unpaid
                else None,
                "bad_format": self.bad_format[name],
            }
            for name in self.methods
        }
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
            "outcomes_judged": _per_hundred(self.judged, self.outcomes.total()),
            "failures": dict(self.failures),
            "reasons": dict(self.reasons),
            "failed_rows": list(self.failed_rows),
            "rewards": rewards,
        }


def _per_hundred(count: int, total: int) -> float | None:
    return round(100 * count / total, 1) if total else None


def _by_check(row: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Stage and kind of everything that failed in a row, once each check, with its message."""
    checked = [row["error"], *(verdict["error"] for verdict in row["verdicts"])]
    errors = [error for error in checked if error is not None and error["kind"] not in LACKING]
    errors += [error for error in failures(row) if error not in errors]  # a reward's own
    return [(f"{error['stage']}: {error['kind']}", error["message"]) for error in errors]
