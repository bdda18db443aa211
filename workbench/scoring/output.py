"""Check and continue the output file of `workbench score`, and compute totals over its rows."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from workbench.methods import METHODS
from workbench.methods.method import reward_settings
from workbench.runs.folder import differences, read_json, settings_path
from workbench.scoring.rows import checksum
from workbench.types import LACKING, UNPARSED, Cost, JsonMapping, JsonObject, WorkbenchError
from workbench.util.failures import failed, failures, lacking, unjudged
from workbench.util.jsonl import encode, iter_rows, repair, replace_rows, write_json

MAX_FAILED_ROWS = 100  # failed rows that are listed with their reason
REMEDY = "name another --out, or replace the file with --overwrite"


def claim(out: Path, settings: JsonMapping, overwrite: bool = False) -> None:
    """Check that `out` may be written with these settings, and store them in a file next to it.

    `out` must be new, or written earlier with the same settings. With `overwrite`, `out` and its
    stored settings are deleted first.

    Raises:
        WorkbenchError: `out` exists with other settings or without any, and `overwrite` is False.
    """
    path, current = settings_path(out), json.loads(json.dumps(settings))
    stored = read_json(path)
    if overwrite:
        for file in (path, out):  # settings first: an output without them is never continued
            file.unlink(missing_ok=True)
    elif out.exists() and stored is None and out.stat().st_size:
        raise WorkbenchError(
            f"'{out}' exists, but its settings '{path.name}' are missing or damaged: {REMEDY}"
        )
    elif out.exists() and stored is not None and (different := changes(stored, current)):
        raise WorkbenchError(
            f"'{out}' was written with other settings ({'; '.join(different)}): {REMEDY}"
        )
    # equal settings may still differ as text: a newer version may store further fields
    if overwrite or stored != current:
        write_json(path, current)


def changes(stored: JsonMapping, wanted: JsonMapping) -> list[str]:
    """Return the differences between two settings as texts ("rlfh.alpha is 1.0, not 2.0").

    In this example, `stored` has 1.0 and `wanted` has 2.0. A method's setting that is only in
    `wanted` is compared with the setting's default. One that is only in `stored` is ignored.
    """
    old, new = stored.get("config", {}), wanted.get("config", {})
    former, current = {**stored, "config": sorted(old)}, {**wanted, "config": sorted(new)}
    for name in old.keys() & new:
        defaults = reward_settings(METHODS[name].config()) if name in METHODS else {}
        former[name] = {field: {**defaults, **old[name]}.get(field) for field in new[name]}
        current[name] = new[name]
    # other methods are reported once, as "method is …"
    if stored.get("method") != wanted.get("method"):
        former["config"] = current["config"]
    return differences(former, current)


@dataclass
class Tally:
    """Totals over the rows of an output file, from this run and from earlier runs."""

    methods: Sequence[str]
    rows: int = 0
    failed: int = 0  # rows with a recorded failure
    unscored: int = 0  # rows without a failure and without any of the rewards
    claims: int = 0
    labels: Counter[str] = field(default_factory=Counter)  # of claims
    outcomes: Counter[str] = field(default_factory=Counter)
    judged: int = 0  # outcomes that the judge decided, not a rule
    failures: Counter[str] = field(default_factory=Counter)  # by "stage: kind"
    reasons: dict[str, str] = field(default_factory=dict)  # "stage: kind" -> its first message
    failed_rows: list[dict[str, str]] = field(default_factory=list)  # with their first failure
    lacking: Counter[str] = field(default_factory=Counter)  # rows, by what their input lacks
    sums: Counter[str] = field(default_factory=Counter)  # of rewards, by method
    why: dict[str, Counter[str]] = field(default_factory=dict)  # method -> reason -> unscored rows
    untagged: Counter[str] = field(default_factory=Counter)  # rows without required tags, by method
    unparsed: int = 0  # claims that the judge cannot read
    unjudged: Counter[str] = field(default_factory=Counter)  # claims without evidence, by reason
    cost: Counter[str] = field(default_factory=lambda: Counter(asdict(Cost())))  # of this run

    def is_unscored(self, row: JsonMapping) -> bool:
        """Return whether every method in `self.methods` left the row without a reward.

        False if `self.methods` is empty.
        """
        values = [row["rewards"].get(name, {}).get("value") for name in self.methods]
        return bool(values) and all(value is None for value in values)

    def add(self, row: JsonMapping, judged: bool = True) -> None:
        """Add a row to the totals.

        Args:
            row: a stored feedback row.
            judged: whether this run judged the row. If False, the calls, tokens and seconds in
                the row's `cost` are not added.
        """
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
                self.untagged[name] += reward["parts"].get("format", 0) < 0
        if judged:
            self.cost.update(row["cost"])

    def _add_failures(self, row: JsonMapping) -> None:
        errors = failures(row)
        self.failed += bool(errors)
        self.unscored += not errors and self.is_unscored(row)
        self.lacking.update(lacking(row))
        if errors and len(self.failed_rows) < MAX_FAILED_ROWS:
            first = {name: errors[0][name] for name in ("stage", "kind", "message")}
            self.failed_rows.append({"id": row["id"], **first})
        # count each failed check: `failures` lists equal failures once
        checked = [row["error"], *(verdict["error"] for verdict in row["verdicts"])]
        checked = [error for error in checked if error and error["kind"] not in LACKING]
        for error in [*checked, *(error for error in errors if error not in checked)]:
            kind = f"{error['stage']}: {error['kind']}"
            self.failures[kind] += 1
            self.reasons.setdefault(kind, f"row '{row['id']}': {error['message']}")

    def summary(self) -> JsonObject:
        """Return the totals as entries of the summary that `workbench score --json` prints."""
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
            "untagged": {name: count for name, count in self.untagged.items() if count},
            "reasons": self.reasons,
            "failed_rows": self.failed_rows,
            "rewards": rewards,
        }


def resume(out: Path, remaining: dict[str, int], tally: Tally) -> int:
    """Read the rows of an earlier output, so that only the missing rows are scored.

    The rows are added to `tally`. Failed and unscored rows are removed from the file, so that they
    are scored again. An unfinished last line is removed too.

    Args:
        out: the output file of an earlier call; it may be missing.
        remaining: id of each input row -> checksum of its response. The call removes the rows that
            need not be scored again.
        tally: the totals.

    Returns:
        The number of ids that were removed from `remaining`.

    Raises:
        WorkbenchError: a row of the file has the id of an input row, but another response.
    """
    if not out.exists():
        return 0
    repair(out)
    retried = set()
    for row in iter_rows(out):
        if remaining.get(row["id"], checksum(row["response"])) != checksum(row["response"]):
            raise WorkbenchError(
                f"'{out}' has another response for the id '{row['id']}' than the input: {REMEDY}"
            )
        if row["id"] in remaining and (failed(row) or tally.is_unscored(row)):
            retried.add(row["id"])
    if retried:
        replace_rows(out, (encode(row) for row in iter_rows(out) if row["id"] not in retried))
    done = 0
    for row in iter_rows(out):
        done += remaining.pop(row["id"], None) is not None
        tally.add(row, judged=False)
    return done
