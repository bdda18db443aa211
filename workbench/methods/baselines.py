r"""What TruthRL (arXiv 2509.25760, table 1 and appendix) is compared with: supervised and
preference training.

The paper, CRAG with retrieval, truthfulness / hallucination: prompting 5.3 / 43.5, SFT on gold
answers 1.4 / 49.3, RFT −3.7 / 48.8, R-Tuning 15.2 / 33.1, DPO 6.8 / 43.7, iterative DPO in four
rounds 12.9, 16.3, 28.0, 19.0, the ternary reward 37.2 / 19.4.

Our deviations: an adapter instead of all parameters; the samples that a baseline learns from
decide what is out of knowledge, instead of 256 others; gold answers are learnt as a sentence, or
in `\boxed{}` where the prompt asks for that. The paper does not say how many samples DPO's pairs
are made of. Samples have TruthRL's reward, which no rule here reads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from workbench.data import sample
from workbench.methods.bench import Bench
from workbench.methods.method import AT_ONCE, Method, Prompts, Training, scaled, training_questions
from workbench.methods.truthrl.reward import ternary
from workbench.training.collect import collect_in_stage
from workbench.training.offline import DPO, SFT, offline_stage
from workbench.training.pairs import boxed, gold, plain, r_tuning, rft, truthrl_pairs
from workbench.training.settings import Passes, Samples, Sampling
from workbench.training.stage import Job, Stage
from workbench.types import Feedback, Grade, Question, WorkbenchError
from workbench.util.config import check_values, setting

# these fit one 80 GB GPU, by `workbench plan`
BY_SFT = SFT(Passes(batch=16, micro_batch=2))
BY_DPO = DPO(passes=Passes(micro_batch=1))
PROMPTS = Prompts()
# appendix: 64, at temperature .6 and top-p .9, for RFT
DRAWN = Samples(samples=64, sampling=Sampling(0.6, 0.9, 2048))
A_ROUND = Samples(sampling=Sampling(max_new_tokens=256))


@dataclass(frozen=True)
class OnGold:
    """SFT on gold answers."""

    prompts: Prompts = PROMPTS
    sft: SFT = BY_SFT


@dataclass(frozen=True)
class OnSamples:
    """SFT on rows that the policy's own answers decide on."""

    prompts: Prompts = PROMPTS
    drawn: Samples = DRAWN
    sft: SFT = BY_SFT


@dataclass(frozen=True)
class OnPairs:
    """DPO on pairs of the policy's own answers; in several rounds (table 1: 4), each round's
    pairs are sampled from the policy of the round before, which is its reference *(ours)*."""

    rounds: int = setting(
        1, "rounds of sampling, pairing and DPO", least=1, trains=True, was="rounds.rounds"
    )
    prompts: Prompts = PROMPTS
    drawn: Samples = setting(DRAWN, was="rounds")
    dpo: DPO = setting(BY_DPO, was="rounds.dpo")  # noqa: RUF009


def phrase(question: Question, answer: str) -> str:
    r"""An answer as the prompt asks for it: in `\boxed{}`, or as a sentence."""
    return (boxed if r"\boxed" in question.system else plain)(question, answer)


def on_gold(config: OnGold, bench: Bench) -> Sequence[Stage]:
    questions = training_questions(config.prompts, bench)
    return [offline_stage(config.sft, lambda job: gold(questions, phrase))]


def on_samples(name: str, rule: Callable[..., Any]) -> Callable[..., Sequence[Stage]]:
    """SFT on the rows that `rule` makes of samples and the run's seed."""

    def stages(config: OnSamples, bench: Bench) -> Sequence[Stage]:
        draw = drawing(name, config, bench)
        return [offline_stage(config.sft, lambda job: rule(draw(job, job.seed), seed=job.seed))]

    return stages


def on_pairs(name: str) -> Callable[..., Sequence[Stage]]:
    """DPO on TruthRL's pairs; several rounds are stages "dpo-1", "dpo-2", …, of which all but the
    last leave a full checkpoint, which the next one starts from."""

    def stages(config: OnPairs, bench: Bench) -> Sequence[Stage]:
        if config.drawn.samples < 2 and config.rounds > 1:
            raise WorkbenchError(f"samples is {config.drawn.samples}: a pair takes at least 2")
        draw = drawing(name, config, bench)

        def pairs(job: Job, seed: int) -> Any:
            return truthrl_pairs(draw(job, seed), phrase, seed=seed)

        if config.rounds == 1:
            return [offline_stage(config.dpo, lambda job: pairs(job, job.seed))]

        def stage(number: int) -> Stage:
            return offline_stage(
                config.dpo,
                # no two rounds of any run have the same seed
                lambda job: pairs(job, job.seed * (config.rounds + 1) + number),
                merged=number < config.rounds,
                name=f"dpo-{number}",
            )

        return [stage(number) for number in range(1, config.rounds + 1)]

    return stages


def drawing(name: str, config: Any, bench: Bench) -> Callable[[Job, int], list[Feedback]]:
    """Job and seed -> graded samples of the policy that the job starts from, in its folder."""
    check_values(config)
    drawn: Samples = config.drawn
    questions = training_questions(config.prompts, bench)
    if drawn.questions is not None:
        questions = sample(questions, drawn.questions)  # the same in every run
    grade: Grade = BASELINES[name].grader(config, bench.checks)

    return lambda job, seed: collect_in_stage(
        job, questions, grade, drawn.sampling, drawn.samples, method=name, seed=seed
    )


PARTS = {"outcome": ("outcome", "for a correct, an abstaining or an incorrect final answer")}
# *(ours)*, for 1M parameters on two CPU cores, and not tuned.
ADAPTER: dict[str, Any] = {**AT_ONCE, "save_every": 10}
FEW = {"questions": 512, "samples": 16, "temperature": 1.0, "top_p": 1.0, "max_new_tokens": 12}
TUNED = {**ADAPTER, "batch": 64, "learning_rate": 2e-4}
PREFERRED = {**ADAPTER, "batch": 32, "learning_rate": 1e-4}


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
        lambda config: Training(trainer),
    )


_EACH = (
    _baseline("sft_gold", "SFT on gold answers", OnGold, on_gold, "sft", sft=TUNED),
    _baseline(
        "r_tuning",
        "R-Tuning",
        OnSamples,
        on_samples("r_tuning", lambda feedbacks, seed: r_tuning(feedbacks, phrase)),
        "sft",
        drawn=FEW,
        sft=TUNED,
    ),
    _baseline("rft", "RFT", OnSamples, on_samples("rft", rft), "sft", drawn=FEW, sft=TUNED),
    _baseline("dpo", "DPO", OnPairs, on_pairs("dpo"), "dpo", drawn=FEW, dpo=PREFERRED),
    _baseline(
        "iterative_dpo",
        "Iterative DPO",
        partial(OnPairs, rounds=4, drawn=A_ROUND),
        on_pairs("iterative_dpo"),
        "dpo",
        drawn=FEW,
        dpo=PREFERRED,
    ),
)
BASELINES: dict[str, Method] = {method.name: method for method in _EACH}
