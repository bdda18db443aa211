"""Settings of Binary RAR (arXiv 2510.17733), with the defaults of the paper's code."""

from dataclasses import dataclass

from workbench.methods.method import Prompts
from workbench.training.grpo_config import GRPO
from workbench.training.settings import KL, LoRA, Optim, Sampling
from workbench.util.config import setting

# the values of the released code; those marked (ours) are not from it
PAPER = GRPO(
    steps=200,  # (ours)
    prompts_per_step=16,
    group_size=8,
    loss_type="dapo",  # the mean over all tokens of the batch
    micro_batch=2,  # (ours)
    generation_batch=32,  # (ours)
    optim=Optim(learning_rate=1e-5, schedule="linear", warmup=0.0),  # of the code's LoRA trainer
    sampling=Sampling(max_new_tokens=4096),
    kl=KL(beta=0.001),
    lora=LoRA(lora_r=32, lora_alpha=32),
)
PROMPTS = Prompts(system="")  # the question alone


@dataclass(frozen=True)
class BinaryRAR:
    """Settings of Binary RAR's reward and of its training."""

    truncated: bool = setting(
        False, "reward a truncated response like any other, instead of with 0"
    )  # off in the code
    prompts: Prompts = PROMPTS
    grpo: GRPO = PAPER
