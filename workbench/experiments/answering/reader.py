"""How a policy is asked to answer from passages: what it is told, and how much it can read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from workbench.experiments.evaluate import trained_with
from workbench.methods.forag.config import PLAN, plans_untold
from workbench.policies.generate import Policy, prompt_ids
from workbench.retrieval.chunk import split_page
from workbench.types import Passage, Question, WorkbenchError
from workbench.world.schema import MARKERS, OUTLINE

MOST = 5  # passages, unless a reader takes fewer
NEW_TOKENS = 1024  # as FoRAG samples
CONTEXT = 4096  # of a policy that does not say
# of the tiny policy: passages, tokens of a prompt, of an answer (ours)
SMALL_MOST, SMALL_ROOM, SMALL_NEW_TOKENS = 3, 176, 112


@dataclass(frozen=True)
class Reader:
    """What a policy is told (`system`), how many passages it is shown at `most`, the tokens of a
    prompt beyond which they are fewer (`room`), those beyond which it cannot read (`limit`), and
    how much it writes. `small` is one of the closed world."""

    policy: Policy
    system: str
    most: int
    room: int
    limit: int
    new_tokens: int
    small: bool = False

    def shown(self, question: Question, found: Sequence[Passage], k: int | None) -> Question:
        """The question with as many of the best passages as the policy can read, one at least.

        Raises:
            WorkbenchError: the question alone is too long.
        """
        told = replace(question, system=self.system)
        if (alone := self._length(told)) > self.limit:
            raise WorkbenchError(
                f"the question takes {alone} tokens, and the policy reads {self.limit}: ask a"
                " shorter one"
            )
        chosen = list(found[: k or self.most])
        while len(chosen) > 1 and self._length(replace(told, passages=tuple(chosen))) > self.room:
            chosen.pop()
        return replace(told, passages=(self._shortened(told, chosen[0]), *chosen[1:]))

    def _shortened(self, question: Question, passage: Passage) -> Passage:
        """The passage or, where not even it alone can be read, its beginning."""
        words = len(passage.text.split())
        while words > 1 and self._length(replace(question, passages=(passage,))) > self.limit:
            words //= 2
            passage = replace(passage, text=split_page(passage.text, words)[0])
        return passage

    def _length(self, question: Question) -> int:
        return len(prompt_ids(self.policy.tokenizer, [question])[0])


def reader_of(path: str, policy: Policy) -> Reader:
    """How the policy in a folder, or of a hub name, is asked.

    One of the closed world is known by its vocabulary, which has the signs of a plan as words.
    It is told what it was taught to plan by, any other one what FoRAG's cold start is drawn
    with.
    """
    small = set(MARKERS) <= policy.tokenizer.get_vocab().keys()
    context = policy.positions or CONTEXT
    new_tokens = min(SMALL_NEW_TOKENS if small else NEW_TOKENS, context // 2)
    limit = context - new_tokens
    system = told_to_plan(trained_with(path), OUTLINE if small else PLAN)
    most, room = (SMALL_MOST, min(SMALL_ROOM, limit)) if small else (MOST, limit)
    return Reader(policy, system, most, room, limit, new_tokens, small)


def told_to_plan(config: Mapping[str, Any] | None, otherwise: str) -> str:
    """What a policy is told before it answers. One of a run whose cold start made it plan untold
    is asked as it was trained and measured, without: after hundreds of updates to bare prompts
    an instruction would be new to it."""
    if config is None or not plans_untold(config):
        return otherwise
    prompts = config.get("prompts")
    return str(prompts.get("system") or "") if isinstance(prompts, Mapping) else ""
