"""Direct preference optimization (arXiv 2305.18290) on TRL's trainer with a LoRA adapter;
switched off, it is the reference.

A killed training goes on from its last complete checkpoint and ends with the weights of an
uninterrupted one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from workbench.config import setting
from workbench.train.models import Trainee
from workbench.train.offline import TokenizedRows, fit, on_rows
from workbench.train.rows import Card, Pair, check_rows, pair_ids
from workbench.train.settings import LoRA, Optim, Passes, Saving, check_passes, check_report_to
from workbench.train.stage import Job, Stage, Status
from workbench.train.trl_trainer import check_kept, quiet, ready

LOGGED = (
    "loss",
    "rewards/chosen",
    "rewards/rejected",
    "rewards/margins",
    "rewards/accuracies",
    "logps/chosen",
    "logps/rejected",
    "learning_rate",
    "grad_norm",
)


@dataclass(frozen=True)
class DPO:
    """Settings of DPO. Defaults: TruthRL's baselines' (arXiv 2509.25760, appendix), which does
    not state β.
    """

    beta: float = setting(
        0.1, "β: how much a log-ratio to the reference counts; of IPO its τ", above=0
    )
    loss_type: Literal["sigmoid", "ipo"] = setting(
        "sigmoid", "sigmoid: DPO's own; ipo: (Δ of the means by token − 1/2β)²"
    )
    passes: Passes = Passes()
    optim: Optim = Optim(learning_rate=3e-6)
    lora: LoRA = LoRA()
    saving: Saving = Saving(save_every=50)


def check(config: DPO) -> None:
    """Raise a WorkbenchError naming the field for settings that cannot work."""
    check_passes(config)
    check_report_to(config.saving)


def dpo_stage(
    config: DPO,
    make: Callable[[Job], tuple[Sequence[Pair], Card]],
    *,
    merged: bool = False,
    name: str = "dpo",
) -> Stage:
    """`train_dpo` as a stage on the pairs that `make` returns: see `on_rows`.

    Raises:
        WorkbenchError: settings that cannot work.
    """
    check(config)
    return on_rows(name, train_dpo, config, make, merged)


def train_dpo(
    config: DPO, rows: Sequence[Pair], policy: str, out: Path, *, seed: int, merged: bool = False
) -> Status:
    """Train `policy` on pairs in the folder `out`, continuing what is there; the result goes to
    `out/policy`.

    Args:
        policy: folder or hub name of the starting checkpoint, which is the reference, too.
        merged: leave a full checkpoint there, which another stage can start from, instead of an
        adapter.

    Returns:
        "done", or "interrupted" after Ctrl-C: then a checkpoint of the last finished step was
        written.

    Raises:
        WorkbenchError: settings or pairs that cannot work, no such policy, a folder begun with
        other pairs.
    """
    check(config)
    check_rows(rows)

    def length(row: Mapping[str, Any]) -> int:
        return len(row["prompt_ids"]) + max(len(row["chosen_ids"]), len(row["rejected_ids"]))

    return fit(config, rows, pair_ids, length, make_trainer, policy, out, seed=seed, merged=merged)


def make_trainer(
    config: DPO, trainee: Trainee, tokenized: TokenizedRows, out: Path, seed: int
) -> Any:
    """TRL's trainer with no setting but those of `config`, kept off the network."""
    from trl import DPOConfig, DPOTrainer

    class Trainer(quiet(DPOTrainer)):  # type: ignore[misc]
        def _prepare_dataset(self, dataset: Any, *args: Any, **kwargs: Any) -> Any:
            """The rows are token ids already."""
            return dataset

    def learnt(row: Mapping[str, Any]) -> int:
        return len(row["chosen_ids"]) + len(row["rejected_ids"])

    asked_for = dict(
        **tokenized.arguments(config, out, seed),
        beta=config.beta,
        loss_type=[config.loss_type],
    )
    trainer = Trainer(
        model=trainee.model,
        args=DPOConfig(**asked_for),
        train_dataset=tokenized.dataset(),
        processing_class=trainee.tokenizer,
        callbacks=[tokenized.callback(LOGGED, learnt)],
    )
    check_kept(trainer, asked_for)
    return ready(trainer)
