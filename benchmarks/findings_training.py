"""What the trainings of a study recorded: metrics of rollouts by step, and what a run took."""

import json
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

from benchmarks.real.exact import EXACT, exact_steps
from workbench.experiments.run import Run
from workbench.methods.held_out import HELD_OUT
from workbench.methods.truthrl.probing import FILE as PROBE
from workbench.metrics.hacks import SHARES, hacks
from workbench.runs.checkpoints import metrics_rows
from workbench.runs.store import ROLLOUTS
from workbench.util.jsonl import iter_rows

CURVES = (
    "reward",
    "accuracy",
    "abstention",
    "hallucination",
    "claims_correct",
    "claims_wrong",
    "length",
    "kl",
    "entropy",
)


def curves(runs: Sequence[Run]) -> dict[str, dict[str, list[float | None]]]:
    """Return metrics of each arm's rollouts by step.

    The values of `CURVES`, `SHARES` and, on the bench `small`, `EXACT` are means over seeds, or
    None. The arm's own judge labelled claims and rewards.
    """
    return {
        arm: _curve(
            [run.folder for run in runs if run.entry.name == arm], runs[0].entry.bench == "small"
        )
        for arm in dict.fromkeys(run.entry.name for run in runs)
    }


def _curve(folders: Sequence[Path], real: bool = False) -> dict[str, list[float | None]]:
    # training on stored rows has no rollouts
    paid = [folder for folder in folders if (folder / ROLLOUTS).exists()]
    tables = [(metrics_rows(folder), CURVES) for folder in folders] + [
        (hacks(folder), tuple(SHARES)) for folder in paid
    ]
    tables += [(exact_steps(folder), EXACT) for folder in paid if real]
    found: dict[str, dict[int, list[float]]] = {name: {} for name in (*CURVES, *SHARES, *EXACT)}
    for rows, names in tables:
        for row, name in product(rows, names):
            found[name].setdefault(row["step"], []).extend(
                [row[name]] if row.get(name) is not None else []
            )
    steps = sorted({step for values in found.values() for step in values})
    series = {
        name: [_mean(values.get(step, [])) for step in steps]
        for name, values in found.items()
        if any(values.values())
    }
    return {"step": [*steps], **series}


def _mean(values: Sequence[float]) -> float | None:
    return round(sum(values) / len(values), 4) if values else None


def took(run: Run) -> dict[str, Any]:
    """Return seconds, sampled responses, settings and reward models' held-out quality of a run."""
    models = {
        file.parent.name: json.loads(file.read_text())
        for file in sorted((run.folder / "stages").glob(f"*/{HELD_OUT}"))
    }
    kept = {"held_out": models} if models else {}
    cost = {"seconds": (run.summary or {}).get("seconds"), **sampled(run.folder)}
    return {**cost, "set": list(run.entry.settings), **kept}


def sampled(folder: Path) -> dict[str, int]:
    """Return the number of responses that a run's training needed, and of their tokens.

    Stages count, also those that were copied from another run. A probe's responses count, but not
    their tokens, which are not stored.
    """
    places = [folder, *(folder / "stages").glob("*")]
    files = [place / at for place in places for at in (ROLLOUTS, f"samples/{ROLLOUTS}")]
    lengths = [
        len(row["tokens"]["ids"]) for file in files if file.exists() for row in iter_rows(file)
    ]
    probes = [place / PROBE for place in places if (place / PROBE).exists()]
    probed = sum(row["samples"] for file in probes for row in iter_rows(file))
    return {"responses": len(lengths) + probed, "tokens": sum(lengths)}
