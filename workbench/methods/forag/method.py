"""Define the method FoRAG: the parts of its reward, and the stages of its training.

A judged sample is a sampled answer with the judge's verdicts on its claims. The stages of training
by RL are:

1. a cold start (optional)
2. a reward model, trained on judged samples (if the reward is from a model)
3. sampling and scoring of answers of the reference model (if PPO subtracts a baseline)
4. PPO or GRPO

The paper's baselines have a cold start and then SFT on judged samples.
"""

from collections.abc import Sequence
from dataclasses import asdict, replace

from workbench.methods.bench import Bench
from workbench.methods.forag.cold_start import cold_start_rows
from workbench.methods.forag.config import TINY, FoRAG
from workbench.methods.forag.reward import aggregate, reward
from workbench.methods.forag.run import BY_RULES, Run, prepare
from workbench.methods.forag.segments import judged_rows
from workbench.methods.held_out import train_with_held_out
from workbench.methods.method import Method, Training
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

PARTS = {
    "factuality": ("factuality", "sum of the sentences' factuality, each from 0 to 1"),
    "segments": ("sentences scored", "number of sentences of the answer that have a score"),
    "baseline": (
        "reference answers",
        "mean factuality of the reference's own answers, subtracted from every sentence",
    ),
    "stood_in": (
        "scored by claim verdicts",
        "sentences without a reward model's score: verdicts on their claims are used",
    ),
    "repeated": (
        "repeated",
        "with repeats=once: sentences that repeat what the answer stated, which earn no reward",
    ),
    "unfinished": (
        "missing",
        "added to a plan without an answer: each missing sentence counts as a false one",
    ),
}


def training(config: FoRAG) -> Training:
    """Return how this config trains the policy.

    The `Training` has the trainer of the last stage, the settings without effect in this config,
    and the number of reward models in memory.
    """
    modelled = config.by_rl and config.rewarded == "model"
    last = config.trainer if config.by_rl else "tuned"
    return Training(last, _unused(config) - {last}, resident_models=int(modelled))


def _unused(config: FoRAG) -> set[str]:
    """Return paths, such as "cold.outline", of settings that have no effect in this config."""
    cold, judged = config.cold, config.by_rl and config.rewarded == "judge"
    by_policy = bool(cold.cold_samples) and cold.outline
    cases = (
        (True, "ppo grpo tuned"),
        (config.trainer != "unlikelihood", "unlearn"),
        (config.trainer != "ppo", "baseline"),
        # the baselines of section 6.3 select samples instead of rewarding them
        (not config.by_rl, "rewarded evaluation aggregate repeats"),
        (config.evaluation != "subclaim", "aggregate"),
        (not cold.cold_samples, "sft cold.outline cold.factual cold.cold_questions"),
        (not by_policy, "cold.writer cold.told"),
        # a judge that writes the answers writes one per question, with its own prompt
        (by_policy and not cold.sampled, "cold.told cold.cold_samples"),
        (not config.by_rl or judged, "reward_model held_out"),
        (not config.compares, "references"),
        # with rewarded=judge, only a cold start uses the sampling settings of `drawn`
        (judged, "drawn.questions drawn.samples"),
        (judged and not cold.sampled, "drawn.temperature drawn.top_p drawn.max_new_tokens"),
        (judged and not cold.cold_samples and not config.compares, "drawn.max_failed"),
    )
    return {name for unused, names in cases if unused for name in names.split()}


def stages(config: FoRAG, bench: Bench) -> Sequence[Stage]:
    """Return the training stages of a run, in order.

    The first stage is a cold start, unless `cold_samples` is 0. If `trainer` is "ppo" or "grpo",
    these stages follow: a reward model (with `rewarded="model"`), answers of the reference model
    (if PPO subtracts a baseline), and PPO or GRPO. With another trainer, SFT on judged samples
    follows.

    Raises:
        WorkbenchError: invalid settings, no questions, a question without passages to answer from,
            or a judge that cannot verify claims or, if `cold.writer` is "judge", write answers.
    """
    run = prepare(config, bench)
    cold = [_cold_start(run)] if config.cold.cold_samples else []
    if not config.by_rl:
        return [*cold, _tuning(run)]
    # the stage "reference" needs this model to score the reference model's answers
    model = [_reward_model(run)] if config.rewarded == "model" else []
    reference = [Stage("reference", lambda job: _reference(run, job))] if config.compares else []
    return [*cold, *model, *reference, _rl(run)]


