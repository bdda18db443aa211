"""Components for verl 0.9: a reward manager, an agent loop and advantage estimators.

The agent loop gives rewards per token. verl loads this file by name, as docs/verl.md describes. No
other module imports it, because it needs the package verl.
"""

import asyncio
import logging
import math
from collections.abc import Hashable, Sequence
from dataclasses import replace
from functools import partial

import torch
from omegaconf import DictConfig, OmegaConf
from transformers import PreTrainedTokenizerBase
from verl import DataProto
from verl.experimental.agent_loop.agent_loop import AgentLoopOutput
from verl.experimental.agent_loop.single_turn_agent_loop import SingleTurnAgentLoop
from verl.experimental.reward_loop.reward_manager.base import RewardManagerBase
from verl.protocol import DataProtoItem
from verl.trainer.ppo.core_algos import register_adv_est

from workbench.methods.bench import Bench
from workbench.methods.method import MethodConfig
from workbench.policies.generate import as_response
from workbench.scoring.trl import Grader, grader
from workbench.scoring.verl_rows import (
    BY_TOKEN,
    NAMES,
    PREFIX,
    estimate,
    grader_of,
    question_of,
    reward_info,
    token_rewards,
)
from workbench.types import Checks, Feedback, JsonMapping, JsonObject, Response, WorkbenchError

AGENT = "workbench"  # the agent loop's name in a config


class RewardManager(RewardManagerBase):
    """A verl reward manager that computes the rewards of one method.

    The method and the judge are read from the config's `reward.reward_kwargs` (see `grader_of`). To
    set them in Python instead, use the function `reward_manager`.

    If `algorithm.adv_estimator` begins with "workbench_", a response that could not be scored gets
    the reward NaN, and the estimator ignores it. With any other estimator, `run_single` raises an
    error for such a response, and verl leaves it out of the batch.
    """

    made: Grader | None = None

    def __init__(
        self,
        config: DictConfig,
        tokenizer: PreTrainedTokenizerBase,
        compute_score: object = None,
        **_: object,
    ) -> None:
        super().__init__(config, tokenizer, compute_score)
        self.ours = str(config.algorithm.adv_estimator).startswith(PREFIX)
        check_config(config)
        kwargs = OmegaConf.to_container(
            config.reward.get("reward_kwargs") or OmegaConf.create(), resolve=True
        )
        self.grader = self.made or grader_of(kwargs)
        self.waiting: list[tuple[Response, asyncio.Future[Feedback]]] = []
        self.lock = asyncio.Lock()

    async def run_single(self, data: DataProto) -> JsonObject:
        response = self._response(data[-1])
        value, info = reward_info(await self._graded(response), self.grader.name)
        if value is None:
            why = f"the response {response.id} could not be scored ({info[PREFIX + 'error']})"
            if not self.ours:
                raise WorkbenchError(
                    f"{why}: fix the cause, or set algorithm.adv_estimator to a {PREFIX}…"
                    " estimator, which ignores such responses"
                )
            logging.getLogger(__name__).warning(why)
        return {"reward_score": math.nan if value is None else value, "reward_extra_info": info}

    def _response(self, item: DataProtoItem) -> Response:
        """Convert a rollout of verl to a `Response`, from its sampled ids without padding.

        Prompts may be padded on the left, responses on the right.
        """
        row, batch = item.non_tensor_batch, item.batch
        width, mask = len(batch["prompts"]), batch["attention_mask"].bool()
        prompt = batch["prompts"][mask[:width]].tolist()
        sampled = batch["responses"][mask[width:]].tolist()
        question = self.grader.recognise(question_of(row))
        response = as_response(
            self.tokenizer, question, sampled, [self.tokenizer.eos_token_id], prompt_ids=prompt
        )
        group, sample = f"{question.id}/{row.get('uid', '')}", int(row.get("session_id", 0))
        return replace(response, id=f"{group}/{sample}", group=group, sample=sample)

    async def _graded(self, response: Response) -> Feedback:
        """Return the feedback of a response. All waiting responses are graded in one batch."""
        done: asyncio.Future[Feedback] = asyncio.get_running_loop().create_future()
        self.waiting.append((response, done))
        async with self.lock:
            if not done.done():
                batch, self.waiting = self.waiting, []
                try:
                    feedbacks = await asyncio.to_thread(
                        self.grader.grade, [response for response, _ in batch]
                    )
                except BaseException as error:  # a cancellation too: the others wait for a result
                    for _, one in batch:
                        one.set_exception(error)
                else:
                    for (_, one), feedback in zip(batch, feedbacks, strict=True):
                        one.set_result(feedback)
        return await done


