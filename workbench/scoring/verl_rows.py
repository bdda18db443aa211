"""Convert between the data of verl and of this library, without importing verl.

Rows become questions, feedback becomes rewards, and rewards become advantages. Tensors have the
shape (B, T): B responses, T tokens of the longest response. An event is a part of the reward with a
position in the response. Token rewards have these special values:

* NaN on every token: the response could not be scored.
* 0.0: the token has no events.
* −0.0: the token has events, but they sum to 0. Some estimators need this distinction.
"""

import json
import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from workbench.credit.advantages import ESTIMATORS, Rewarded, rewarded
from workbench.credit.tensors import as_tensor
from workbench.scoring.trl import COLUMNS, JUDGES, UNSCORED, Grader, grader, question_from_row
from workbench.training.recorder import reason, reward_of
from workbench.types import Checks, Feedback, JsonMapping, JsonObject, Question, WorkbenchError
from workbench.util.failures import check_failed
from workbench.util.grouping import group_by
from workbench.verdicts.llm_judge import llm_judge

if TYPE_CHECKING:
    import torch

PREFIX = "workbench_"  # of the names of estimators and of the keys of `reward_info`
BY_TOKEN = ("process", "rtg", "whiten")  # estimators that use the reward of each token
BY_EVENT = ("process", "rtg")  # estimators that also use which tokens have events
NAMES = tuple(name for name in ESTIMATORS if name != "gae")  # verl has a GAE for its critic
SETTINGS = ("recipe", "judge", "settings")


def row_of(question: Question) -> JsonObject:
    """Return a question as a row of a verl data set. `question_of` converts the row back."""
    known = {name: value for name, value in asdict(question).items() if name in COLUMNS and value}
    return {
        "data_source": "workbench",
        "prompt": question.messages(),
        "reward_model": {"style": "rule", "ground_truth": list(question.answers)},
        "extra_info": {**known, "question": question.text, "split": "train"},
    }


def question_of(row: JsonMapping) -> Question:
    """Return the question in a row that verl passes to a reward manager.

    Columns such as `answers` and `passages` (see `question_from_row`) are read from `extra_info`.
    Gold answers may also be in `reward_model.ground_truth`, or in its field `target` as for
    Search-R1. The prompt is read from `raw_prompt`.

    Raises:
        WorkbenchError: a column has a value of another type.
    """
    known = dict(row.get("extra_info") or {})
    gold = (row.get("reward_model") or {}).get("ground_truth")
    # an "answer" of verl's own data sets is a whole solution
    if known.get("answers") is None and gold is not None:
        known["answers"] = gold
    return question_from_row(row.get("raw_prompt"), known)


def grader_of(kwargs: JsonMapping) -> Grader:
    """Return the grader that `reward.reward_kwargs` of verl's config describes.

    Args:
        kwargs: the mapping, with these keys.

            * `recipe`: a method's name.
            * `judge`: "world", "rules" or "local", or a mapping with the `url` of a server and its
              `model`. Optional keys: `store` (name of a passage index to search), `cache` (file for
              replies), `tokens` (maximum of a reply) and `options` (list of request fields
              "KEY=VALUE").
            * `settings`: a list of "method.field=value"; optional.

    Raises:
        WorkbenchError: the method or judge is missing or does not exist, or the judge cannot give a
            verdict that the method needs.
    """
    if unknown := [name for name in kwargs if name not in SETTINGS]:
        raise WorkbenchError(
            f"reward.reward_kwargs has no '{unknown[0]}': the keys are {', '.join(SETTINGS)}"
        )
    if missing := [name for name in SETTINGS[:2] if not kwargs.get(name)]:
        raise WorkbenchError(
            f"reward.reward_kwargs.{missing[0]} is missing: set recipe to a method's name, and"
            " judge to world, rules, local or a mapping with url and model"
        )
    return grader(kwargs["recipe"], _judge(kwargs["judge"]), list(kwargs.get("settings") or ()))


def _judge(judge: object) -> str | Checks:
    if isinstance(judge, Mapping):
        names = ("url", "model", "store", "cache", "options", "tokens")
        options = {name: judge.get(name) for name in names}
        if unknown := [name for name in judge if name not in options]:
            raise WorkbenchError(
                f"reward.reward_kwargs.judge has no '{unknown[0]}': the keys are"
                f" {', '.join(options)}"
            )
        if server := llm_judge(**options):
            return server.checks()
    if isinstance(judge, str) and judge in JUDGES:
        return judge
    raise WorkbenchError(
        f"no judge '{judge}': write one of {', '.join(JUDGES)}, or {{url: …, model: …}}"
    )


