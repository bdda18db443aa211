"""`workbench klcf prepare`: prepare KLCF's data once for many trainings.

Files in the folder of a preparation:

config.json      all inputs
samples/, checklists.jsonl, truth.jsonl, card.json    see `workbench.methods.klcf.prepare`
summary.json     the content of card.json and a status
"""

import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path

from workbench.methods.bench import Bench
from workbench.methods.bench import bench as bench_of
from workbench.methods.klcf.config import KLCF
from workbench.methods.klcf.method import METHOD
from workbench.methods.klcf.prepare import check_checks, prepare
from workbench.methods.klcf.prepared import compared, read_values, source_of
from workbench.methods.method import check_evidence, training_questions
from workbench.runs.folder import differences, finished, lock, open_run, versions
from workbench.types import JsonObject, WorkbenchError
from workbench.util.config import check_values
from workbench.util.jsonl import write_json
from workbench.util.threads import DEFAULT_THREADS, use_threads
from workbench.verdicts.llm_judge import NamedJudge


def prepare_klcf(
    out: Path,
    bench: str | Bench = "tiny",
    *,
    policy: str | None = None,
    seed: int = 0,
    overrides: Sequence[str] = (),
    threads: int = DEFAULT_THREADS,
    questions: str | Path | None = None,
    judge: NamedJudge | None = None,
) -> JsonObject:
    """Sample the base model on a bench's training questions, and store KLCF's training data.

    The data are checklists (for each question, facts that its answer should state) and claims
    labelled "correct" or "wrong", on which KLCF trains its truthfulness model. A training uses the
    data if its setting `klcf.prepare.folder` names the folder `out`. The same call continues an
    unfinished preparation, and returns the stored summary of a finished one.

    Args:
        policy: the base model's folder or hub name; by default the bench's.
        seed: seed of sampling.
        overrides: changed settings, each as "klcf.prepare.FIELD=VALUE", "klcf.kinds=VALUE" or
            "klcf.base=MODEL". The last names the base model; then `policy` must be None.
        threads: number of CPU threads.
        questions: data set or question file for a bench without questions of its own.
        judge: judge that replaces the bench's judge.

    Returns:
        The content of card.json (the inputs, and counts of every step), with the keys `status`
        ("done" or "interrupted") and `out`. After an interrupt, only these two keys.

    Raises:
        WorkbenchError: an argument is invalid, or `out` cannot be used. It is raised before any
            work starts.
        workbench.util.failures.TooManyFailures: the judge failed too often.
    """
    chosen = bench_of(bench, questions)
    chosen = chosen.with_policy(policy).with_judge(judge).with_cache_dir(out)
    config = METHOD.configure(chosen.name, overrides)
    _check_used(METHOD.configure(chosen.name), config, policy)
    check_values(config.prepare)
    check_evidence(METHOD, config, chosen)
    check_checks(chosen.checks)
    source = source_of(chosen, policy or config.base)
    selected = training_questions(config.prompts, chosen, answered=False)
    identity = {
        **source.identity(),
        "prepare": compared(config.prepare),
        "kinds": config.prompts.kinds,
        "seed": seed,
        "threads": threads,
        **chosen.judge_identity,
    }
    if chosen.named_judge and not finished(out):
        # one call now: a wrong address must fail before the base model is sampled
        chosen.named_judge.try_out()
    with lock(out):
        if (summary := open_run(out, identity, versions(), read=_restored)) is not None:
            print(f"'{out}' is finished: this is its stored result", file=sys.stderr)
            return {**summary, "out": str(out)}
        summary = {"status": "interrupted"}
        with suppress(KeyboardInterrupt), use_threads(threads):
            card = prepare(config.prepare, source, selected, chosen.checks, out, seed=seed)
            summary = {**card, "status": "done"}
        write_json(out / "summary.json", summary)
    return {**summary, "out": str(out)}


def _restored(stored: JsonObject) -> JsonObject:
    return {**stored, "prepare": read_values(stored.get("prepare"))}


def _check_used(default: KLCF, config: KLCF, policy: str | None) -> None:
    """Raise a WorkbenchError if `config` changes a default that does not affect a preparation.

    Also raise if both `policy` and the setting `klcf.base` name the base model.
    """
    kinds = replace(default.prompts, kinds=config.prompts.kinds)
    prepare = replace(config.prepare, folder=default.prepare.folder)
    used = replace(default, base=config.base, prompts=kinds, prepare=prepare)
    if other := differences(asdict(used), asdict(config), "klcf."):
        raise WorkbenchError(
            f"a preparation does not use {'; '.join(other)}: leave these settings out; only"
            " klcf.prepare, klcf.kinds and klcf.base have an effect"
        )
    if policy is not None and config.base is not None:
        raise WorkbenchError(
            f"--policy is {policy} and klcf.base is {config.base}: both name the base model, leave"
            " one of them out"
        )
