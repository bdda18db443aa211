"""FoRAG's stages: a cold start in the form, a reward model of judged samples, the reference's
own answers, then PPO or GRPO; or SFT on judged samples in their place. Each goes on where it was
killed, and its samples lie in its own folder."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from workbench.claims import rules
from workbench.methods.bench import Bench
from workbench.methods.forag.config import (
    PARTS,
    TINY,
    FoRAG,
    _shares,
    aggregate,
    checks,
    loss,
    reward,
    training,
)
from workbench.methods.forag.reward import Aggregate
from workbench.methods.forag.segments import (
    baseline,
    cuts,
    factuality,
    judged_rows,
    reference_values,
)
from workbench.methods.held_out import train_with_held_out
from workbench.methods.method import Method, training_questions
from workbench.pipeline import assemble
from workbench.runs.store import iter_feedback
from workbench.training import reward_model
from workbench.training.collect import SAMPLES, WRITTEN, collect_in_stage, written
from workbench.training.grpo import grpo_stage
from workbench.training.offline import offline_stage
from workbench.training.pairs import (
    cold_start_forag,
    cold_start_plain,
    cold_start_written,
    mle_filter,
    unlikely,
)
from workbench.training.ppo import ppo_stage
from workbench.training.reward_model import RewardModel
from workbench.training.rows import Card, Example
from workbench.training.scorer import MODEL, check_room, load_reward_model
from workbench.training.stage import Job, Stage, Status, order
from workbench.types import TWO_FACETS, Checks, Feedback, Grade, Question, WorkbenchError
from workbench.util.jsonl import write_json

# the parts of a config that a cold start rests on, beside how it samples
COLD = ("prompts", "cold", "sft")
BY_RULES = rules()  # what cuts answers into segments where the reward model alone scores them


@dataclass(frozen=True)
class MethodRun:
    """A run of FoRAG: its config, what is asked, who judges, and how the labels of a segment's
    claims become its own.
    """

    config: Any
    questions: Sequence[Question]
    checks: Checks
    method: Method
    aggregate: Aggregate
    # whether judging costs, so that training's responses are scored by the reward model alone
    model_alone: bool = False
    loss: Literal["log", "mse"] = "log"  # the reward model's

    def judge_grade(self) -> Grade:
        """The judge's verdicts, which pay as well: no reference is known yet."""
        return self.method.grader(replace(self.config, baseline=None), self.checks)

    def shuffled(self, seed: int) -> list[Question]:
        """The questions in an order that is not the one that RL asks in."""
        rng = random.Random(f"forag-questions-{seed}")
        return rng.sample(list(self.questions), len(self.questions))

    def cold_questions(self, seed: int) -> list[Question]:
        """The cold start has the first ones and the reward model the last: they share few."""
        return self.shuffled(seed)[: self.config.cold.cold_questions]

    def judged_questions(self, seed: int) -> list[Question]:
        return self.shuffled(seed)[::-1][: self.config.drawn.questions]

    def judged(self, job: Job) -> list[Feedback]:
        drawn, asked = self.config.drawn, self.judged_questions(job.seed)
        return collect_in_stage(
            job, asked, self.judge_grade(), drawn.sampling, drawn.samples, method=self.method.name
        )

    def training_grade(self, job: Job, compared: bool = False) -> Grade:
        """What the policy is paid by: the reward model, or the judge; `compared`, less the
        reference's own answers.
        """
        config, checks, names = replace(self.config, baseline=None), self.checks, ["fact"]
        if config.rewarded == "model":
            scorer = load_reward_model(job.stages["reward_model"] / MODEL)
            extract = BY_RULES if self.model_alone else checks.extract
            names = ["factuality"] if self.model_alone else ["fact", "factuality"]
            added = {"factuality": factuality(scorer, config.evaluation)}
            checks = replace(checks, extract=extract, verify={**checks.verify, **added})
        if compared:
            values = reference_values(
                iter_feedback(job.stages["reference"] / SAMPLES), self.method.name
            )
            checks = replace(checks, verify={**checks.verify, "baseline": baseline(values)})
            config, names = replace(config, baseline=True), [*names, "baseline"]
        rewards = {self.method.name: self.method.reward(config)}
        return assemble(checks, names, rewards, self.method.sections(config))


def stages_for(
    config: Any, bench: Bench, method: Method, aggregate: Aggregate, loss: Literal["log", "mse"]
) -> Sequence[Stage]:
    """The stages of a config that has been checked.

    Raises:
        WorkbenchError: settings that cannot work, no questions, or one without passages to
        answer from.
    """
    reward_model.check(config.reward_model)
    questions = training_questions(config.prompts, bench, answered=False)
    if bare := next((question for question in questions if not question.passages), None):
        raise WorkbenchError(
            f"question '{bare.id}' brings no passages, and FoRAG answers from these: give questions"
            ' with "passages" (`workbench data show --store` finds some), or on the tiny bench set'
            f" forag.prompts.kinds={TWO_FACETS}"
        )
    run = MethodRun(
        config, questions, bench.checks, method, aggregate, bench.llm_judge is not None, loss
    )
    run.judge_grade()  # fail now if the judge cannot verify facts
    if config.cold.cold_samples and config.cold.writer == "judge" and bench.checks.write is None:
        raise WorkbenchError(
            f"{method.name}.cold.writer is judge, and bench '{bench.name}' has none that writes:"
            " name one with --judge URL --judge-model NAME, or leave it out"
        )
    cold = [_cold_start(run)] if config.cold.cold_samples else []
    if not config.by_rl:
        return [
            *cold,
            offline_stage(config.tuned, lambda job: _tuned_rows(run, job), name=config.trainer),
        ]
    model = Stage(
        "reward_model",
        lambda job: _reward_model(run, job),
        plain=True,
        check=lambda policy: check_room(
            policy,
            questions,
            most_tokens(config),
            {f"{method.name}.reward_model": config.reward_model},
        ),
    )
    modelled = [model] if config.rewarded == "model" else []
    compared = [Stage("reference", lambda job: _reference(run, job))] if config.compares else []
    return [*cold, *modelled, *compared, _rl(run)]


