"""The library inside verl 0.9: a reward manager, an agent loop whose output is paid by token,
and advantage estimators.

Only verl imports this file, by the names that docs/verl.md gives it; it needs verl, and the rest
of the library does not.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from omegaconf import OmegaConf
from verl import DataProto
from verl.experimental.agent_loop.agent_loop import AgentLoopOutput
from verl.experimental.agent_loop.single_turn_agent_loop import SingleTurnAgentLoop
from verl.experimental.reward_loop.reward_manager.base import RewardManagerBase
from verl.trainer.ppo.core_algos import register_adv_est

from workbench.methods.bench import Bench
from workbench.policies.generate import as_response
from workbench.scoring.trl import Grader, grader
from workbench.scoring.verl_rows import (
    BY_TOKEN,
    NAMES,
    PREFIX,
    estimate,
    grader_of,
    paid_tokens,
    question_of,
    told,
)
from workbench.types import Checks, Feedback, Response, WorkbenchError

AGENT = "workbench"  # the agent loop's name in a config


class RewardManager(RewardManagerBase):
    """Pays a response by the method that `reward.reward_kwargs` names (`grader_of`), or by that
    of `reward_manager`.

    A response that could not be scored is no reward of 0. With an estimator of this file its
    reward is NaN, which the estimator leaves out and counts; with any other, `run_single`
    raises, and verl leaves the response out of its batch.
    """

    made: Grader | None = None

    def __init__(self, config: Any, tokenizer: Any, compute_score: Any = None, **_: Any) -> None:
        super().__init__(config, tokenizer, compute_score)
        self.ours = str(config.algorithm.adv_estimator).startswith(PREFIX)
        check_config(config)
        given = OmegaConf.to_container(
            config.reward.get("reward_kwargs") or OmegaConf.create(), resolve=True
        )
        self.grader = self.made or grader_of(given)
        self.waiting: list[tuple[Response, asyncio.Future[Feedback]]] = []
        self.lock = asyncio.Lock()

    async def run_single(self, data: DataProto) -> dict[str, Any]:
        response = self._response(data[-1])
        value, info = told(await self._graded(response), self.grader.name)
        if value is None:
            why = f"the response {response.id} could not be scored ({info[PREFIX + 'error']})"
            if not self.ours:
                raise WorkbenchError(
                    f"{why}: mend that, or take one of the estimators {PREFIX}…, which leave it out"
                )
            logging.getLogger(__name__).warning(why)
        return {"reward_score": math.nan if value is None else value, "reward_extra_info": info}

    def _response(self, item: Any) -> Response:
        """The sampled ids as a response: prompts may be padded on the left, responses on the
        right.
        """
        known, batch = item.non_tensor_batch, item.batch
        width, there = len(batch["prompts"]), batch["attention_mask"].bool()
        prompt = batch["prompts"][there[:width]].tolist()
        sampled = batch["responses"][there[width:]].tolist()
        question = self.grader.recognise(question_of(known))
        response = as_response(
            self.tokenizer, question, sampled, [self.tokenizer.eos_token_id], prompt_ids=prompt
        )
        group, sample = f"{question.id}/{known.get('uid', '')}", int(known.get("session_id", 0))
        return replace(response, id=f"{group}/{sample}", group=group, sample=sample)

    async def _graded(self, response: Response) -> Feedback:
        """Its feedback, graded together with all that wait for theirs: the judge is asked about
        them at once.
        """
        done: asyncio.Future[Feedback] = asyncio.get_running_loop().create_future()
        self.waiting.append((response, done))
        async with self.lock:
            if not done.done():
                batch, self.waiting = self.waiting, []
                try:
                    feedbacks = await asyncio.to_thread(
                        self.grader.grade, [response for response, _ in batch]
                    )
                except BaseException as error:  # whoever waits is told, of a cancellation too
                    for _, one in batch:
                        one.set_exception(error)
                else:
                    for (_, one), feedback in zip(batch, feedbacks, strict=True):
                        one.set_result(feedback)
        return await done


def reward_manager(
    recipe: Any, judge: str | Bench | Checks, *, settings: Sequence[str] = ()
) -> type[RewardManager]:
    """A class of reward managers over a judge made in Python, as in `trl_reward`: for a module
    of one's own, which `reward.reward_manager.module.path` then names."""
    return type("Manager", (RewardManager,), {"made": grader(recipe, judge, settings)})


def check_config(config: Any) -> None:
    """Raise a WorkbenchError where an estimator by token would find all rewards on the last
    token, where verl puts them.
    """
    name = str(config.algorithm.adv_estimator).removeprefix(PREFIX)
    agent = config.actor_rollout_ref.rollout.agent.default_agent_loop
    if PREFIX + name == config.algorithm.adv_estimator and name in BY_TOKEN:
        if agent != AGENT:
            raise WorkbenchError(
                f"{PREFIX}{name} needs rewards by token, and"
                f" actor_rollout_ref.rollout.agent.default_agent_loop is '{agent}': set it to"
                f" {AGENT}, or take {PREFIX}group"
            )
        if not config.trainer.use_v1:
            raise WorkbenchError(
                "verl's older trainer takes no rewards by token: set trainer.use_v1=true, or take"
                f" {PREFIX}group"
            )


class PaidByToken(AgentLoopOutput):
    """A rollout with the rewards of its tokens where verl has the whole reward on the last one.

    One that was not scored is NaN all over, and nothing is learnt from it: its mask is that of
    verl's own padding.
    """

    def as_dict(self) -> dict[str, Any]:
        output = super().as_dict()
        tokens = paid_tokens(
            self.extra_fields.get("reward_extra_info") or {}, len(self.response_ids)
        )
        if tokens is not None:
            output["rm_scores"] = torch.tensor(tokens, dtype=torch.float32)
            if any(map(math.isnan, tokens)):
                output["response_mask"] = torch.zeros_like(output["response_mask"])
        return output


class AgentLoop(SingleTurnAgentLoop):
    """verl's agent loop of one turn, paid by token."""

    async def run(self, sampling_params: dict[str, Any], **kwargs: Any) -> PaidByToken:
        output = await super().run(sampling_params, **kwargs)
        return PaidByToken.model_construct(output.model_fields_set, **dict(output))


def _advantages(
    name: str,
    token_level_rewards: torch.Tensor,
    response_mask: torch.Tensor,
    index: Any = None,
    config: Any = None,
    **_: Any,
) -> tuple[torch.Tensor, torch.Tensor]:
    advantages_BT = estimate(name, token_level_rewards, response_mask, index, config)
    return advantages_BT, advantages_BT


for name in NAMES:
    register_adv_est(PREFIX + name)(partial(_advantages, name))
