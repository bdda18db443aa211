"""A small run as a process that can kill itself: python -m tests.helpers.grpo_run POLICY OUT [KIND
[WHEN]].
"""

import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from workbench.training.grpo import train_grpo
from workbench.training.grpo_config import GRPO
from workbench.training.loading import Trainee, load_trainee
from workbench.training.ppo import PPO, train_ppo
from workbench.training.recorder import RolloutRecorder
from workbench.types import (
    Failure,
    Feedback,
    Grade,
    JsonObject,
    Question,
    Response,
    Reward,
    Verdict,
)
from workbench.util.config import scaled

QUESTIONS = [
    Question(f"q{number}", f" Where is {name}", ("Rome",))
    for number, name in enumerate("Ada Bo Cy Di Ed Flo Gus Hal Ina Jo".split())
]
# A KL term and several batches per step, so that every part of a step must be resumed.
SMALL = {"steps": 6, "learning_rate": 1e-2, "lora_r": 4, "lora_alpha": 8, "save_every": 2}
SAMPLED = {"prompts_per_step": 4, "group_size": 4, "max_new_tokens": 6, "max_failed": 0.9}
CONFIG = scaled(GRPO(), **SMALL, **SAMPLED, beta=0.01, micro_batch=8, generation_batch=8)
SHORT = scaled(CONFIG, steps=2, micro_batch=None, generation_batch=None, save_every=1)
AS_PPO = scaled(
    PPO(), **SMALL, **SAMPLED, critic_learning_rate=1e-2, epochs=2, minibatch=8, micro_batch=4
)


def trainee_of(policy: str, **more: Any) -> Trainee:
    """Load the policy with a small adapter."""
    return load_trainee(policy, lora_r=4, lora_alpha=8, seed=1, **more)


def perturb(model: Any, std: float = 0.3) -> None:
    """Move the adapter away from the reference, for a nonzero KL."""
    for name, weight in model.named_parameters():
        if "lora_B" in name:
            weight.data.normal_(std=std)


def make_trainer(
    config: GRPO, trainee: Trainee, recorder: RolloutRecorder, out: Path, seed: int = 1
) -> Any:
    """Return the trainer of a run on `QUESTIONS`."""
    from workbench.training.grpo_step import RolloutTrainer

    return RolloutTrainer(config, trainee, recorder, QUESTIONS, out, seed)


def trainer_of(config: GRPO, policy: str, out: Path, grade: Grade) -> Any:
    """Return the trainer of a run, in training mode."""
    recorder = RolloutRecorder(out, "m", grade, steps=config.steps, done=0, max_failed=0.95)
    trainer = make_trainer(config, trainee_of(policy), recorder.__enter__(), out)
    trainer.model.train()
    return trainer


def batch_of(trainer: Any) -> JsonObject:
    """Sample and grade a batch."""
    return trainer._generate_and_score_completions(next(iter(trainer.get_train_dataloader())))


def grade(responses: Sequence[Response]) -> list[Feedback]:
    """An arbitrary verdict that depends on the text; about one response in eight fails."""
    return [_grade(response) for response in responses]


def _grade(response: Response) -> Feedback:
    points = sum(map(ord, response.text)) % 8
    if points == 0:
        failure = Failure("verify", "unreadable", "no verdict")
        return Feedback(
            response,
            verdicts=(Verdict("outcome", "answer", error=failure),),
            rewards={"m": Reward(None)},
        )
    label = "correct" if points < 4 else "uncertain" if points == 4 else "incorrect"
    value = {"correct": 1.0, "uncertain": 0.0, "incorrect": -1.0}[label]
    return Feedback(
        response, verdicts=(Verdict("outcome", "answer", label),), rewards={"m": Reward(value)}
    )


def grpo(config: GRPO, policy: str, out: Path, grade: Grade = grade) -> str:
    return train_grpo(config, QUESTIONS, grade, policy, out, method="m", seed=1)


def kill_when(moment: str) -> None:
    """Kill the process at one of four moments."""
    import shutil

    from workbench.training import recorder as journal

    def die(*_: Any, **__: Any) -> Any:
        os.kill(os.getpid(), signal.SIGKILL)

    if moment == "before the first checkpoint":
        journal.append_json = die
    elif moment == "in a checkpoint":
        mark = journal.mark_complete

        marked: list[Path] = []

        def mark_or_die(checkpoint: Path) -> None:
            marked.append(checkpoint)
            if len(marked) == 2:
                die()
            mark(checkpoint)

        journal.mark_complete = mark_or_die
    elif moment == "removing old checkpoints":
        shutil.rmtree = die  # type: ignore[assignment]
    elif moment == "in the final save":
        Path.rename = die  # type: ignore[method-assign]
    else:
        raise ValueError(moment)


def train(kind: str, policy: str, out: Path) -> str:
    """`kind`: "grpo", "again" (two updates per response), "ppo", "sft" or "reward_model"."""
    from tests.helpers.credit import by_token
    from tests.helpers.offline_run import EXAMPLES, JUDGED, MODELLED, TUNED
    from workbench.training.offline import train_offline
    from workbench.training.reward_model import train_reward_model

    if kind == "sft":
        return train_offline(TUNED, EXAMPLES, policy, out, seed=1)
    if kind == "reward_model":
        return train_reward_model(MODELLED, JUDGED, policy, out, seed=1)
    if kind == "grpo":
        return grpo(CONFIG, policy, out)
    if kind == "again":
        config = scaled(CONFIG, iterations=2, generation_batch=None, advantages="rtg")
        return grpo(config, policy, out, by_token)
    return train_ppo(AS_PPO, QUESTIONS, by_token, policy, out, method="m", seed=1)


def main(policy: str, out: str, kind: str = "grpo", moment: str = "") -> None:
    import torch

    torch.set_num_threads(1)
    if moment:
        kill_when(moment)
    Path(out).mkdir(exist_ok=True)
    print(train(kind, policy, Path(out)))


if __name__ == "__main__":
    main(*sys.argv[1:])
