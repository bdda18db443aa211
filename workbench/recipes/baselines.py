r"""What TruthRL (arXiv 2509.25760, table 1 and appendix) is compared with: supervised and
preference training.

The paper, CRAG with retrieval, truthfulness / hallucination: prompting 5.3 / 43.5, SFT on gold
answers 1.4 / 49.3, RFT −3.7 /
48.8, R-Tuning 15.2 / 33.1, DPO 6.8 / 43.7, iterative DPO in four rounds 12.9, 16.3, 28.0, 19.0,
the ternary reward 37.2 / 19.4.

Our deviations: an adapter instead of all parameters; what is out of knowledge is told by the
samples that a baseline learns from, instead of by 256 of their own; gold answers are said as a
sentence, or in `\boxed{}` where the prompt asks for that. How many samples DPO's pairs are made
of the paper does not say. Samples are paid as TruthRL pays, which no rule here looks at.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from workbench.bench import Bench
from workbench.config import check_numbers, check_values, setting
from workbench.data import sample
from workbench.generate import Sampling
from workbench.recipes.method import AT_ONCE, Asking, Method, Prompts, scaled, training_questions
from workbench.reward import ternary
from workbench.train.collect import SAMPLES, collect
from workbench.train.dpo import DPO, dpo_stage
from workbench.train.pairs import boxed, gold, plain, r_tuning, rft, truthrl_pairs
from workbench.train.rounds import Rounds, dpo_rounds
from workbench.train.sft import SFT, sft_stage
from workbench.train.stage import Job, Stage
from workbench.types import Feedback, Grade, Question

ASKED, BY_SFT, BY_DPO, BY_ROUNDS = Prompts(), SFT(micro_batch=2), DPO(micro_batch=1), Rounds()
# these fit one 80 GB GPU, by `workbench plan`
BY_ROUNDS = replace(BY_ROUNDS, dpo=replace(BY_ROUNDS.dpo, micro_batch=1))


@dataclass(frozen=True)
class Samples:
    """The policy's own answers that rows are made of (appendix: 64, at temperature .6 and top-p
    .9, for RFT).
    """

    questions: int | None = setting(None, "training questions that are sampled; none: all")
    samples: int = setting(64, "sampled responses a question")
    temperature: float = setting(0.6, "at which they are sampled")
    top_p: float = setting(0.9, "nucleus that they are sampled from")
    max_new_tokens: int = setting(2048, "tokens at which one is cut off")
    max_failed: float = setting(
        0.2, "share of ungraded samples in a chunk above which the run stops"
    )


DRAWN = Samples()


@dataclass(frozen=True)
class OnGold:
    """SFT on gold answers."""

    prompts: Prompts = ASKED
    sft: SFT = BY_SFT


@dataclass(frozen=True)
class OnSamples:
    """SFT on rows that the policy's own answers decide on."""

    prompts: Prompts = ASKED
    drawn: Samples = DRAWN
    sft: SFT = BY_SFT


@dataclass(frozen=True)
class OnPairs:
    """DPO on pairs of the policy's own answers."""

    prompts: Prompts = ASKED
    drawn: Samples = DRAWN
    dpo: DPO = BY_DPO


@dataclass(frozen=True)
class InRounds:
    """Iterative DPO."""

    questions: int | None = setting(
        None, "training questions that every round samples; none: all", trains=True
    )
    prompts: Prompts = ASKED
    rounds: Rounds = BY_ROUNDS


def phrase(question: Question, answer: str) -> str:
    r"""An answer as the prompt asks for it: in `\boxed{}`, or as a sentence."""
    return (boxed if r"\boxed" in question.system else plain)(question, answer)


def asked(prompts: Prompts, bench: Bench, count: int | None) -> list[Question]:
    """The training questions, or `count` of them, the same in every run."""
    questions = training_questions(prompts, bench)
    return questions if count is None else sample(questions, count)


def sampled(
    config: Samples, questions: Sequence[Question], grade: Grade, method: str, job: Job
) -> list[Feedback]:
    how = Sampling(
        config.max_new_tokens,
        samples=config.samples,
        temperature=config.temperature,
        top_p=config.top_p,
        seed=job.seed,
    )
    return collect(
        job.start,
        questions,
        grade,
        job.out / SAMPLES,
        how,
        method=method,
        max_failed=config.max_failed,
    )


