"""Questions -> responses, by one signature whatever runs the model: an engine completes prompts,
the rest is the same for all.

`hf` is the engine of transformers, `vllm` that of vLLM. An engine is a function of token ids and
`Sampling`, bound into a `Policy` where that is loaded (`workbench.policies.load`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from workbench.credit.tokens import offsets_from_ids, prefill
from workbench.types import Question, Response, WorkbenchError

# sampled ids, the end token included, and their log-probabilities or ()
Completion = tuple[list[int], tuple[float, ...]]


@dataclass(frozen=True)
class Sampling:
    """How responses are drawn. `logprobs` asks for each sampled token's log-probability under
    the policy at temperature 1.

    `batch_size` is how many are computed at once, by default as many as suit the model. `seeds`,
    one for each question, stand in the place of `seed`: what is sampled for a question then is
    the same whatever is asked beside it. `rows`, one for each prompt, stand for its place where
    this is a part of a batch: which row of the whole's random numbers it is drawn by.
    """

    max_new_tokens: int
    samples: int = 1
    greedy: bool = False
    temperature: float = 1.0
    top_p: float = 1.0
    seed: int = 0
    batch_size: int | None = None
    logprobs: bool = False
    seeds: tuple[int, ...] = ()
    rows: tuple[int, ...] = ()


@dataclass(frozen=True)
class Policy:
    """A loaded policy: its tokenizer, the ids that end a response, and the engine that completes
    prompts.

    `model` is the model in memory, for what looks inside it; None where an engine of its own
    holds it. `positions` is how many tokens prompt and response may have together; None where
    the model does not say.
    """

    name: str
    tokenizer: Any
    stop_ids: tuple[int, ...]
    # prompts, stop ids, sampling
    complete: Callable[[list[list[int]], Sequence[int], Sampling], list[Completion]]
    model: Any = None
    positions: int | None = None


def prompt_ids(tokenizer: Any, questions: Sequence[Question]) -> list[list[int]]:
    """The token ids each question is prompted with, its generation prompt included."""
    conversations = [question.messages() for question in questions]
    if not conversations:
        return []
    encoded = tokenizer.apply_chat_template(
        conversations, add_generation_prompt=True, tokenize=True, return_dict=True
    )
    return [list(ids) for ids in encoded["input_ids"]]


def generate(
    policy: Policy, questions: Sequence[Question], *, step: int | None = None, **sampling: Any
) -> list[Response]:
    """Answer every question as `Sampling(**sampling)` says; responses come question by question,
    sample by sample.

    The result depends on the arguments alone.

    Raises:
        WorkbenchError: several greedy samples, which would all be the same; no room for a token.
    """
    how = Sampling(**sampling)
    if how.max_new_tokens < 1:
        raise WorkbenchError(f"max_new_tokens is {how.max_new_tokens}: it must be at least 1")
    if how.greedy and how.samples != 1:
        raise WorkbenchError(
            f"greedy decoding gives one response a question, not {how.samples}: use samples=1 or"
            " sampling"
        )
    assert len(how.seeds) in (0, len(questions)), (len(how.seeds), len(questions))
    jobs = [(question, sample) for question in questions for sample in range(how.samples)]
    prompts = [ids for ids in prompt_ids(policy.tokenizer, questions) for _ in range(how.samples)]
    return [
        as_response(
            policy.tokenizer,
            question,
            ids,
            policy.stop_ids,
            sample=sample,
            step=step,
            prompt_ids=prompt,
            logprobs=logprobs,
        )
        for (question, sample), prompt, (ids, logprobs) in zip(
            jobs, prompts, policy.complete(prompts, policy.stop_ids, how), strict=True
        )
    ]


def as_response(
    tokenizer: Any,
    question: Question,
    ids: Sequence[int],
    stop_ids: Sequence[int],
    *,
    sample: int = 0,
    step: int | None = None,
    prompt_ids: Sequence[int] = (),
    logprobs: Sequence[float] = (),
) -> Response:
    """A `Response` from sampled ids (the end token included, if it was sampled).

    Its group is the question; in training, where one question is asked in many steps, the
    question at that step.
    """
    group = question.id if step is None else f"{question.id}/{step}"
    text, offsets = offsets_from_ids(tokenizer, ids)
    return Response(
        id=f"{group}/{sample}",
        question=question,
        text=text,
        group=group,
        sample=sample,
        step=step,
        prompt_ids=tuple(prompt_ids),
        token_ids=tuple(ids),
        offsets=offsets,
        logprobs=tuple(logprobs),
        finish="stop" if ids and ids[-1] in stop_ids else "length",
        prefill=prefill(tokenizer, prompt_ids),
    )
