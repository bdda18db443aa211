"""A judge that runs here: a causal language model with a chat template, greedy, in batches."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from pathlib import Path

from workbench.generate import Policy, generate, prompt_ids
from workbench.judge.batch import Arrived, BatchJudge, Totals, cached, call_failure
from workbench.judge.wire import Form, checked_reply, in_form
from workbench.policy import load_policy
from workbench.types import Cost, Failure, Prompt, Question, Reply, Response


def local_model(
    path: str | Path,
    *,
    device: str | None = None,
    batch_size: int = 8,
    max_new_tokens: int = 512,
    form: Form = "json",
    cache: Path | str | None = None,
) -> BatchJudge:
    """A judge from a folder or a hub name, as `workbench.policy.load_policy` takes them; the
    model is loaded at once.

    Decoding is greedy and replies are read as strictly as a server's. Failures of stage "judge":
    `too_long` (prompt and reply do not fit the model's positions; nothing is generated) and
    `truncated`. One batch runs at a time.

    Raises:
        WorkbenchError: there is no such model.
    """
    policy, lock, totals = load_policy(path, device=device), threading.Lock(), Totals()

    def send(prompts: Sequence[Prompt], arrived: Arrived) -> None:
        ready = [in_form(prompt, form) for prompt in prompts]
        fitting, long = _fit(policy, ready, max_new_tokens)
        for index, reply in long.items():
            arrived(index, reply)
        for start in range(0, len(fitting), batch_size):
            part = fitting[start : start + batch_size]
            with lock:
                replies = _generate(policy, [ready[index] for index in part], max_new_tokens)
            for index, (text, cost) in zip(part, replies, strict=True):
                totals.add(
                    calls=1,
                    tokens_in=cost.tokens_in,
                    tokens_out=cost.tokens_out,
                    seconds=cost.seconds,
                )
                settled = (
                    text if isinstance(text, Failure) else checked_reply(prompts[index], text, form)
                )
                arrived(
                    index,
                    (
                        Reply(None, settled, cost)
                        if isinstance(settled, Failure)
                        else Reply(settled, cost=cost)
                    ),
                )

    judge = BatchJudge(
        str(path),
        send,
        {"greedy": True, "max_tokens": max_new_tokens, "form": form},
        totals,
    )
    return cached(judge, cache) if cache else judge


def _fit(
    policy: Policy, prompts: Sequence[Prompt], max_new_tokens: int
) -> tuple[list[int], dict[int, Reply]]:
    """Which prompts leave room for a reply, shortest first so that batches pad little; and a
    failure for each other.
    """
    lengths = [
        len(ids) for ids in prompt_ids(policy.tokenizer, [_question(prompt) for prompt in prompts])
    ]
    limit = policy.positions
    room = float("inf") if limit is None else limit - max_new_tokens
    message = (
        f"prompts of {{}} tokens and replies of {max_new_tokens} do not fit the model's {limit}"
        " positions"
    )
    long = {
        index: Reply(None, call_failure("too_long", message.format(length)))
        for index, length in enumerate(lengths)
        if length > room
    }
    return sorted(set(range(len(prompts))) - set(long), key=lambda index: lengths[index]), long


def _generate(
    policy: Policy, prompts: Sequence[Prompt], max_new_tokens: int
) -> list[tuple[str | Failure, Cost]]:
    """A reply and what it took for each; the time of a batch is shared out evenly."""
    began = time.perf_counter()
    questions = [_question(prompt, str(number)) for number, prompt in enumerate(prompts)]
    responses = generate(
        policy, questions, max_new_tokens=max_new_tokens, greedy=True, batch_size=len(questions)
    )
    seconds = (time.perf_counter() - began) / len(prompts)
    return [
        (
            _text(r),
            Cost(
                calls=1,
                cached=0,
                tokens_in=len(r.prompt_ids),
                tokens_out=len(r.token_ids),
                seconds=seconds,
            ),
        )
        for r in responses
    ]


def _text(response: Response) -> str | Failure:
    if response.finish == "length":
        return call_failure(
            "truncated", "the reply was cut off at max_new_tokens: allow more", response.text
        )
    return response.text


def _question(prompt: Prompt, name: str = "") -> Question:
    return Question(name, prompt.text)
