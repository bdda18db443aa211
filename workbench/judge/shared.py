"""One judge for several threads: a prompt that another thread is asking is waited for, not asked
again.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import replace

from workbench.types import Cost, Failure, Judge, Prompt, Reply

_STOPPED = Failure("judge", "stopped", "not asked, since the work has stopped")


class Shared:
    """`judge`, for use in several threads at a time. Once it is closed it asks nothing more:
    what is under way may end.
    """

    def __init__(self, judge: Judge) -> None:
        self.judge, self.name = judge, str(getattr(judge, "name", "judge"))
        self._lock, self._closed = threading.Lock(), False
        self._asked: dict[Prompt, Future[Reply]] = {}

    def close(self) -> None:
        self._closed = True

    def __call__(self, prompts: Sequence[Prompt]) -> list[Reply]:
        if self._closed:
            return [Reply(None, _STOPPED)] * len(prompts)
        with self._lock:
            others = {prompt: self._asked[prompt] for prompt in prompts if prompt in self._asked}
            mine = [prompt for prompt in prompts if prompt not in others]
            answers = {prompt: Future[Reply]() for prompt in mine}
            self._asked |= answers
        try:
            own = self._ask(mine, answers)
        finally:
            with self._lock:
                for prompt in answers:
                    del self._asked[prompt]
        replies = iter(own)
        return [
            _again(others[prompt].result()) if prompt in others else next(replies)
            for prompt in prompts
        ]

    def _ask(self, prompts: list[Prompt], answers: dict[Prompt, Future[Reply]]) -> list[Reply]:
        try:
            replies = self.judge(prompts) if prompts else []
        except BaseException as error:
            for answer in answers.values():
                answer.set_exception(error)
            raise
        for prompt, reply in zip(prompts, replies, strict=True):
            # a prompt may stand in a batch several times; its first reply bears the cost
            if not answers[prompt].done():
                answers[prompt].set_result(reply)
        return replies


def _again(reply: Reply) -> Reply:
    return replace(reply, cost=Cost() if reply.error else Cost(cached=1))
