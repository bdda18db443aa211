"""Build prompts for answers from passages: choose the system prompt and the passages that fit."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from workbench.experiments.evaluate import training_config
from workbench.methods.forag.cold_start import PLAN, plans_unprompted
from workbench.policies.generate import Policy, prompt_ids
from workbench.retrieval.words import split_page
from workbench.types import Passage, Question, WorkbenchError
from workbench.world.schema import MARKERS, OUTLINE

MOST = 5  # maximum number of passages
NEW_TOKENS = 1024  # as in FoRAG's sampling
CONTEXT = 4096  # tokens; for a policy without a stated context length
# tiny policy: passages, prompt tokens and answer tokens (ours)
SMALL_MOST, SMALL_ROOM, SMALL_NEW_TOKENS = 3, 176, 112


@dataclass(frozen=True)
class Reader:
    """A policy that answers from passages, with its system prompt and its token limits.

    Attributes:
        most: maximum number of passages in a prompt.
        room: maximum tokens of a prompt with several passages. The last passages are dropped until
            the prompt fits.
        limit: maximum tokens of a prompt with a single passage, which is shortened if necessary.
            `limit` is never below `room`.
        new_tokens: maximum tokens of an answer.
        small: whether the policy is a tiny policy, whose vocabulary is the closed world's.
    """

    policy: Policy
    system: str
    most: int
    room: int
    limit: int
    new_tokens: int
    small: bool = False

    def prompt(self, question: Question, passages: Sequence[Passage], k: int | None) -> Question:
        """Return the question with the system prompt and as many passages as fit, at least one.

        If a single passage is too long, it is shortened.

        Args:
            passages: passages for the question, the best first.
            k: maximum number of passages; None: the reader's own maximum, `most`.

        Raises:
            WorkbenchError: the question alone is too long.
        """
        question = replace(question, system=self.system)

        def length(*passages: Passage) -> int:
            prompt = replace(question, passages=passages)
            return len(prompt_ids(self.policy.tokenizer, [prompt])[0])

        if (tokens := length()) > self.limit:
            raise WorkbenchError(
                f"the question has {tokens} tokens, and the policy's limit is {self.limit}: ask a"
                " shorter one"
            )
        chosen = list(passages[: k or self.most])
        while len(chosen) > 1 and length(*chosen) > self.room:
            chosen.pop()
        words = len(chosen[0].text.split())
        while words > 1 and length(chosen[0]) > self.limit:  # one passage is too long: shorten it
            words //= 2
            chosen[0] = replace(chosen[0], text=split_page(chosen[0].text, words)[0])
        return replace(question, passages=tuple(chosen))


def reader_of(path: str, policy: Policy) -> Reader:
    """Return a `Reader`, which combines a policy with its system prompt and limits.

    The system prompt asks for a plan, "[Structure] … [Outline] …", before the answer. A policy that
    was trained to plan without this instruction gets the system prompt of its training instead.

    Args:
        path: folder or hub name of the policy.
        policy: the loaded policy.
    """
    # a vocabulary with the markers of a plan, such as "[Outline]", is that of the closed world
    small = set(MARKERS) <= policy.tokenizer.get_vocab().keys()
    context = policy.positions or CONTEXT
    new_tokens = min(SMALL_NEW_TOKENS if small else NEW_TOKENS, context // 2)
    limit = context - new_tokens
    system, config = OUTLINE if small else PLAN, training_config(path)
    if config is not None and plans_unprompted(config):
        prompts = config.get("prompts")
        system = str(prompts.get("system") or "") if isinstance(prompts, Mapping) else ""
    most, room = (SMALL_MOST, min(SMALL_ROOM, limit)) if small else (MOST, limit)
    return Reader(policy, system, most, room, limit, new_tokens, small)