def _cold_start(run: Run) -> Stage:
    """Return the first stage: SFT on outlined (`cold.outline`) or plain answers (section 4.2)."""
    config = run.config
    sampling = config.drawn.sampling
    # runs with equal values of these settings share one cold start
    cache_key = {
        "method": "forag",
        "drawn": asdict(sampling),
        **{name: asdict(getattr(config, name)) for name in ("prompts", "cold", "sft")},
    }

    def rows(job: Job) -> tuple[list[Example], Card]:
        questions = run.cold_questions(job.seed)
        judge = run.judge_grade()
        return cold_start_rows(config.cold, sampling, run.checks, judge, questions, job)

    # the adapter is merged into a full checkpoint, from which the other stages start
    return offline_stage(config.sft, rows, merged=True, name="cold_start", cache_key=cache_key)


def _tuning(run: Run) -> Stage:
    """Return the last stage of a baseline (section 6.3): filtered MLE or unlikelihood training."""
    config = run.config

    def rows(job: Job) -> tuple[list[Example], Card]:
        unlearn = config.unlearn if config.trainer == "unlikelihood" else 0.0
        return by_factuality(run.judged_samples(job), unlearn)

    return offline_stage(config.tuned, rows, name=config.trainer)


def _reward_model(run: Run) -> Stage:
    """Return the stage that trains a reward model on judged samples (section 5.2).

    The stage also measures the reward model on held-out questions.
    """
    config, evaluation = run.config, run.config.evaluation

    def train(job: Job) -> Status:
        samples = run.judged_samples(job)
        reads = BY_RULES([sample.response for sample in samples]) if run.model_alone else None
        rows, card = judged_rows(samples, evaluation, aggregate(config), reads)
        write_json(job.out / "card.json", asdict(card))
        settings = replace(config.reward_model, loss=config.model_loss)
        return train_with_held_out(
            settings, rows, config.held_out, job.start, job.out, seed=job.seed
        )

    # the model must be able to read the longest judged sample and the longest response of RL
    longest = max(
        config.drawn.sampling.max_new_tokens,
        getattr(config, config.trainer).sampling.max_new_tokens,
    )
    models = {"forag.reward_model": config.reward_model}
    return Stage(
        "reward_model",
        train,
        plain=True,  # Unsloth would change the model's forward pass
        check=lambda policy: check_room(policy, run.questions, longest, models),
    )


def _reference(run: Run, job: Job) -> Status:
    """Sample and score the reference model's answers to the questions that PPO will use.

    PPO later subtracts the mean of these scores from its rewards. The answers are sampled with
    PPO's settings *(ours)*, not greedily. Greedy answers have such a high mean score that nearly
    all rewards in PPO would be negative.
    """
    ppo = run.config.ppo
    numbers = dict.fromkeys(order(len(run.questions), ppo.steps * ppo.prompts_per_step, job.seed))
    questions = [run.questions[number] for number in numbers]
    # the largest accepted share of failures is a setting of `drawn`
    sampling = replace(ppo.sampling, max_failed=run.config.drawn.sampling.max_failed)
    grade = run.training_grade(job)
    collect_in_stage(job, questions, grade, sampling, run.config.references, method="forag")
    return "done"


def _rl(run: Run) -> Stage:
    """Return the last stage: PPO or GRPO.

    Its reward uses the reward model and the baseline from earlier stages, if the config has them.
    """
    config = run.config

    def given(job: Job) -> tuple[Sequence[Question], Grade]:
        return run.questions, run.training_grade(job, config.compares)

    if config.trainer == "ppo":
        return ppo_stage(config.ppo, given, "forag")
    return grpo_stage(config.grpo, given, "forag", plain=config.rewarded == "model")


METHOD = Method(
    "forag",
    "FoRAG",
    FoRAG,
    reward,
    lambda config: ("fact",),
    stages=stages,
    parts=PARTS,
    scales={"tiny": TINY},
    training=training,
)