def reward_manager(
    recipe: str | MethodConfig, judge: str | Bench | Checks, *, settings: Sequence[str] = ()
) -> type[RewardManager]:
    """Return a reward manager class for a method and a judge.

    verl loads the class by name: assign it to a variable in a module of your own, and name that
    module in `reward.reward_manager.module.path`.

    Args:
        recipe: a method's name or config.
        judge: "local", "rules", "world", `Checks`, or a bench or its name (as for `grader`).
        settings: changes of the method's settings, such as "rlfh.alpha=2".
    """
    return type("Manager", (RewardManager,), {"made": grader(recipe, judge, settings)})


def check_config(config: DictConfig) -> None:
    """Check that verl passes rewards per token to an advantage estimator that needs them.

    The estimators "workbench_process", "workbench_rtg" and "workbench_whiten" need them. Only the
    agent loop "workbench" gives them. verl's own agent loop puts the whole reward on the last
    token.

    Raises:
        WorkbenchError: the config has one of these estimators, but another agent loop, or verl's
            older trainer (`trainer.use_v1=false`).
    """
    name = str(config.algorithm.adv_estimator).removeprefix(PREFIX)
    agent = config.actor_rollout_ref.rollout.agent.default_agent_loop
    if PREFIX + name == config.algorithm.adv_estimator and name in BY_TOKEN:
        if agent != AGENT:
            raise WorkbenchError(
                f"algorithm.adv_estimator={PREFIX}{name} needs rewards per token, which the agent"
                f" loop '{agent}' does not give: set"
                f" actor_rollout_ref.rollout.agent.default_agent_loop={AGENT}, or"
                f" algorithm.adv_estimator={PREFIX}group"
            )
        if not config.trainer.use_v1:
            raise WorkbenchError(
                "verl's older trainer takes no rewards per token: set trainer.use_v1=true, or"
                f" algorithm.adv_estimator={PREFIX}group"
            )


class TokenRewardOutput(AgentLoopOutput):
    """A rollout with rewards per token instead of one reward on the last token.

    An unscored rollout has NaN on every token. Its response mask is 0 everywhere, so that the
    rollout adds nothing to the loss.
    """

    def as_dict(self) -> JsonObject:
        output = super().as_dict()
        tokens = token_rewards(
            self.extra_fields.get("reward_extra_info") or {}, len(self.response_ids)
        )
        if tokens is not None:
            output["rm_scores"] = torch.tensor(tokens, dtype=torch.float32)
            if any(map(math.isnan, tokens)):
                output["response_mask"] = torch.zeros_like(output["response_mask"])
        return output


class AgentLoop(SingleTurnAgentLoop):
    """verl's agent loop for one turn, with rewards per token."""

    async def run(self, sampling_params: JsonObject, **kwargs: object) -> TokenRewardOutput:
        output = await super().run(sampling_params, **kwargs)
        return TokenRewardOutput.model_construct(output.model_fields_set, **dict(output))


def _advantages(
    name: str,
    token_level_rewards: torch.Tensor,
    response_mask: torch.Tensor,
    index: Sequence[Hashable] = (),
    config: JsonMapping | None = None,
    **_: object,
) -> tuple[torch.Tensor, torch.Tensor]:
    advantages_BT = estimate(name, token_level_rewards, response_mask, index, config)
    return advantages_BT, advantages_BT


for name in NAMES:
    register_adv_est(PREFIX + name)(partial(_advantages, name))
