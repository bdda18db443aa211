"""KLCF's data as a preparation of its own, which many trainings can use (`workbench klcf prepare`).

config.json      what was prepared, and how; another preparation may not use the folder
samples/, checklists.jsonl, truth.jsonl, card.json    as `workbench.methods.klcf.prepare` says
summary.json     the card with its status; a preparation that is finished returns it
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from workbench.methods.bench import Bench
from workbench.methods.bench import bench as bench_of
from workbench.methods.klcf.prepare import check_checks, compared, prepare, read_values
from workbench.methods.klcf.stages import METHOD, source_of
from workbench.methods.method import check_evidence, training_questions
from workbench.runs.folder import differences, finished, lock, open_run, versions
from workbench.types import WorkbenchError
from workbench.util.config import check_values
from workbench.util.jsonl import write_json
from workbench.util.threads import DEFAULT_THREADS, use_threads
from workbench.verdicts.llm_judge import LLMJudge


def prepare_klcf(
    out: Path,
    bench: str | Bench = "tiny",
    *,
    policy: str | None = None,
    seed: int = 0,
    overrides: Sequence[str] = (),
    threads: int = DEFAULT_THREADS,
    questions: str | Path | None = None,
    judge: LLMJudge | None = None,
) -> dict[str, Any]:
    """Sample the base model on a bench's training questions and keep, in the folder `out`, what
    trainings take of it: `klcf.prepare.folder` names it there.

    The same call on an unfinished folder goes on and ends as it would have ended; on a finished
    one it returns the stored summary.

    Args:
        policy: the base, a model's folder or hub name; by default the bench's own.
        overrides: settings "klcf.prepare.field=value", `klcf.kinds`, and `klcf.base` in the
        place of `policy`.
        questions, judge: as `workbench.experiments.experiment.train` takes them.
        threads: CPU threads.

    Returns:
        the card, with `status` ("done" or "interrupted") and `out`.

    Raises:
        WorkbenchError: before any work, for whatever in the arguments or the folder cannot work.
        workbench.util.failures.TooManyFailures: the judge failed too often.
    """
    chosen = bench_of(bench, questions=questions) if isinstance(bench, str) else bench
    chosen = chosen.with_policy(policy).with_judge(judge).with_cache_dir(out)
    config = METHOD.configure(chosen.name, overrides)
    _check_used(METHOD.configure(chosen.name), config, policy)
    check_values(config.prepare)
    check_evidence(METHOD, config, chosen)
    check_checks(chosen.checks)
    source, asked = (
        source_of(chosen, policy or config.base),
        training_questions(config.prompts, chosen, answered=False),
    )
    judged = {"judge": chosen.llm_judge.identity()} if chosen.llm_judge else {}
    identity = {
        **source.identity(),
        "prepare": compared(config.prepare),
        "kinds": config.prompts.kinds,
        "seed": seed,
        "threads": threads,
        **judged,
    }
    if chosen.llm_judge and not finished(out):
        chosen.llm_judge.try_out()
    with lock(out):
        if (summary := open_run(out, identity, versions(), read=_read)) is not None:
            print(f"'{out}' is finished: this is its stored result", file=sys.stderr)
            return {**summary, "out": str(out)}
        summary = {"status": "interrupted"}
        with suppress(KeyboardInterrupt), use_threads(threads):
            card = prepare(config.prepare, source, asked, chosen.checks, out, seed=seed)
            summary = {**card, "status": "done"}
        write_json(out / "summary.json", summary)
    return {**summary, "out": str(out)}


def _read(stored: dict[str, Any]) -> dict[str, Any]:
    return {**stored, "prepare": read_values(stored.get("prepare"))}


def _check_used(usual: Any, config: Any, policy: str | None) -> None:
    """Raise a WorkbenchError naming the setting for what no preparation looks at."""
    kinds = replace(usual.prompts, kinds=config.prompts.kinds)
    used = replace(
        usual,
        base=config.base,
        prompts=kinds,
        prepare=replace(config.prepare, folder=usual.prepare.folder),
    )
    if other := differences(asdict(used), asdict(config), "klcf."):
        raise WorkbenchError(
            "a preparation takes klcf.prepare, klcf.kinds and klcf.base alone"
            f" ({'; '.join(other)}): leave it out"
        )
    if policy is not None and config.base is not None:
        raise WorkbenchError(
            f"--policy is {policy} and klcf.base {config.base}: name the base once"
        )
