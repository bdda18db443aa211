"""Define each baseline as a `Method`, with its training stages and its settings on the tiny bench.

Baselines train by SFT or DPO, on gold answers or on sampled answers of the policy.
"""

from collections.abc import Callable, Sequence
from functools import partial
from statistics import fmean
from typing import Any

from workbench.data import sample
from workbench.methods.baselines.config import GoldSFT, PairDPO, SampleSFT
from workbench.methods.bench import Bench
from workbench.methods.lookup import Table, claims, on_claim, scored, supported, unscored
from workbench.methods.method import AT_ONCE, Method, Prompts, Training, scaled, training_questions
from workbench.methods.truthrl.method import PARTS
from workbench.methods.truthrl.reward import ternary
from workbench.pipeline import ANSWER_SECTIONS
from workbench.training.collect import collect_in_stage
from workbench.training.offline import offline_stage
from workbench.training.pairs import best_worst, gold, r_tuning, rft, truthrl_pairs
from workbench.training.rows import Card, Example, Pair
from workbench.training.settings import Samples, Sampling
from workbench.training.stage import Job, Stage
from workbench.types import Event, Feedback, Reward, RewardFn, WorkbenchError
from workbench.util.config import check_values

# *(ours)*, for 1M parameters on two CPU cores. The learning rates, except that of `sft_gold`, were
# chosen on the validation split: `truthrl_rates.toml` and `comparison_rates.toml` in
# benchmarks/findings.
ADAPTER = {**AT_ONCE, "save_every": 10}
FEW = {"questions": 512, "samples": 16, "temperature": 1.0, "top_p": 1.0, "max_new_tokens": 12}
SFT = {**ADAPTER, "batch": 64, "learning_rate": 2e-4}
PREFERRED = {**ADAPTER, "batch": 32, "learning_rate": 8e-4}
FACTS = {"facts": ("FActScore", "share of the claims that the evidence supports")}
LONG_PROMPTS = Prompts(system="")  # the question alone: an answer in prose
# FactTune-FS (arXiv 2311.08401, section 4): 10 samples at temperature 1
TEN = Samples(samples=10, sampling=Sampling(max_new_tokens=512))
ROUND = Samples(sampling=Sampling(max_new_tokens=256))


def on_gold(config: GoldSFT, bench: Bench, method: Method) -> Sequence[Stage]:
    questions = training_questions(config.prompts, bench)
    return [offline_stage(config.sft, lambda job: gold(questions))]


def on_samples(config: SampleSFT, bench: Bench, method: Method) -> Sequence[Stage]:
    """Return the training stages of RFT or R-Tuning (TruthRL's appendix): one stage, SFT.

    The stage first samples the policy. RFT then trains on a correct sample of each question; if no
    sample is correct, on a sample that abstains. R-Tuning trains on the gold answer; if no sample
    is correct, on "I don't know".

    Args:
        bench: gives the questions to sample, and the judge.
        method: the baseline, RFT or R-Tuning. Its checks and reward grade the samples.
    """
    collect = _collector(config, bench, method)

    def rows(job: Job) -> tuple[list[Example], Card]:
        samples = collect(job, job.seed)
        return r_tuning(samples) if method.name == "r_tuning" else rft(samples, job.seed)

    return [offline_stage(config.sft, rows)]


def on_pairs(config: PairDPO, bench: Bench, method: Method) -> Sequence[Stage]:
    """Return the training stages of DPO on pairs of sampled answers, one stage for each round.

    The rejected answer of a pair is wrong. The preferred answer is correct or, if no sample is
    correct, an abstention (TruthRL, appendix A). The stages are called "dpo-1", "dpo-2", …, or
    "dpo" if there is only one round.

    Args:
        bench: gives the questions to sample, and the judge.
        method: the baseline. Its checks and reward grade the samples.
    """
    collect = _collector(config, bench, method)

    def stage(number: int) -> Stage:
        def pairs(job: Job) -> tuple[list[Pair], Card]:
            # each round of each run has its own seed
            seed = job.seed if config.rounds == 1 else job.seed * (config.rounds + 1) + number
            return truthrl_pairs(collect(job, seed), seed)

        name = "dpo" if config.rounds == 1 else f"dpo-{number}"
        # merged: each round except the last writes the full model from which the next one starts
        return offline_stage(config.dpo, pairs, merged=number < config.rounds, name=name)

    return [stage(number) for number in range(1, config.rounds + 1)]


