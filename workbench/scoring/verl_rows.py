"""What verl and the library hand each other, without verl: rows as questions, feedback as
rewards, rewards as advantages.

Shapes: B responses, T tokens of the longest. A response that could not be scored holds a NaN
among its token rewards, never a 0; a token on which events of 0 in all lie holds -0.0, so that
an estimator which asks where something was paid is told.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from workbench.credit.advantages import ESTIMATORS, Rewarded, rewarded
from workbench.credit.tensors import as_tensor
from workbench.scoring.trl import COLUMNS, Grader, asked, grader, stop_at
from workbench.training.recorder import reason, reward_of
from workbench.types import Checks, Feedback, Question, WorkbenchError
from workbench.verdicts.checks import local_checks, rule_checks
from workbench.verdicts.llm_judge import llm_judge

if TYPE_CHECKING:
    import torch

# of the estimators' names, and of what a reward manager tells beside the reward
PREFIX = "workbench_"
# estimators to which it matters on which token something was paid
BY_TOKEN = ("process", "rtg", "whiten")
BY_EVENT = ("process", "rtg")  # of these, those that ask which tokens were paid at all
NAMES = tuple(name for name in ESTIMATORS if name != "gae")  # verl has its own, with its critic
SETTINGS = ("recipe", "judge", "settings")
JUDGES = ("world", "rules", "local")


def row_of(question: Question, split: str = "train") -> dict[str, Any]:
    """A question as a row of verl's data sets, from which `question_of` reads it back."""
    known = {name: value for name in COLUMNS if (value := getattr(question, name, None))}
    passages = [{"title": passage.title, "text": passage.text} for passage in question.passages]
    lists = {name: list(known[name]) for name in ("answers", "checklist") if name in known}
    return {
        "data_source": "workbench",
        "prompt": question.messages(),
        "reward_model": {"style": "rule", "ground_truth": list(question.answers)},
        "extra_info": {
            **known,
            **lists,
            "question": question.text,
            "passages": passages,
            "split": split,
        },
    }


def question_of(row: Mapping[str, Any]) -> Question:
    """The question of a row as verl hands it to a reward manager: `extra_info` has the columns
    that a question may have, the gold answers may stand in `reward_model.ground_truth`
    (Search-R1's, under `target`), the prompt in `raw_prompt`.

    Raises:
        WorkbenchError: a column that is not what it has to be.
    """
    known = dict(_plain(row.get("extra_info")) or {})
    gold = (_plain(row.get("reward_model")) or {}).get("ground_truth")
    gold = gold.get("target") if isinstance(gold, Mapping) else gold
    # an "answer" of verl's own data sets is a whole solution
    if known.get("answers") is None and gold is not None:
        known["answers"] = gold
    return asked(_plain(row.get("raw_prompt")) or "", known)


def _plain(value: Any) -> Any:
    """Lists in the place of numpy's arrays, however deep they lie."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {name: _plain(one) for name, one in value.items()}
    return [_plain(one) for one in value] if isinstance(value, list | tuple) else value


def grader_of(given: Mapping[str, Any]) -> Grader:
    """The grader that `reward.reward_kwargs` of verl's config asks for: `recipe`, a method's
    name; `settings`, a list of "method.field=value"; `judge`, one of "world", "rules" and
    "local", or a mapping with `url`, `model` and maybe `store` and `cache` for a language model.

    Raises:
        WorkbenchError: no method or judge, one that there is not, or a judge that lacks one of
        the method's checks.
    """
    if unknown := [name for name in given if name not in SETTINGS]:
        raise WorkbenchError(
            f"reward.reward_kwargs has no '{unknown[0]}': it takes {', '.join(SETTINGS)}"
        )
    if missing := [name for name in SETTINGS[:2] if not given.get(name)]:
        raise WorkbenchError(
            f"reward.reward_kwargs.{missing[0]} is missing: name a method as recipe, and a judge"
        )
    return grader(given["recipe"], _judge(given["judge"]), list(given.get("settings") or ()))


def _judge(given: Any) -> str | Checks:
    if isinstance(given, Mapping):
        options = {name: given.get(name) for name in ("url", "model", "store", "cache")}
        if unknown := [name for name in given if name not in options]:
            raise WorkbenchError(
                f"reward.reward_kwargs.judge has no '{unknown[0]}': it takes {', '.join(options)}"
            )
        if judge := llm_judge(**options):
            return judge.checks()
    if given == "world":
        return "tiny"
    if given == "rules":
        return rule_checks(require_box=None)
    if given == "local":
        return local_checks()
    raise WorkbenchError(
        f"no judge '{given}': write one of {', '.join(JUDGES)}, or {{url: …, model: …}}"
    )


def told(feedback: Feedback, name: str) -> tuple[float | None, dict[str, Any]]:
    """What a reward manager returns of a response: its reward, None where it could not be
    scored, and what goes with it, under the same names for every response. Lists and mappings
    are JSON, which is what survives verl's batches."""
    value, paid = reward_of(feedback, name), rewarded(feedback, name)
    reward, tokens = feedback.rewards.get(name), None
    if paid.rewards is not None:
        zero = dict.fromkeys(paid.events, -0.0)  # an event of 0 is marked
        tokens = [one or zero.get(at, 0.0) for at, one in enumerate(paid.rewards)]
    return value, {
        f"{PREFIX}tokens": json.dumps(tokens),
        f"{PREFIX}parts": json.dumps({} if reward is None else dict(reward.parts)),
        f"{PREFIX}error": reason(feedback, name),
        f"{PREFIX}failed": float(value is None),
    }


