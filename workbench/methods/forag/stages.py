"""The stages of FoRAG's training. By RL: a cold start, a reward model trained on judged samples,
scores of the reference model's answers, then PPO or GRPO. Baselines: a cold start, then SFT on
judged samples.
"""

from collections.abc import Sequence
from dataclasses import asdict, replace

from workbench.methods.bench import Bench
from workbench.methods.forag.cold_start import cold_start_rows
from workbench.methods.forag.config import FoRAG
from workbench.methods.forag.reward import aggregate
from workbench.methods.forag.run import BY_RULES, Run, prepare
from workbench.methods.forag.segments import judged_rows
from workbench.methods.held_out import train_with_held_out
from workbench.methods.method import Method
from workbench.training.collect import collect_in_stage
from workbench.training.grpo import grpo_stage
from workbench.training.offline import offline_stage
from workbench.training.pairs import by_factuality
from workbench.training.ppo import ppo_stage
from workbench.training.rows import Card, Example
from workbench.training.scorer import check_room
from workbench.training.stage import Job, Stage, Status, order
from workbench.types import Grade, Question
from workbench.util.jsonl import write_json


def stages(config: FoRAG, bench: Bench, method: Method) -> Sequence[Stage]:
    """Return the stages of a training.

    Raises:
        WorkbenchError: see `prepare`.
    """
    run = prepare(config, bench, method)
    cold = [_cold_start(run)] if config.cold.cold_samples else []
    if not config.by_rl:
        return [*cold, _tuning(run)]
    # before the reference's stage, which scores its answers with this model
    model = [_reward_model(run)] if config.rewarded == "model" else []
    reference = [Stage("reference", lambda job: _reference(run, job))] if config.compares else []
    return [*cold, *model, *reference, _rl(run)]


def _cold_start(run: Run) -> Stage:
    """SFT on outlined answers (section 4.2)."""
    config = run.config
    sampling = config.drawn.sampling
    # runs whose settings agree here share one cold start
    cache_key = {
        "method": run.method.name,
        "drawn": asdict(sampling),
        **{name: asdict(getattr(config, name)) for name in ("prompts", "cold", "sft")},
    }

    def rows(job: Job) -> tuple[list[Example], Card]:
        questions = run.cold_questions(job.seed)
        return cold_start_rows(config.cold, sampling, run.checks, questions, job)

    # merged into a full checkpoint, from which the other stages start
    return offline_stage(config.sft, rows, merged=True, name="cold_start", cache_key=cache_key)


def _tuning(run: Run) -> Stage:
    """Filtered MLE or unlikelihood, the baselines of section 6.3."""
    config = run.config

    def rows(job: Job) -> tuple[list[Example], Card]:
        unlearn = config.unlearn if config.trainer == "unlikelihood" else 0.0
        return by_factuality(run.judged_samples(job), unlearn)

    return offline_stage(config.tuned, rows, name=config.trainer)


def _reward_model(run: Run) -> Stage:
    """Train a reward model on judged samples (section 5.2) and measure it on held-out questions."""
    config, evaluation = run.config, run.config.evaluation

    def train(job: Job) -> Status:
        samples = run.judged_samples(job)
        reads = BY_RULES([sample.response for sample in samples]) if run.model_alone else None
        rows, card = judged_rows(samples, evaluation, aggregate(config), reads)
        write_json(job.out / "card.json", card.to_row())
        settings = replace(config.reward_model, loss=config.model_loss)
        return train_with_held_out(
            settings, rows, config.held_out, job.start, job.out, seed=job.seed
        )

    # it scores judged samples, and in training the responses of RL
    longest = max(
        config.drawn.sampling.max_new_tokens,
        getattr(config, config.trainer).sampling.max_new_tokens,
    )
    models = {f"{run.method.name}.reward_model": config.reward_model}
    return Stage(
        "reward_model",
        train,
        plain=True,  # Unsloth would change the model's forward pass
        check=lambda policy: check_room(policy, run.questions, longest, models),
    )


def _reference(run: Run, job: Job) -> Status:
    """Sample and score the reference model's answers to RL's questions, with RL's settings.

    The answers are sampled and not greedy *(ours)*: greedy answers score higher than samples, so
    that nearly every sampled answer would have a negative reward.
    """
    ppo = run.config.ppo
    numbers = dict.fromkeys(order(len(run.questions), ppo.steps * ppo.prompts_per_step, job.seed))
    questions = [run.questions[number] for number in numbers]
    # the share of failures is set where the policy's own samples are
    sampling = replace(ppo.sampling, max_failed=run.config.drawn.sampling.max_failed)
    grade, name = run.training_grade(job), run.method.name
    collect_in_stage(job, questions, grade, sampling, run.config.references, method=name)
    return "done"


def _rl(run: Run) -> Stage:
    """PPO or GRPO with the rewards of the earlier stages."""
    config, name = run.config, run.method.name

    def given(job: Job) -> tuple[Sequence[Question], Grade]:
        return run.questions, run.training_grade(job, config.compares)

    if config.trainer == "ppo":
        return ppo_stage(config.ppo, given, name)
    return grpo_stage(config.grpo, given, name, plain=config.rewarded == "model")
