"""KnowRL: facts rewarded inside the thinking, and a bonus for refusing (arXiv 2506.19807).

The paper: with GRPO and LoRA, R = r_format + r_correct + r_fact, where r_fact is the share of
the reasoning's atomic facts that retrieved passages support and a refusal earns +1.
R1-Distill-Qwen-7B on SimpleQA: incorrect 78.0 → 57.7 %, refused
40.7 %; with a refusal at -1 instead, refused 8.7 and incorrect 78.7 %. So what is gained is
abstention: 1.7 % are correct. Format and fact alone leave more errors (80.7 %) than format alone
(74.0 %).

The paper's objective has the ratio of whole trajectories, and an entropy bonus, of what weight
it does not say. Ours is TRL's, by token; theirs is `grpo.importance_sampling=trajectory` with
`grpo.entropy=WEIGHT`. At one update a batch both ratios are 1, and theirs differs in that a
response weighs by its length.

Our deviations: a hedged claim counts as supported when it is true. The released code pays r_fact
only where the answer is wrong, unlike the paper: that is `facts="if_wrong"`.
`facts="if_answered"` is ours: the paper pays a true trivium before a refusal, whatever was
asked. The cold start learns from the policy's own samples that have the form, a right answer or
a refusal and no wrong claim, instead of a stronger model's; the evidence is what the bench's
judge looks at.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Literal

from workbench.methods.bench import Bench
from workbench.methods.knowrl.reward import knowrl
from workbench.methods.method import AT_ONCE, Method, Prompts, Training, scaled, training_questions
from workbench.pipeline import THOUGHT
from workbench.training.collect import collect_in_stage
from workbench.training.grpo import grpo_stage
from workbench.training.grpo_config import GRPO
from workbench.training.offline import SFT, offline_stage
from workbench.training.pairs import cold_start_knowrl
from workbench.training.rows import Card, Example
from workbench.training.settings import KL, LoRA, Optim, Passes, Sampling
from workbench.training.stage import Job, Stage, order
from workbench.types import RewardFn
from workbench.util.config import check_values, setting
from workbench.world.schema import THINK

ASKED = Prompts(
    system=(
        "Think between <think> and </think> about what you know. Then give the final answer between"
        " <answer> and </answer>. If you do not know it, answer: I don't know."
    )
)
ADAPTER = LoRA(lora_r=128, lora_alpha=256)
COLD = SFT(Passes(batch=16, micro_batch=2), Optim(learning_rate=1e-4), ADAPTER)  # (ours)
PAPER = GRPO(
    steps=200,  # the best; 300 and more over-optimise
    prompts_per_step=8,  # 20 x 4 responses
    group_size=10,  # (code)
    loss_type="grpo",
    micro_batch=4,
    optim=Optim(learning_rate=1e-5),
    sampling=Sampling(max_new_tokens=1024),  # (code)
    kl=KL(beta=1e-3),
    lora=ADAPTER,
)


@dataclass(frozen=True)
class ColdStart:
    """The policy's own samples that a cold start picks from; 0 samples: none."""

    cold_samples: int = setting(8, "sampled responses a question", least=0)
    cold_questions: int = setting(1000, "questions that they answer", least=1)


@dataclass(frozen=True)
class KnowRL:
    """The reward's constants (paper, "Asymmetric correctness reward")."""

    form: float = setting(
        1.0, "plus this where the think and answer tags are right, minus this where not"
    )
    correct: float = setting(2.0, "paid for a correct answer")
    refusal: float = setting(1.0, "paid for a refusal; -1 is the paper's ablation")
    wrong: float = setting(-1.0, "paid for a wrong answer")
    facts: Literal["always", "if_wrong", "if_answered", "never"] = setting(
        "always",
        "pay for facts in the thinking always, only where the answer is wrong, only where it is no"
        " refusal, or never",
    )  # the paper; the code; (ours); an ablation
    length_penalty: bool = setting(
        False, "FActScore's penalty exp(1 - 10/M) on the facts of thoughts of M ≤ 10 claims"
    )  # (code, off)
    # (code, off)
    answer_tag: bool = setting(
        False, "an answer that is not in a closed, non-empty <answer> is wrong"
    )
    # (code, off)
    no_abstaining: bool = setting(False, "thinking that only abstains earns nothing for facts")
    prompts: Prompts = ASKED
    cold: ColdStart = ColdStart()
    sft: SFT = COLD
    grpo: GRPO = PAPER


def reward(config: KnowRL) -> RewardFn:
    """Feedback with the outcome and "fact" verdicts on the thinking's claims -> reward, paid at
    the end of the response.
    """
    check_values(config)
    return knowrl(
        form=config.form,
        correct=config.correct,
        refusal=config.refusal,
        wrong=config.wrong,
        facts=config.facts,
        length_penalty=config.length_penalty,
        answer_tag=config.answer_tag,
        no_abstaining=config.no_abstaining,
    )


def checks(config: KnowRL) -> tuple[str, ...]:
    return ("fact", "outcome")


def stages(config: KnowRL, bench: Bench) -> Sequence[Stage]:
    """A cold start on the policy's own samples in the form, then GRPO."""
    check_values(config)
    questions, grade = (
        training_questions(config.prompts, bench),
        METHOD.grader(config, bench.checks),
    )
    grpo = grpo_stage(config.grpo, lambda job: (questions, grade), METHOD.name)
    if not config.cold.cold_samples:
        return [grpo]

    def rows(job: Job) -> tuple[Sequence[Example], Card]:
        count = min(config.cold.cold_questions, len(questions))
        asked = [questions[number] for number in order(len(questions), count, job.seed)]
        sampling, samples = config.grpo.sampling, config.cold.cold_samples
        return cold_start_knowrl(
            collect_in_stage(job, asked, grade, sampling, samples, method=METHOD.name)
        )

    # the samples of the cold start are stored with their rewards
    cache_key = {**asdict(config), "grpo": asdict(config.grpo.sampling)}
    return [
        offline_stage(config.sft, rows, merged=True, name="cold_start", cache_key=cache_key),
        grpo,
    ]


def training(config: KnowRL) -> Training:
    return Training(idle=() if config.cold.cold_samples else {"sft", "cold.cold_questions"})


PARTS = {
    "format": ("format", "plus or minus, for the think and answer tags"),
    "correct": ("outcome", "for a correct, a refusing or a wrong final answer"),
    "fact": ("facts in the thinking", "share of the thinking's claims that the evidence supports"),
}
# *(ours)*, for 1M parameters on two CPU cores; chosen on the validation split, see
# benchmarks/README.md.
TINY = scaled(
    KnowRL(),
    prompts={"system": THINK},
    cold={"cold_samples": 4, "cold_questions": 200},
    sft={"learning_rate": 2e-4, "batch": 64, **AT_ONCE, "lora_r": 16, "lora_alpha": 32},
    grpo={
        "steps": 40,
        "learning_rate": 4e-4,
        "schedule": "linear",
        "warmup": 0.0,
        "prompts_per_step": 32,
        "group_size": 8,
        "beta": 0.0,
        "max_new_tokens": 40,
        "lora_r": 16,
        "lora_alpha": 32,
        **AT_ONCE,
        "save_every": 5,
    },
)
METHOD = Method(
    "knowrl",
    "KnowRL",
    KnowRL,
    reward,
    checks,
    lambda config: THOUGHT,
    stages,
    PARTS,
    {"tiny": TINY},
    training,
)
