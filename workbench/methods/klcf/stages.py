"""KLCF's training, stage by stage: prepared data, a truthfulness model, a model of good form if
it is used, then GRPO or DPO on the combined reward.

Each stage has its own folder and continues after a kill.
"""

import shutil
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

from workbench.methods.bench import Bench
from workbench.methods.klcf.config import KLCF
from workbench.methods.klcf.models import train_general, train_truth
from workbench.methods.klcf.prepare import check_checks, prepare
from workbench.methods.klcf.prepared import FILES, read_prepared
from workbench.methods.klcf.reward import checks, reward
from workbench.methods.klcf.run import GENERAL, PREPARE, TRUTH_MODEL, KLCFRun
from workbench.methods.method import training_questions
from workbench.pipeline import ANSWER_SECTIONS, assemble
from workbench.training.collect import SAMPLES, collect_in_stage
from workbench.training.grpo import grpo_stage
from workbench.training.offline import offline_stage
from workbench.training.pairs import best_worst
from workbench.training.rows import Card, Pair
from workbench.training.settings import check_trainer
from workbench.training.stage import Job, Stage, Status
from workbench.types import JsonObject, WorkbenchError


def stages(config: KLCF, bench: Bench) -> Sequence[Stage]:
    """Return the stages of a run.

    Raises:
        WorkbenchError: settings that cannot work, no questions, or a judge that cannot give the
            verdicts.
    """
    _check(config)
    run = KLCFRun(config, bench, training_questions(config.prompts, bench, answered=False))
    # fail now if the judge cannot give the verdicts; the stages make "general" later
    check_checks(bench.checks)
    verify = {**bench.checks.verify, "general": lambda batch: []}
    checked = replace(bench.checks, verify=verify)
    assemble(checked, checks(config), {"klcf": reward(config)}, ANSWER_SECTIONS)
    prepared: JsonObject = {
        "method": "klcf",
        "prompts": asdict(config.prompts),
        "prepare": asdict(config.prepare),
        "base": config.base,
    }
    if config.prepare.folder and config.trains_general:
        prepared["samples"] = True  # copied with the folder
    judged = {
        "rewarded": config.rewarded,
        "held_out": config.held_out,
        "truth_model": asdict(config.truth_model),
    }
    first = Stage(
        PREPARE,
        lambda job: _prepare(run, job),
        plain=True,
        check=lambda policy: run.check_prepared(),
        cache_key=prepared,
    )
    truth = Stage(TRUTH_MODEL, lambda job: train_truth(run, job), plain=True, cache_key=judged)
    general = Stage(GENERAL, lambda job: train_general(run, job), plain=True)
    if config.trainer == "dpo":
        last = offline_stage(config.dpo, lambda job: _pairs(run, job))
    else:
        last = grpo_stage(
            config.grpo,
            lambda job: (run.questions(job), run.grade(job)),
            "klcf",
            plain=config.models_truth or bool(config.w_general),
        )
    return [
        first,
        *([truth] if config.models_truth else []),
        *([general] if config.trains_general else []),
        replace(last, check=lambda policy: run.check_lengths()),
    ]


def _check(config: KLCF) -> None:
    reward(config)
    for name, model in (
        ("truth_model", config.truth_model),
        ("general_model", config.general_model),
    ):
        check_trainer(model, trl=False)
        if model.level != "sequence" or model.loss == "mse":
            raise WorkbenchError(
                f"klcf.{name} has level={model.level}, loss={model.loss}, but it gives one"
                " probability for a whole text: leave level and loss out"
            )
    if config.trainer == "dpo" and config.drawn.samples < 2:
        raise WorkbenchError(
            f"klcf.drawn.samples is {config.drawn.samples}: a preference pair needs at least 2"
        )


def _prepare(run: KLCFRun, job: Job) -> Status:
    """Prepare checklists and labelled claims, or copy those of `klcf.prepare.folder`."""
    config = run.config.prepare
    if config.folder:
        folder = Path(config.folder)
        read_prepared(folder, run.source, run.allowed)
        for name in FILES:
            shutil.copyfile(folder / name, job.out / name)
        if run.config.trains_general:
            shutil.copytree(folder / SAMPLES, job.out / SAMPLES, dirs_exist_ok=True)
    else:
        prepare(config, run.source, run.allowed, run.bench.checks, job.out, seed=job.seed)
    # fail now if there is nothing to train on
    run.questions(replace(job, stages={**job.stages, PREPARE: job.out}))
    return "done"


def _pairs(run: KLCFRun, job: Job) -> tuple[list[Pair], Card]:
    drawn = run.config.drawn
    questions = run.questions(job)[: drawn.questions]
    samples = collect_in_stage(
        job, questions, run.grade(job), drawn.sampling, drawn.samples, method="klcf"
    )
    return best_worst(samples, "klcf")
