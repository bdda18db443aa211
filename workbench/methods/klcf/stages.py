"""The stages of KLCF's training: preparation, reward models, policy.

1. Data is prepared from samples of the base model.
2. A truthfulness model and a model of good form are trained, if the config uses them.
3. The policy is trained by GRPO or DPO on KLCF's reward.

Each stage has its own folder and continues after a kill.
"""

import shutil
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

from workbench.methods.bench import Bench
from workbench.methods.held_out import HELD_OUT, split_held_out, train_with_held_out
from workbench.methods.klcf.confidence import calibrated
from workbench.methods.klcf.config import KLCF
from workbench.methods.klcf.general import quality_rows
from workbench.methods.klcf.prepare import check_checks, prepare
from workbench.methods.klcf.prepared import FILES, read_prepared
from workbench.methods.klcf.reward import checks, reward
from workbench.methods.klcf.run import GENERAL, PREPARE, TRUTH_MODEL, KLCFRun
from workbench.methods.klcf.truth import measured, scorer_of, truth_examples
from workbench.methods.method import training_questions
from workbench.pipeline import ANSWER_SECTIONS, assemble
from workbench.policies.load import load_policy, load_tokenizer
from workbench.runs.store import iter_feedback
from workbench.training.collect import SAMPLES, collect_in_stage
from workbench.training.grpo import grpo_stage
from workbench.training.offline import offline_stage
from workbench.training.pairs import best_worst
from workbench.training.rows import Card, Pair
from workbench.training.settings import check_trainer
from workbench.training.stage import Job, Stage, Status
from workbench.types import JsonObject, WorkbenchError
from workbench.util.jsonl import write_json


def stages(config: KLCF, bench: Bench) -> Sequence[Stage]:
    """Return the training stages of a run, in order: data preparation, reward models, policy.

    Raises:
        WorkbenchError: invalid settings, no questions, or a judge without a check that the reward
            needs.
    """
    _check(config)
    run = KLCFRun(config, bench, training_questions(config.prompts, bench, answered=False))
    # raises now if the judge cannot give the verdicts; the check "general" is made by a later stage
    check_checks(bench.checks)
    checked = replace(bench.checks, verify={**bench.checks.verify, "general": lambda batch: []})
    assemble(checked, checks(config), {"klcf": reward(config)}, ANSWER_SECTIONS)
    prepared: JsonObject = {
        "method": "klcf",
        "prompts": asdict(config.prompts),
        "prepare": asdict(config.prepare),
        "base": config.base,
    }
    if config.prepare.folder and config.trains_general:
        prepared["samples"] = True  # `_prepare` then copies the samples too
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
                f"klcf.{name} has level={model.level}, loss={model.loss}, but KLCF needs one"
                " probability for a whole text: leave level and loss out"
            )
    if config.trainer == "dpo" and config.drawn.samples < 2:
        raise WorkbenchError(
            f"klcf.drawn.samples is {config.drawn.samples}: raise it, because a preference pair"
            " needs at least 2 samples of a question"
        )


def _prepare(run: KLCFRun, job: Job) -> Status:
    """Prepare checklists and labelled claims, or copy them from `klcf.prepare.folder`."""
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
    # raises now if no question has a checklist
    run.questions(replace(job, stages={**job.stages, PREPARE: job.out}))
    return "done"


def _pairs(run: KLCFRun, job: Job) -> tuple[list[Pair], Card]:
    drawn = run.config.drawn
    questions = run.questions(job)[: drawn.questions]
    samples = collect_in_stage(
        job, questions, run.grade(job), drawn.sampling, drawn.samples, method="klcf"
    )
    return best_worst(samples, "klcf")


def train_truth(run: KLCFRun, job: Job) -> Status:
    """Train the truthfulness model on prepared claims, or calibrate the base model's confidence.

    Metrics of P(true) on held-out questions are written to `held_out.json`. For comparison, the
    file also has metrics of the untuned base model.
    """
    config, base, claims = run.config, run.source.base, run.prepared(job).truth
    if not claims:
        raise WorkbenchError(
            f"'{job.stages[PREPARE]}' has too few claims to train on: two supported claims and one"
            " refuted claim are needed. Prepare more questions or samples, or set"
            " klcf.rewarded=judge, so that the judge verifies the claims"
        )
    rows = truth_examples(claims, load_tokenizer(base).all_special_tokens)
    if config.rewarded == "model":
        return train_with_held_out(
            config.truth_model,
            rows,
            config.held_out,
            base,
            job.out,
            seed=job.seed,
            measure=lambda model, *split: measured(scorer_of(model), load_policy(base), *split),
        )
    policy, split = load_policy(base), split_held_out(rows, config.held_out, job.seed)
    confidence = calibrated(policy, split[0])
    confidence.save(job.out)
    write_json(job.out / HELD_OUT, measured(confidence.score, policy, *split))
    return "done"


def train_general(run: KLCFRun, job: Job) -> Status:
    """Train the reward model for general quality, and measure it on held-out questions.

    The model learns to distinguish the base model's answers from corrupted copies of them.
    """
    config, base = run.config, run.source.base
    allowed = {question.id for question in run.allowed}
    samples = [
        sample
        for sample in iter_feedback(job.stages[PREPARE] / SAMPLES)
        if sample.response.question.id in allowed
    ]
    rows = quality_rows(samples, job.seed, load_tokenizer(base).all_special_tokens)
    training, _ = split_held_out(rows, config.held_out, job.seed)
    if {row.segments[0].target for row in training} != {0.0, 1.0}:
        raise WorkbenchError(
            f"'{job.stages[PREPARE]}' has no complete answers to train the model for klcf.w_general"
            " on: prepare more questions or samples, or name a preference model with klcf.general"
        )
    return train_with_held_out(
        config.general_model, rows, config.held_out, base, job.out, seed=job.seed
    )