def factscore() -> RewardFn:
    """Return the reward function of FactTune-FS (arXiv 2311.08401): the share of supported claims.

    Claims in the thinking do not count. If no claims are left, the reward is None.
    """

    @scored
    def share(feedback: Feedback, verdicts: Table) -> Reward:
        found = claims(feedback, lambda claim: claim.section != "think")
        if not found:
            raise unscored("no_claims", "the response has no claims, so its FActScore is undefined")
        value = fmean(supported(on_claim(verdicts, claim, "fact")) for claim in found)
        return Reward(value, {"facts": value}, (Event("facts", value),))

    return share


def on_fact_pairs(config: PairDPO, bench: Bench, method: Method) -> Sequence[Stage]:
    """Return the training stages of FactTune-FS: one stage, DPO on one pair per question.

    The preferred answer of a pair is the question's sample with the highest FActScore, and the
    rejected answer the sample with the lowest *(ours)*. If all scores are equal, there is no pair.
    The paper uses all pairs of samples with different scores.

    Raises:
        WorkbenchError: `rounds` is not 1, or there are fewer than two samples of each question.
    """
    if config.rounds != 1:
        raise WorkbenchError(
            f"rounds is {config.rounds}, but {method.title} has a single round: leave rounds out"
        )
    if config.drawn.samples < 2:
        raise WorkbenchError(
            f"samples is {config.drawn.samples}: set it to at least 2, because a preference pair"
            " needs two samples of a question"
        )
    collect = _collector(config, bench, method, answered=False)
    return [offline_stage(config.dpo, lambda job: best_worst(collect(job, job.seed), method.name))]


def _collector(
    config: SampleSFT | PairDPO, bench: Bench, method: Method, *, answered: bool = True
) -> Callable[[Job, int], list[Feedback]]:
    """Return a function (job, seed) -> graded samples of the policy from which the job starts.

    Args:
        answered: if True, sample only questions with gold answers.
    """
    check_values(config)
    drawn, questions = config.drawn, training_questions(config.prompts, bench, answered=answered)
    if drawn.questions is not None:
        questions = sample(questions, drawn.questions)  # the same in every run
    grade = method.grader(config, bench.checks)
    return lambda job, seed: collect_in_stage(
        job, questions, grade, drawn.sampling, drawn.samples, method=method.name, seed=seed
    )


def _baseline(
    name: str,
    title: str,
    config: Callable[..., Any],
    stages: Callable[..., Sequence[Stage]],
    **tiny: Any,
) -> Method:
    long = stages is on_fact_pairs
    method = Method(
        name,
        title,
        config,
        lambda config: factscore() if long else ternary(),
        lambda config: ("fact",) if long else ("outcome",),
        lambda config: ANSWER_SECTIONS if long else frozenset(),
        lambda config, bench: stages(config, bench, method),
        FACTS if long else {"outcome": PARTS["outcome"]},
        {"tiny": scaled(config(), **tiny)},
        lambda config: Training("dpo" if hasattr(config, "dpo") else "sft"),
    )
    return method


_EACH = (
    _baseline("sft_gold", "SFT on gold answers", GoldSFT, on_gold, sft=SFT),
    _baseline(
        "r_tuning",
        "R-Tuning",
        SampleSFT,
        on_samples,
        drawn=FEW,
        sft=SFT | {"learning_rate": 3.2e-3},
    ),
    _baseline("rft", "RFT", SampleSFT, on_samples, drawn=FEW, sft=SFT | {"learning_rate": 1.6e-3}),
    _baseline("dpo", "DPO", PairDPO, on_pairs, drawn=FEW, dpo=PREFERRED),
    _baseline(
        "iterative_dpo",
        "Iterative DPO",
        partial(PairDPO, rounds=5, drawn=ROUND),  # DPO, then 4 rounds from its checkpoint
        on_pairs,
        drawn=FEW,
        dpo=PREFERRED | {"learning_rate": 2e-4},
    ),
    _baseline(
        "fact_tune",
        "FactTune-FS",
        partial(PairDPO, prompts=LONG_PROMPTS, drawn=TEN),
        on_fact_pairs,
        prompts={"kinds": "biography", "eval_kinds": "biography"},
        drawn={**FEW, "samples": 8, "max_new_tokens": 64},
        dpo=PREFERRED,
    ),
)
BASELINES = {method.name: method for method in _EACH}
