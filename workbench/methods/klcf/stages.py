"""KLCF's stages: checklists and labelled claims out of the base model's own samples, a
truthfulness model tuned from that base, a model of good form where one is paid, and then GRPO or
DPO on the combined reward. Each goes on where it was killed, and what it has made lies in its
own folder."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from workbench.methods.bench import Bench, check_policy
from workbench.methods.held_out import HELD_OUT, split_held_out, train_with_held_out
from workbench.methods.klcf.config import (
    KLCF,
    PARTS,
    TINY,
    checks,
    reward,
    training,
    trains_general,
)
from workbench.methods.klcf.general import general, preference_model, preferred
from workbench.methods.klcf.prepare import (
    FILES,
    Prepared,
    Source,
    check_checks,
    digest,
    prepare,
    read_prepared,
    samples_digest,
)
from workbench.methods.klcf.truth import (
    calibrated,
    load_confidence,
    measured,
    own_truth,
    truth,
    truth_examples,
    values_of,
)
from workbench.methods.method import Method, training_questions
from workbench.pipeline import assemble
from workbench.policies.load import load_policy, load_tokenizer
from workbench.runs.folder import policy_hash
from workbench.runs.store import iter_feedback
from workbench.training import reward_model
from workbench.training.collect import SAMPLES, collect_in_stage
from workbench.training.grpo import grpo_stage
from workbench.training.offline import offline_stage
from workbench.training.pairs import best_worst
from workbench.training.rows import Card, Pair
from workbench.training.scorer import MODEL, check_room, load_reward_model
from workbench.training.stage import Job, Stage, Status
from workbench.types import Grade, Question, Verify, WorkbenchError
from workbench.util.jsonl import write_json

PREPARE, TRUTH_MODEL, GENERAL = "prepare", "truth", "general"  # the stages' names


@dataclass(frozen=True)
class MethodRun:
    """A run of KLCF: its config, its bench, and the questions that may be trained on."""

    config: Any
    bench: Bench
    questions: Sequence[Question]
    method: Method

    @property
    def source(self) -> Source:
        return source_of(self.bench, self.config.base)

    def prepared(self, job: Job) -> Prepared:
        return read_prepared(job.stages[PREPARE], self.source, self.questions)

    def listed(self, job: Job) -> list[Question]:
        """What RL asks: the questions that have a checklist, also where it is not paid, so that
        all weights see the same.
        """
        if questions := self.prepared(job).questions:
            return questions
        raise WorkbenchError(
            "the base made no supported claim about any training question: see"
            f" '{job.stages[PREPARE]}', and give other questions, or more samples"
        )

    def training_grade(self, job: Job) -> Grade:
        """The checklist's verdicts by the judge and, for the claims, the truthfulness model's or
        the judge's. Where judging is free, the rows have its verdicts on facts, too."""
        config, checks, method = self.paid, self.bench.checks, self.method
        verify = dict(checks.verify)
        if self.models:
            verify["truth"] = self.truth_check(job.stages[TRUTH_MODEL])
        if config.w_general:
            verify["general"] = self.general_check(job)
        names = method.checks(config)
        if not self.bench.llm_judge and "fact" in verify and "fact" not in names:
            names = (*names, "fact")
        rewards = {method.name: method.reward(config)}
        return assemble(replace(checks, verify=verify), names, rewards, method.sections(config))

    def truth_check(self, stage: Path) -> Verify:
        """The check that a truthfulness model, or the base's confidence, has become."""
        if self.config.rewarded == "model":
            return truth(load_reward_model(stage / MODEL))
        return own_truth(load_confidence(stage, load_policy(self.source.base)))

    def general_check(self, job: Job) -> Verify:
        """The check that a preference model has become: the one that is named, or the run's own."""
        if name := self.config.general:
            named = preference_model(name, self.config.general_scale)
            return general(named.score, name, named.specials)
        own = load_reward_model(job.stages[GENERAL] / MODEL)
        return general(
            values_of(own),
            "the base's own answers, whole or spoilt",
            tuple(own.tokenizer.all_special_tokens),
        )

    @property
    def paid(self) -> Any:
        return replace(
            self.config, judged_by="fact" if self.config.rewarded == "judge" else "truth"
        )

    @property
    def models(self) -> bool:
        """Whether a truthfulness model pays, or the base's confidence."""
        return bool(self.config.w_truth) and self.config.rewarded != "judge"