def reward_info(feedback: Feedback, name: str) -> tuple[float | None, JsonObject]:
    """Return the reward `name` of a response, and the extra info that verl stores with it.

    `name` is the method's name. The info has "workbench_tokens" (rewards per token) and
    "workbench_parts" (named parts of the reward), both as JSON texts, "workbench_error" (why there
    is no reward) and "workbench_failed" (0.0 or 1.0). If the response could not be scored, the
    reward is None.
    """
    value, row = reward_of(feedback, name), rewarded(feedback, name)
    reward, tokens = feedback.rewards.get(name), None
    if row.rewards is not None:
        zeros = dict.fromkeys(row.events, -0.0)  # marks a token whose events sum to 0
        tokens = [one or zeros.get(at, 0.0) for at, one in enumerate(row.rewards)]
    return value, {
        f"{PREFIX}tokens": json.dumps(tokens),
        f"{PREFIX}parts": json.dumps({} if reward is None else dict(reward.parts)),
        f"{PREFIX}error": reason(feedback, name),
        f"{PREFIX}failed": float(value is None),
    }


def token_rewards(info: JsonMapping, count: int) -> list[float] | None:
    """Return the rewards of a response's tokens, from the info that `reward_info` returned.

    All rewards are NaN if the response could not be scored. The result is None if the info comes
    from another reward manager.

    Args:
        info: the extra info that verl stored with the response.
        count: number of tokens of the response.
    """
    if f"{PREFIX}tokens" not in info:
        return None
    tokens = json.loads(info[f"{PREFIX}tokens"])
    assert tokens is None or len(tokens) == count, (len(tokens), count)
    return [math.nan] * count if tokens is None else tokens


def estimate(
    name: str,
    rewards_BT: "torch.Tensor",
    mask_BT: "torch.Tensor",
    index: Sequence[Hashable],
    config: JsonMapping | None,
) -> "torch.Tensor":
    """Return the advantages (B, T) of a verl batch, by an estimator of `workbench.credit`.

    Two kinds of rows get the advantage 0 and do not affect the other rows of their group:

    * responses that could not be scored: a reward is NaN
    * padding: the mask is 0 everywhere, and no reward is NaN

    Args:
        name: name of the estimator, one of `NAMES`, such as "group".
        rewards_BT: token rewards of B responses with up to T tokens.
        mask_BT: 1 for the tokens of the response, 0 for padding.
        index: the group of each row.
        config: verl's `algorithm` settings; None for the defaults.

    Raises:
        TooManyFailures: more than `algorithm.max_failed` (0.2) of the responses were not scored.
        WorkbenchError: `algorithm.use_kl_in_reward` is set for the estimator "process" or "rtg".
    """
    config = config or {}
    # with a KL penalty on every token, the tokens with events are not known
    if name in BY_EVENT and config.get("use_kl_in_reward"):
        raise WorkbenchError(
            f"algorithm.use_kl_in_reward adds a reward to every token, and {PREFIX}{name} needs the"
            " tokens with events: use actor_rollout_ref.actor.use_kl_loss, or another"
            " algorithm.adv_estimator"
        )
    rows = [_row(rewards_T, mask_T) for rewards_T, mask_T in zip(rewards_BT, mask_BT, strict=True)]
    failed = int(rewards_BT.isnan().any(1).sum())
    scored = sum(row.rewards is not None for row in rows)
    why = ["their workbench_error says why"] * failed
    check_failed(why, failed + scored, config.get("max_failed", 0.2), UNSCORED)
    groups = group_by(range(len(index)), lambda place: index[place])
    estimated = ESTIMATORS[name]([[rows[at] for at in places] for places in groups.values()])
    by_row: dict[int, tuple[float, ...]] = {}
    for places, advantages in zip(groups.values(), estimated, strict=True):
        by_row.update(zip(places, advantages, strict=True))
    return as_tensor([by_row[place] for place in range(len(rows))], mask_BT) * mask_BT


def _row(rewards_T: "torch.Tensor", mask_T: "torch.Tensor") -> Rewarded:
    """Return the token rewards of one response, up to its last token with mask 1.

    The rewards are None if the response was not scored or has no tokens.
    """
    own = mask_T.nonzero()
    length = int(own[-1]) + 1 if len(own) else 0
    rewards_T = rewards_T[:length]
    if not length or rewards_T.isnan().any():
        return Rewarded(length, None)
    marked = (rewards_T.signbit() & (rewards_T == 0)).nonzero().flatten().tolist()
    return Rewarded(length, tuple(rewards_T.tolist()), frozenset(marked))
