"""The settings of FoRAG at the tiny bench *(ours)*: 1M parameters on two CPU cores.

One seed on the validation split chose the learning rates, batches and β of the reward model, of PPO
and of the baselines: see `benchmarks/README.md`. GRPO's were not tuned.
"""

from workbench.methods.forag.config import FoRAG
from workbench.methods.method import AT_ONCE, scaled
from workbench.types import TWO_FACETS
from workbench.world.schema import OUTLINE

LONGEST = 96  # *(ours)* tokens: planned answers have up to 75, plain ones fewer than 64
SHORT = {"steps": 25, "max_new_tokens": LONGEST, **AT_ONCE, "save_every": 5}
TINY = scaled(
    FoRAG(),
    prompts={"kinds": TWO_FACETS, "eval_kinds": TWO_FACETS, "eval_samples": 1},
    cold={"told": OUTLINE, "cold_samples": 4, "cold_questions": 200},
    sft={"learning_rate": 1e-3, "batch": 64, **AT_ONCE, "epochs": 3.0},
    drawn={"max_new_tokens": LONGEST},
    # Most samples are not factual, and all share the form: a full weight would unlearn the form.
    unlearn=0.01,
    reward_model={
        "learning_rate": 3e-3,
        "critic_learning_rate": 1e-2,
        "batch": 16,
        **AT_ONCE,
        "epochs": 3.0,
    },
    ppo={
        **SHORT,
        "prompts_per_step": 64,
        "learning_rate": 1e-3,
        "critic_learning_rate": 3e-2,
        "minibatch": 32,
        "value_clip": 50.0,
        "lam": 1.0,
        "beta": 0.05,
    },
    grpo={
        **SHORT,
        "prompts_per_step": 8,
        "learning_rate": 4e-4,
        "schedule": "linear",
        "warmup": 0.0,
        "beta": 0.0,
    },
    tuned={"learning_rate": 3e-3, "batch": 16, **AT_ONCE, "epochs": 2.0},
)