def paid_tokens(info: Mapping[str, Any], count: int) -> list[float] | None:
    """The rewards of a response's `count` tokens, all NaN where it was not scored; None where no
    manager of ours paid it.
    """
    if f"{PREFIX}tokens" not in info:
        return None
    tokens = json.loads(info[f"{PREFIX}tokens"])
    assert tokens is None or len(tokens) == count, (len(tokens), count)
    return [math.nan] * count if tokens is None else tokens


def estimate(
    name: str,
    rewards_BT: torch.Tensor,
    mask_BT: torch.Tensor,
    index: Sequence[Any],
    config: Mapping[str, Any] | None,
) -> torch.Tensor:
    """Advantages of verl's batch, (B, T), by one of the library's estimators; `index` names each
    row's group.

    A row with a NaN was not scored: it is in no baseline, and its advantages are 0. One without
    tokens to learn from is verl's padding, and counts nowhere.

    Raises:
        TooManyFailures: more than `algorithm.max_failed` (0.2) of the batch's responses were not
        scored.
        WorkbenchError: the reward holds a KL penalty on every token, and the estimator asks
        which tokens were paid.
    """
    told = config or {}
    if name in BY_EVENT and told.get("use_kl_in_reward"):
        raise WorkbenchError(
            f"algorithm.use_kl_in_reward pays every token, and {PREFIX}{name} asks which were paid:"
            " use actor_rollout_ref.actor.use_kl_loss, or another algorithm.adv_estimator"
        )
    rows = [_row(rewards_T, mask_T) for rewards_T, mask_T in zip(rewards_BT, mask_BT, strict=True)]
    failed = int(rewards_BT.isnan().any(1).sum())
    scored = sum(row.rewards is not None for row in rows)
    why = ["their workbench_error says why"] * failed
    stop_at(told.get("max_failed", 0.2), why, failed + scored)
    groups: dict[Any, list[int]] = {}
    for place, group in enumerate(index):
        groups.setdefault(group, []).append(place)
    estimated = ESTIMATORS[name]([[rows[at] for at in places] for places in groups.values()])
    found: dict[int, tuple[float, ...]] = {}
    for places, advantages in zip(groups.values(), estimated, strict=True):
        found.update(zip(places, advantages, strict=True))
    return as_tensor([found[place] for place in range(len(rows))], mask_BT) * mask_BT


def _row(rewards_T: torch.Tensor, mask_T: torch.Tensor) -> Rewarded:
    """A row up to the last token that is learnt from."""
    own = mask_T.nonzero()
    length = int(own[-1]) + 1 if len(own) else 0
    rewards_T = rewards_T[:length]
    if not length or rewards_T.isnan().any():
        return Rewarded(length, None)
    marked = (rewards_T.signbit() & (rewards_T == 0)).nonzero().flatten().tolist()
    return Rewarded(length, tuple(rewards_T.tolist()), frozenset(marked))