def _cold_start(run: MethodRun) -> Stage:
    """SFT on a judge's answers, or on the policy's own samples of the form, drawn where it is
    told to plan, learnt untold.
    """
    config = run.config

    def rows(job: Job) -> tuple[list[Example], Card]:
        asked = run.cold_questions(job.seed)
        if not config.cold.sampled:
            assert run.checks.write is not None
            folder, most = job.out / WRITTEN, config.drawn.sampling.max_failed
            return cold_start_written(written(run.checks.write, asked, job.start, folder, most))
        told = (
            [replace(question, system=config.cold.told) for question in asked]
            if config.cold.outline
            else asked
        )
        # What is learnt is the form, so no judge is asked and nothing paid.
        found = collect_in_stage(
            job,
            told,
            assemble(run.checks, [], {}),
            config.drawn.sampling,
            config.cold.cold_samples,
            method=None,
        )
        examples, card = cold_start_forag(found) if config.cold.outline else cold_start_plain(found)
        untold = {question.id: question for question in asked}
        return [
            replace(example, question=untold[example.question.id]) for example in examples
        ], card

    cache_key = {
        "method": run.method.name,
        "drawn": asdict(config.drawn.sampling),
        **{name: asdict(getattr(config, name)) for name in COLD},
    }
    return offline_stage(config.sft, rows, merged=True, name="cold_start", cache_key=cache_key)


def _tuned_rows(run: MethodRun, job: Job) -> tuple[list[Example], Card]:
    """The rows of filtered MLE or of unlikelihood."""
    judged = run.judged(job)
    if run.config.trainer == "mle_filter":
        return mle_filter(judged)
    return unlikely(judged, weight=run.config.unlearn)


def most_tokens(config: Any) -> int:
    """Return the largest number of tokens of a scored answer."""
    drawn = config.drawn.sampling.max_new_tokens
    if not config.by_rl:
        return drawn
    return max(drawn, getattr(config, config.trainer).sampling.max_new_tokens)


def _reward_model(run: MethodRun, job: Job) -> Status:
    """Samples, their verdicts, a model of these on the segments that training pays, and how it
    does on other questions'.
    """
    config: RewardModel = run.config.reward_model
    judged, evaluation = run.judged(job), run.config.evaluation
    reads = BY_RULES([feedback.response for feedback in judged]) if run.model_alone else None
    rows, card = judged_rows(judged, evaluation, run.aggregate, reads)
    write_json(
        job.out / "card.json",
        card.to_row() | ({"cut": cuts(judged, reads, evaluation)} if reads else {}),
    )
    return train_with_held_out(
        replace(config, loss=run.loss), rows, run.config.held_out, job.start, job.out, seed=job.seed
    )


def _reference(run: MethodRun, job: Job) -> Status:
    """Answers of the policy that RL starts from, to the questions that RL will ask, sampled and
    scored as RL does: greedy ones, which are better, would make nearly every answer pay less
    than silence *(ours)*."""
    ppo = run.config.ppo
    numbers = dict.fromkeys(order(len(run.questions), ppo.steps * ppo.prompts_per_step, job.seed))
    asked = [run.questions[number] for number in numbers]
    # what may fail is set where the policy's own samples are drawn
    sampling = replace(ppo.sampling, max_failed=run.config.drawn.sampling.max_failed)
    collect_in_stage(
        job,
        asked,
        run.training_grade(job),
        sampling,
        run.config.references,
        method=run.method.name,
    )
    return "done"


def _rl(run: MethodRun) -> Stage:
    """PPO or GRPO, paid by what the stages before it have left."""
    config, name = run.config, run.method.name

    def given(job: Job) -> tuple[Sequence[Question], Grade]:
        return run.questions, run.training_grade(job, config.compares)

    if config.trainer == "ppo":
        return ppo_stage(config.ppo, given, name)
    return grpo_stage(config.grpo, given, name, plain=config.rewarded == "model")


def stages(config: FoRAG, bench: Bench) -> Sequence[Stage]:
    """A cold start in the form, a reward model of judged samples, the reference's own answers,
    and then PPO or GRPO; or, after the cold start, SFT on judged samples."""
    _check(config)
    return stages_for(config, bench, METHOD, aggregate(config), loss(config))


def _check(config: FoRAG) -> None:
    reward(config)  # what cannot be paid is not trained
    if config.judged_by != "fact":
        raise WorkbenchError(
            "forag.judged_by is for scoring, and training makes its own reward model: leave it out"
        )
    if _shares(config) and config.reward_model.loss == "log":
        raise WorkbenchError(
            "forag.reward_model.loss is log: the mean of a sentence's claims is a share; leave it"
            " out, or set aggregate=min"
        )


METHOD = Method(
    "forag",
    "FoRAG",
    FoRAG,
    reward,
    checks,
    stages=stages,
    parts=PARTS,
    scales={"tiny": TINY},
    training=training,
)
