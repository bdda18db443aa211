"""The output of a scoring: its settings, the rows that it has already, and totals over its rows."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from workbench.methods import METHODS
from workbench.methods.method import reward_settings
from workbench.runs.folder import differences, read_json
from workbench.scoring.rows import checksum
from workbench.types import LACKING, UNPARSED, Cost, WorkbenchError
from workbench.util.failures import failed, failures, lacking, unjudged
from workbench.util.jsonl import encode, iter_rows, repair, replace_rows, write_json

NAMED = 100  # failed rows that are listed with their reason
REMEDY = "name another --out, or replace it with --overwrite"


def settings_path(out: Path) -> Path:
    return out.with_name(f"{out.stem}.settings.json")


def claim(out: Path, settings: Mapping[str, Any], overwrite: bool = False) -> None:
    """Make `out` the output of a scoring with these settings.

    Raises:
        WorkbenchError: it is something else, and is not to be overwritten.
    """
    path, current = settings_path(out), json.loads(json.dumps(settings))
    stored = read_json(path)
    if overwrite:
        for file in (path, out):  # in this order: an output without settings is never resumed
            file.unlink(missing_ok=True)
    elif out.exists() and stored is None and out.stat().st_size:
        raise WorkbenchError(
            f"'{out}' was not written by `workbench score`, or not with settings that are known:"
            f" {REMEDY}"
        )
    elif out.exists() and stored is not None and (different := changes(stored, current)):
        raise WorkbenchError(
            f"'{out}' was begun with other settings ({'; '.join(different)}): {REMEDY}"
        )
    if overwrite or stored != current:
        write_json(path, current)


def changes(stored: Mapping[str, Any], wanted: Mapping[str, Any]) -> list[str]:
    """The differences of two scorings, as "rlfh.alpha is 1.0, not 2.0".

    A field that is newer than the stored settings had its default then. Fields that only the
    stored settings have do not change a reward; a method that only one of the two has differs in
    its name.
    """
    old, new = stored.get("config", {}), wanted.get("config", {})
    former, current = {**stored, "config": sorted(old)}, {**wanted, "config": sorted(new)}
    for name in old.keys() & new:
        usual = reward_settings(METHODS[name].config()) if name in METHODS else {}
        former[name] = {field: {**usual, **old[name]}.get(field) for field in new[name]}
        current[name] = new[name]
    if stored.get("method") != wanted.get("method"):
        former["config"] = current["config"]
    return differences(former, current)


@dataclass
class Tally:
    """Counts over rows as they are stored, new ones and those of an earlier run alike.

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
    why: dict[str, Counter[str]] = field(default_factory=dict)  # by method: reason -> rows
    unparsed: int = 0
    unjudged: Counter[str] = field(default_factory=Counter)
    cost: Counter[str] = field(default_factory=lambda: Counter(asdict(Cost())))

    def is_unscored(self, row: Mapping[str, Any]) -> bool:
        """Whether a row has none of the rewards asked for."""
        values = [row["rewards"].get(name, {}).get("value") for name in self.methods]
        return bool(values) and all(value is None for value in values)

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
                self.sums[name] += value
        if judged:
            self.cost.update(row["cost"])

    def _add_failures(self, row: Mapping[str, Any]) -> None:
        errors = failures(row)
        self.failed += bool(errors)
        self.unscored += not errors and self.is_unscored(row)
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
        rewards = {}
        for name in self.methods:
            why = self.why.get(name, Counter())
            scored = self.rows - why.total()
            rewards[name] = {
                "mean": round(self.sums[name] / scored, 6) if scored else None,
                "scored": scored,
                "unscored": why.total(),
                "reason": why.most_common(1)[0][0] if why else None,
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


def resume(out: Path, wanted: dict[str, int], tally: Tally) -> int:
    """Take the rows that are done out of `wanted`, and count them; returns how many there are.

    Failed and unscored rows are taken out of the file, to be tried again; a line that a killed
    process left unfinished is cut off.

    Raises:
        WorkbenchError: a row of the file is about another response than the input's row of the
        same id.
    """
    if not out.exists():
        return 0
    repair(out)
    again = set()
    for row in iter_rows(out):
        if wanted.get(row["id"], checksum(row["response"])) != checksum(row["response"]):
            raise WorkbenchError(
                f"'{out}' has scored another response for the id '{row['id']}' than the input has"
                f" now: {REMEDY}"
            )
        if row["id"] in wanted and (failed(row) or tally.is_unscored(row)):
            again.add(row["id"])
    if again:
        replace_rows(out, (encode(row) for row in iter_rows(out) if row["id"] not in again))
    done = 0
    for row in iter_rows(out):
        done += wanted.pop(row["id"], None) is not None
        tally.add(row, judged=False)
    return done
