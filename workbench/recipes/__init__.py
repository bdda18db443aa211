"""One module per paper, and `train_recipe`, which runs one of them in a folder from start to summary."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.recipes.grading import (
    CONFIGS,
    METHODS,
    assemble,
    checks_needed,
    configure_method,
    default_config,
    method,
    method_configs,
    reward_fns,
    reward_settings,
)
from workbench.types import Cost, WorkbenchError

if TYPE_CHECKING:
    from workbench.bench import Bench

__all__ = [
    "CONFIGS",
    "METHODS",
    "assemble",
    "checks_needed",
    "configure",
    "configure_method",
    "default_config",
    "method",
    "method_configs",
    "reward_fns",
    "reward_settings",
    "train_recipe",
]

TRAINABLE = ("truthrl",)
PACKAGES = ("torch", "transformers", "trl", "peft", "unsloth")


def train_recipe(
    recipe: str,
    bench: str,
    seed: int,
    out: Path,
    steps: int | None = None,
    threads: int | None = None,
    overrides: Sequence[str] = (),
    questions: str | Path | None = None,
) -> dict[str, Any]:
    """Evaluate, train, evaluate again; everything is kept in `out` and the summary is returned.

    The same call on an unfinished `out` continues it and ends as it would have ended; on a finished one it returns the
    stored summary. `status` is "done", "interrupted" or "too_many_failures".

    Args:
        steps: training steps instead of the bench's number.
        threads: CPU threads; by default those the folder was begun with, or 2. Part of what makes runs equal.
        overrides: settings "recipe.field=value".
        questions: the data set or question file of a bench that has no questions of its own.

    Raises:
        WorkbenchError: before any work, for whatever in the arguments or the folder cannot work.
    """
    import workbench.bench as benches
    from workbench.data import check_trainable
    from workbench.runs.folder import lock, open_run, policy_hash, read_json
    from workbench.threads import DEFAULT_THREADS

    if recipe in METHODS and recipe not in TRAINABLE:
        raise WorkbenchError(f"recipe '{recipe}' pays rewards but cannot be trained yet: choose one of {', '.join(TRAINABLE)}")
    chosen = benches.bench(bench, questions=questions)
    config = configure(recipe, chosen, steps, overrides)
    module = method(recipe)
    check_trainable(module.questions(config, chosen))  # a bench without questions is refused now as well
    check_settings(config, chosen, seed)
    start = chosen.path(chosen.policy)
    benches.check_policy(chosen.policy, start)
    stored = read_json(out / "config.json") or {}
    identity: dict[str, Any] = {
        "method": recipe,
        "config": asdict(config),
        "seed": seed,
        "bench": bench,
        "policy": chosen.policy,
        "threads": threads or stored.get("threads") or DEFAULT_THREADS,
        "world_hash": chosen.hash,
        "policy_hash": policy_hash(start),
    }
    with lock(out):
        finished = open_run(out, identity, versions())
        if finished is not None:
            print(f"'{out}' is finished: this is its stored summary", file=sys.stderr)
            return finished
        return _run(module, config, chosen, out, identity, questions)


def check_settings(config: Any, bench: Bench, seed: int) -> None:
    """Raise a WorkbenchError naming the field for what would only fail once the run is under way."""
    from workbench.train.grpo import check

    check(config)
    if config.eval_samples < 0:
        raise WorkbenchError(f"eval_samples is {config.eval_samples}: it must be at least 0")
    if not 0 <= seed < 2**32:
        raise WorkbenchError(f"the seed is {seed}: it must lie between 0 and {2**32 - 1}")
    if not any(question.answers for question in bench.questions(config.eval_split)):
        raise WorkbenchError(f"bench '{bench.name}' has no questions with answers in split '{config.eval_split}': name another")


def configure(recipe: str, bench: Bench, steps: int | None = None, overrides: Sequence[str] = ()) -> Any:
    """The recipe's config at the bench's scale, with `steps` and then `overrides` ("recipe.field=value") applied.

    Raises:
        WorkbenchError: no such recipe or field, or a value of the wrong type.
    """
    from workbench.config import override

    if recipe not in METHODS:
        choices = dict.fromkeys((*TRAINABLE, *METHODS))
        raise WorkbenchError(f"no recipe '{recipe}': choose one of {', '.join(choices)}")
    scale = {**bench.overrides.get(recipe, {}), **({} if steps is None else {"steps": steps})}
    return override(replace(default_config(recipe), **scale), recipe, overrides)


def _run(
    module: Any, config: Any, bench: Bench, out: Path, identity: Mapping[str, Any], questions: str | Path | None
) -> dict[str, Any]:
    from workbench.jsonl import write_json
    from workbench.runs.folder import read_json
    from workbench.threads import use_threads
    from workbench.train.grpo import TooManyFailures
    from workbench.train.models import import_unsloth_first

    began, earlier = time.perf_counter(), earlier_seconds(out)
    before, after, status = read_json(out / "before.json"), None, "interrupted"
    try:
        with use_threads(identity["threads"]):
            import_unsloth_first()
            if before is None:
                before = _evaluate(bench.policy, config, bench, identity, questions)
                write_json(out / "before.json", before)
            status = module.train(config, bench, out=out, seed=identity["seed"])
            if status == "done":
                status = "interrupted"  # until the evaluation is done as well
                after = _evaluate(str(out), config, bench, identity, questions)
                after, status = {**after, "policy": f"{bench.policy}+{identity['method']}"}, "done"
    except KeyboardInterrupt:
        status = "interrupted"
    except TooManyFailures as error:
        print(f"stopped: {error}", file=sys.stderr)
        status = "too_many_failures"
    summary = {
        **{key: identity[key] for key in ("method", "config", "seed", "threads")},
        "bench": bench.name,
        "policy": bench.policy,
        "versions": versions(),
        "world_hash": bench.hash,
        "policy_hash": identity["policy_hash"],
        "before": before,
        "after": after,
        "seconds": round(earlier + time.perf_counter() - began, 1),
        **totals(out / "rollouts.jsonl", identity["method"]),
        "status": status,
    }
    write_json(out / "summary.json", summary)
    return summary


def _evaluate(
    policy: str, config: Any, bench: Bench, identity: Mapping[str, Any], questions: str | Path | None
) -> dict[str, Any]:
    """`evaluate_policy` with the run's settings; in a process of its own where Unsloth has patched the models."""
    from workbench.evaluate import evaluate_policy

    threads = identity["threads"]
    arguments = (policy, config.eval_split, bench.name, config.eval_samples, identity["seed"], None, None, threads)
    if "unsloth" not in sys.modules:
        return evaluate_policy(*arguments, questions)
    code = (
        "import json, pathlib, sys; from workbench.evaluate import evaluate_policy; "
        "*rest, file = json.load(sys.stdin); "
        "print(json.dumps(evaluate_policy(*rest, file and pathlib.Path(file))))"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(
        [sys.executable, "-c", code],
        input=json.dumps([*arguments, questions and str(questions)]),
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    )
    if done.returncode:
        raise WorkbenchError(f"evaluating '{policy}' failed; the reason stands above")
    return json.loads(done.stdout.splitlines()[-1])


def versions() -> dict[str, str]:
    """Versions of Python, this package and the libraries a run depends on, as far as they are installed."""
    import platform
    from importlib.metadata import PackageNotFoundError, version

    import workbench

    found = {"python": platform.python_version(), "workbench": workbench.__version__}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def earlier_seconds(out: Path) -> float:
    """What the run in `out` has taken so far; after a kill no summary tells it, and its steps' own seconds stand in."""
    from workbench.runs.checkpoints import metrics_rows
    from workbench.runs.folder import read_json

    summary = read_json(out / "summary.json") or {}
    return max(summary.get("seconds", 0.0), sum(row["seconds"] for row in metrics_rows(out)))


def totals(rollouts: Path, method: str) -> dict[str, Any]:
    """`failed`, the number of stored feedback rows without a reward, and the summed `cost` of all."""
    from workbench.jsonl import iter_rows

    failed = 0
    cost: dict[str, float] = {field.name: 0 for field in fields(Cost)}
    for row in iter_rows(rollouts) if rollouts.exists() else ():
        failed += row["error"] is not None or row["rewards"].get(method, {}).get("value") is None
        for name, value in row["cost"].items():
            cost[name] += value
    return {"failed": failed, "cost": cost}