def source_of(bench: Bench, base: str | None) -> Source:
    """What is prepared on a bench: with the base that is named, else what the run starts from
    where that is no checkpoint of the bench's own, else the bench's base."""
    name = base or (
        "base"
        if bench.policy in bench.checkpoints and "base" in bench.checkpoints
        else bench.policy
    )
    path = bench.path(name)
    check_policy(name, path)
    return Source(bench.name, bench.hash, path, bench.shown)


def input_digests(config: Any, bench: Bench) -> dict[str, str | None]:
    """Digests of the base's weights, where the policy starts from others, of what was prepared
    elsewhere, and of a preference model in a folder."""
    base, found = policy_hash(source_of(bench, config.base).base), dict[str, str | None]()
    if base and base != policy_hash(bench.path(bench.policy)):
        found["base_hash"] = base
    if folder := config.prepare.folder:
        found["prepared_hash"] = digest(Path(folder))
        if trains_general(config):
            found["samples_hash"] = samples_digest(Path(folder))
    if config.general:
        found["general_hash"] = policy_hash(config.general)
    return found


def stages_for(config: Any, bench: Bench, method: Method) -> Sequence[Stage]:
    """The stages of a config that has been checked.

    Raises:
        WorkbenchError: settings that cannot work, no questions, a judge that cannot tell facts.
    """
    reward_model.check(config.truth_model)
    reward_model.check(config.general_model)
    if config.trainer == "dpo" and config.drawn.samples < 2:
        raise WorkbenchError(f"samples is {config.drawn.samples}: a pair takes at least 2")
    run = MethodRun(
        config, bench, training_questions(config.prompts, bench, answered=False), method
    )
    check_checks(bench.checks)  # a judge that cannot tell what is needed is named now
    verify = {**bench.checks.verify, **({"general": _never} if config.w_general else {})}
    method.grader(replace(config, judged_by="fact"), replace(bench.checks, verify=verify))
    copied = bool(config.prepare.folder) and trains_general(config)  # with its samples
    prepares = {
        "method": method.name,
        "prompts": asdict(config.prompts),
        "prepare": asdict(config.prepare),
        "base": config.base,
        **({"samples": True} if copied else {}),
    }
    models = {
        "rewarded": config.rewarded,
        "held_out": config.held_out,
        "truth_model": asdict(config.truth_model),
    }
    first = Stage(
        PREPARE,
        lambda job: _prepare(run, job),
        plain=True,
        check=lambda policy: _is_there(run),
        cache_key=prepares,
    )
    model = Stage(TRUTH_MODEL, lambda job: _truth_model(run, job), plain=True, cache_key=models)
    form = Stage(GENERAL, lambda job: _general_model(run, job), plain=True)
    return [
        first,
        *([model] if run.models else []),
        *([form] if trains_general(config) else []),
        _last(run),
    ]


def _never(batch: Any) -> Any:
    """Placeholder for the "general" check until its model is trained."""
    raise AssertionError("the check is made once its model is there")


def _is_there(run: MethodRun) -> None:
    """Raise a WorkbenchError if the base or the prepared data is missing or does not fit."""
    source, folder = run.source, run.config.prepare.folder
    if folder:
        read_prepared(Path(folder), source, run.questions)
        if trains_general(run.config) and samples_digest(Path(folder)) is None:
            raise WorkbenchError(
                f"'{folder}' has no {SAMPLES} any more, of which the general reward's model would"
                " be made: name one by klcf.general, or prepare another folder"
            )


def _can_read(run: MethodRun) -> None:
    """Raise a WorkbenchError if a reward model cannot be loaded or cannot read an answer."""
    config = run.config
    last = config.drawn if config.trainer == "dpo" else config.grpo
    most = last.sampling.max_new_tokens
    if config.w_general and config.general:
        longest = preference_model(config.general).longest
        if longest <= most:
            raise WorkbenchError(
                f"'{config.general}' reads up to {longest} tokens, and answers have up to {most}"
                " after their questions: name another, or set max_new_tokens lower"
            )
    trained = {
        "truth_model": run.models and config.rewarded == "model",
        "general_model": trains_general(config),
    }
    models = {f"klcf.{name}": getattr(config, name) for name, used in trained.items() if used}
    untold = [Question(question.id, question.text) for question in run.questions]
    check_room(run.source.base, untold, most, models)


