"""A judge that replies by a script and keeps its prompts."""

import json
from collections.abc import Callable, Sequence
from typing import Any

from workbench.judge import elements
from workbench.types import Cost, Failure, Prompt, Reply


class ScriptedJudge:
    """A judge that replies with `answer(task, elements)` and keeps its prompts by batch. Strings
    are sent as they are, failures are returned, other values are sent as JSON.
    """

    name = "scripted"

    def __init__(self, answer: Callable[[str, dict[str, list[str]]], Any]) -> None:
        self.answer, self.batches = answer, list[list[Prompt]]()

    def __call__(self, prompts: Sequence[Prompt]) -> list[Reply]:
        self.batches.append(list(prompts))
        return [self.reply(prompt) for prompt in prompts]

    @property
    def prompts(self) -> list[Prompt]:
        return [prompt for batch in self.batches for prompt in batch]

    def reply(self, prompt: Prompt) -> Reply:
        inputs: dict[str, list[str]] = {}
        for element in elements(prompt.text):
            inputs.setdefault(element.tag, []).extend(child.text for child in element.children)
            inputs[element.tag].append(element.text)
        answer = self.answer(prompt.task, inputs)
        cost = Cost(calls=1, tokens_in=10, tokens_out=2)
        if isinstance(answer, Failure):
            return Reply(None, answer, cost)
        return Reply(answer if isinstance(answer, str) else json.dumps(answer), cost=cost)
