"""The list of runs, newest first, and the curves of selected runs, as data for the page."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from workbench.inspector.listing import own_method
from workbench.inspector.runs import Runs, damage
from workbench.inspector.token_view import as_json
from workbench.runs.rows import finite
from workbench.runs.steps import by_step
from workbench.runs.store import ROLLOUTS
from workbench.scoring.output import settings_path
from workbench.types import WorkbenchError

NO_RUN = "There is no run in the runs folder yet."
NO_ROLLOUTS = "This run has no rollouts yet: choose another, or come back after its first step."
MOST = 12  # runs that are drawn at once

# What is drawn over the steps: column of metrics.jsonl or of the record, title, whether it is a
# share.
SERIES = (
    ("reward", "Reward", False), ("reward_std", "Spread of the reward in a group", False),
    ("accuracy", "Accuracy", True), ("abstention", "Abstention", True),
    ("hallucination", "Hallucination", True), ("kl", "KL to the reference", False),
    ("entropy", "Entropy", False), ("length", "Length, tokens", False),
    ("truncated", "Cut off", True), ("unplaced", "Claims not placed", True),
    ("failed", "Rows not scored", True),
)  # fmt: skip
# what the reward is made of, by the beginning of its column
PARTS = {"part": "Reward,", "logged": "Logged,"}
PREFIXES = ("part:", "logged:")


def stamp(runs: Runs, names: Sequence[str]) -> str:
    """A digest that changes with the runs, their files and status, and with those drawn."""
    looks: list[Any] = [list(names)]
    for name in runs.names():
        try:
            looks.append((name, runs.stamp(name)))
        except WorkbenchError:  # the list shows it
            looks.append(name)
    return hashlib.sha256(json.dumps(looks).encode()).hexdigest()[:16]


def run_list(runs: Runs) -> list[dict[str, Any]]:
    """A summary of every run, the last written first; of a damaged run, the error."""
    told = []
    for name in runs.names():
        try:
            with damage(f"run '{name}'"):
                told.append(_told(runs, name))
        except WorkbenchError as error:
            told.append({"name": name, "broken": str(error), "written": 0.0})
    return sorted(told, key=lambda run: (-run["written"], run["name"]))


def _told(runs: Runs, name: str) -> dict[str, Any]:
    config, rollouts = runs.described(name, "config.json"), runs.folder(name) / ROLLOUTS
    written = rollouts.stat().st_mtime
    rewards = {
        row["step"]: row["reward"] for row in _steps(runs, name) if row.get("reward") is not None
    }
    best = max(rewards, key=lambda step: (rewards[step], -step), default=None)
    return {
        "name": name,
        "written": written,
        "date": datetime.fromtimestamp(written, UTC).isoformat(),
        "method": str(config.get("method") or _scored_by(runs, name)),
        "seed": config.get("seed") if type(config.get("seed")) is int else None,
        "status": _status(runs, name, config),
        "steps": max(rewards, default=None),
        "last": rewards[max(rewards)] if rewards else None,
        "best": None if best is None else [best, rewards[best]],
        "family": _family(config, name),
    }


def _scored_by(runs: Runs, name: str) -> str:
    return own_method(runs, name) if runs.at_hand(name) else ""


def _status(runs: Runs, name: str, config: Mapping[str, Any]) -> str:
    if status := runs.described(name, "summary.json").get("status"):
        return str(status)
    folder = runs.folder(name)
    if not config:
        return "scored" if (folder / settings_path(Path(ROLLOUTS)).name).is_file() else "recorded"
    return "running" if runs.in_use(name) else "unfinished"


def _family(config: Mapping[str, Any], name: str) -> str:
    """A key that runs share which differ in their seed alone."""
    rest = {
        key: value for key, value in config.items() if key not in ("seed", "versions", "threads")
    }
    return hashlib.sha256(
        json.dumps(rest if config else name, sort_keys=True).encode()
    ).hexdigest()[:12]


def _steps(runs: Runs, name: str) -> list[dict[str, Any]]:
    """The steps of a run for the list: from its metrics, else from rows that are at hand."""
    metrics = runs.metrics(name)
    if metrics or not runs.at_hand(name):
        return [
            dict(row)
            for row in metrics
            if type(row.get("step")) is int and finite(row.get("reward")) is not None
        ]
    return by_step([], runs.rows(name), own_method(runs, name))


def curve_data(runs: Runs, names: Sequence[str]) -> str:
    """The curves of some runs, as text for the page; those that cannot be drawn say why."""
    if not names:
        return as_json({"note": NO_RUN})
    curves, errors = [], []
    for name in names[:MOST]:
        try:
            with damage(f"run '{name}'"):
                curves.append(_curves(runs, name))
        except WorkbenchError as error:
            errors.append(str(error))
    if len(names) > MOST:
        errors.append(f"Only {MOST} of the {len(names)} ticked runs are drawn together.")
    told = {"error": " ".join(errors)} if errors else {}
    series = [
        {"name": column, "title": title, "share": share} for column, title, share in _series(curves)
    ]
    reading = ""
    if unread := [run["name"] for run in curves if run["missing"]]:
        reading = (
            f"Still being read, and drawn as far as their rows are known: {', '.join(unread)}."
        )
    return as_json(
        {
            "runs": curves,
            "series": series,
            "note": _note(curves),
            "reading": reading,
            **told,
        }
    )


def _note(curves: Sequence[Mapping[str, Any]]) -> str:
    rows = curves[0]["rows"] if curves else 0
    told = "its one row is" if rows == 1 else f"its {rows:,} rows are"
    return f"This run has no training steps: {told} listed below." if rows else NO_ROLLOUTS


def _series(curves: Sequence[Mapping[str, Any]]) -> list[tuple[str, str, bool]]:
    """(column, title, is a share) of all curves: `SERIES`, and the parts of the reward after it.
    Every run gets all of these columns.
    """
    parts = list(
        dict.fromkeys(
            column for run in curves for column in run["series"] if column.startswith(PREFIXES)
        )
    )
    for run in curves:
        for part in parts:
            run["series"].setdefault(part, [None] * len(run["steps"]))
    made_of = [
        (f"{kind}:{name}", f"{PARTS[kind]} {name.replace('_', ' ')}", False)
        for kind, _, name in (part.partition(":") for part in parts)
    ]
    return [*SERIES[:2], *made_of, *SERIES[2:]]


def _curves(runs: Runs, name: str) -> dict[str, Any]:
    rows = runs.rows(name)
    steps = by_step(runs.metrics(name), rows, own_method(runs, name))
    parts = [column for row in steps for column in row if column.startswith(PREFIXES)]
    names = dict.fromkeys([*(column for column, _, _ in SERIES), *parts])
    series = {column: [row.get(column) for row in steps] for column in names}
    sums = rows.table.groupby("step")[["claims", "unplaced"]].sum()
    counts = rows.table["step"].value_counts()
    for place, step in enumerate(row["step"] for row in steps):
        claims, unplaced = sums.loc[step].tolist() if step in sums.index else (0, 0)
        count, failed = counts.get(step, 0), series["failed"][place]
        series["unplaced"][place] = unplaced / claims if claims else None
        series["failed"][place] = failed / count if count and failed is not None else None
    return {
        "name": name,
        "steps": [row["step"] for row in steps],
        "series": series,
        "rows": rows.total,
        "missing": rows.missing,
        "family": _family(runs.described(name, "config.json"), name),
    }