def _prepare(run: MethodRun, job: Job) -> Status:
    """Prepare checklists and labelled claims, or copy those of `klcf.prepare.folder`."""
    config = run.config.prepare
    if config.folder:
        read_prepared(Path(config.folder), run.source, run.questions)
        for name in FILES:
            shutil.copyfile(Path(config.folder) / name, job.out / name)
        if trains_general(run.config):
            shutil.copytree(Path(config.folder) / SAMPLES, job.out / SAMPLES, dirs_exist_ok=True)
    else:
        prepare(config, run.source, run.questions, run.bench.checks, job.out, seed=job.seed)
    # fail now if there is nothing to train on
    run.listed(replace(job, stages={**job.stages, PREPARE: job.out}))
    return "done"


def _truth_model(run: MethodRun, job: Job) -> Status:
    """A model of the prepared claims, tuned from the base, or the base's calibrated confidence
    in them; and how it, beside the base itself, does on other questions' claims."""
    config, base, rows = run.config, run.source.base, run.prepared(job).truth
    if not rows:
        raise WorkbenchError(
            f"'{job.stages[PREPARE]}' has no claims to learn truth from, two supported to each"
            " refuted one: prepare more questions or samples, or set klcf.rewarded=judge"
        )
    examples = truth_examples(rows, tuple(load_tokenizer(base).all_special_tokens))
    if config.rewarded == "model":
        return train_with_held_out(
            config.truth_model,
            examples,
            config.held_out,
            base,
            job.out,
            seed=job.seed,
            measure=lambda scorer, *split: measured(values_of(scorer), load_policy(base), *split),
        )
    policy, split = load_policy(base), split_held_out(examples, config.held_out, job.seed)
    confidence = calibrated(policy, split[0])
    confidence.save(job.out)
    write_json(job.out / HELD_OUT, measured(confidence.score, policy, *split))
    return "done"


def _general_model(run: MethodRun, job: Job) -> Status:
    """A reward model, tuned from the base, that tells its own answers to training questions from
    the same ones spoilt; and how it does on those to other questions."""
    config, base = run.config, run.source.base
    trained = {question.id for question in run.questions}
    samples = [
        row
        for row in iter_feedback(job.stages[PREPARE] / SAMPLES)
        if row.response.question.id in trained
    ]
    rows = preferred(samples, job.seed, tuple(load_tokenizer(base).all_special_tokens))
    training_rows, _ = split_held_out(rows, config.held_out, job.seed)
    if {row.segments[0].target for row in training_rows} != {0.0, 1.0}:
        raise WorkbenchError(
            f"'{job.stages[PREPARE]}' has no whole answers to learn good form from: prepare more"
            " questions or samples, or name a preference model by klcf.general"
        )
    return train_with_held_out(
        config.general_model, rows, config.held_out, base, job.out, seed=job.seed
    )


def _last(run: MethodRun) -> Stage:
    """GRPO or DPO, paid by what the stages before have left, on the questions that have a
    checklist.
    """
    config, name = run.config, run.method.name
    if config.trainer == "dpo":
        last = offline_stage(config.dpo, lambda job: _pairs(run, job))
    else:
        plain = run.models or bool(config.w_general)
        last = grpo_stage(
            config.grpo, lambda job: (run.listed(job), run.training_grade(job)), name, plain=plain
        )
    return replace(last, check=lambda policy: _can_read(run))


def _pairs(run: MethodRun, job: Job) -> tuple[list[Pair], Card]:
    drawn, name = run.config.drawn, run.method.name
    asked, grade = run.listed(job)[: drawn.questions], run.training_grade(job)
    found = collect_in_stage(job, asked, grade, drawn.sampling, drawn.samples, method=name)
    return best_worst(found, name)


def stages(config: KLCF, bench: Bench) -> Sequence[Stage]:
    """Checklists and labelled claims of the base's samples, the models that judge answers, then
    GRPO or DPO.
    """
    _check(config)
    return stages_for(config, bench, METHOD)


def _check(config: KLCF) -> None:
    reward(config)
    if config.judged_by != "fact":
        raise WorkbenchError(
            "klcf.judged_by is for scoring, and training makes its own truthfulness model: leave"
            " it out"
        )
    for name in ("truth_model", "general_model"):
        model = getattr(config, name)
        if model.level != "sequence" or model.loss == "mse":
            raise WorkbenchError(
                f"klcf.{name} reads a whole text that is one or the other: leave level and loss out"
            )


METHOD = Method(
    "klcf",
    "KLCF",
    KLCF,
    reward,
    checks,
    stages=stages,
    parts=PARTS,
    scales={"tiny": TINY},
    training=training,
    input_digests=input_digests,
)