def from_samples(
    name: str, rule: Callable[..., Any], stage: Callable[..., Stage], trainer: str
) -> Callable[..., Sequence[Stage]]:
    """Stages that sample, make rows by `rule`, told the run's seed, and train on these with the
    config's part `trainer`.
    """

    def stages(config: Any, bench: Bench) -> Sequence[Stage]:
        check_values(config)
        check_numbers(
            config.drawn,
            {"questions": 1, "samples": 1, "max_new_tokens": 1},
            positive=("temperature", "top_p"),
            shares=("top_p", "max_failed"),
        )
        questions = asked(config.prompts, bench, config.drawn.questions)
        grade = BASELINES[name].grader(config, bench.checks)

        def rows(job: Job) -> Any:
            return rule(sampled(config.drawn, questions, grade, name, job), seed=job.seed)

        return [stage(getattr(config, trainer), rows)]

    return stages


def settled(feedbacks: Sequence[Feedback], seed: int) -> Any:
    """R-Tuning's rows, none of which is drawn."""
    return r_tuning(feedbacks, phrase)


def on_gold(config: OnGold, bench: Bench) -> Sequence[Stage]:
    questions = training_questions(config.prompts, bench)
    return [sft_stage(config.sft, lambda job: gold(questions, phrase))]


def in_rounds(config: InRounds, bench: Bench) -> Sequence[Stage]:
    """Every round's pairs come from the policy of the one before, by TruthRL's rule."""

    def rule(feedbacks: Sequence[Feedback], seed: int) -> Any:
        return truthrl_pairs(feedbacks, phrase, seed=seed)

    check_numbers(config, {"questions": 1})
    grade = BASELINES["iterative_dpo"].grader(config, bench.checks)
    return dpo_rounds(
        config.rounds, asked(config.prompts, bench, config.questions), grade, "iterative_dpo", rule
    )


def asking(config: Any) -> Sequence[Asking]:
    """The outcomes of the samples that rows are made of; gold answers are learnt from without
    any.
    """
    if isinstance(config, InRounds):
        each, drawn, questions = config.rounds.rounds, config.rounds, config.questions
    elif isinstance(config, OnGold):
        return []
    else:
        each, drawn, questions = 1, config.drawn, config.drawn.questions
    return [Asking("samples", ("outcome",), drawn.max_new_tokens, each * drawn.samples, questions)]


PARTS = {"outcome": ("outcome", "for a correct, an abstaining or an incorrect final answer")}
# *(ours)*, for 1M parameters on two CPU cores, and not tuned.
ADAPTER: dict[str, Any] = {"lora_r": 16, "lora_alpha": 32, **AT_ONCE, "save_every": 10}
FEW = {"questions": 512, "samples": 16, "temperature": 1.0, "top_p": 1.0, "max_new_tokens": 12}
TUNED, PREFERRED = (
    {**ADAPTER, "batch": 64, "learning_rate": 2e-4},
    {**ADAPTER, "batch": 32, "learning_rate": 1e-4},
)


def _baseline(
    name: str,
    title: str,
    config: Callable[..., Any],
    stages: Callable[..., Sequence[Stage]],
    trainer: str,
    **tiny: Any,
) -> Method:
    return Method(
        name,
        title,
        config,
        lambda config: ternary(),
        lambda config: ("outcome",),
        lambda config: frozenset(),
        stages,
        PARTS,
        {"tiny": scaled(config(), **tiny)},
        trainer=lambda config: trainer,
        asking=asking,
    )


_EACH = (
    _baseline("sft_gold", "SFT on gold answers", OnGold, on_gold, "sft", sft=TUNED),
    _baseline(
        "r_tuning", "R-Tuning", OnSamples, from_samples("r_tuning", settled, sft_stage, "sft"), "sft",
        drawn=FEW, sft=TUNED,
    ),
    _baseline("rft", "RFT", OnSamples, from_samples("rft", rft, sft_stage, "sft"), "sft", drawn=FEW, sft=TUNED),
    _baseline(
        "dpo", "DPO", OnPairs, from_samples("dpo", partial(truthrl_pairs, phrase=phrase), dpo_stage, "dpo"), "dpo",
        drawn=FEW, dpo=PREFERRED,
    ),
    _baseline(
        "iterative_dpo", "Iterative DPO", InRounds, in_rounds, "rounds.dpo", questions=512,
        rounds={"samples": 16, "max_new_tokens": 12, "dpo": replace(BY_DPO, **PREFERRED)},
    ),
)  # fmt: skip
BASELINES: dict[str, Method] = {method.name: method for method in _EACH}
