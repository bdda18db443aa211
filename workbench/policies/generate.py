"""Sample responses to questions from a policy, with any engine.

An engine is a function from prompts (token ids) and `Sampling` to completions (token ids). The
engine `hf` uses transformers, `vllm` uses vLLM. `workbench.policies.load.load_policy` returns a
`Policy` with its engine.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from workbench.credit.tokens import offsets_from_ids, prefill
from workbench.types import Question, Response, WorkbenchError
from workbench.util.hub import panics_as_errors

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

# sampled ids with the end token, and their log-probabilities or ()
Completion = tuple[list[int], tuple[float, ...]]


@dataclass(frozen=True)
class Sampling:
    """Settings for sampling responses.

    Attributes:
        max_new_tokens: largest number of tokens of a response, including the end token.
        samples: number of responses per question.
        greedy: take the most probable token, and ignore temperature, top-p and seed.
        batch_size: largest number of responses computed at once; None for the engine's default.
        logprobs: also return the log-probability of each sampled token, at temperature 1.
        seeds: a seed for each question, instead of `seed`. The samples of a question then do not
            depend on the other questions.
        rows: if several processes share a batch: the index in the whole batch of each prompt that
            this process samples. A prompt then gets the same random numbers as in one process. ()
            if this process samples the whole batch.
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
    """A loaded language model with its tokenizer and the engine that samples from it.

    Attributes:
        stop_ids: ids of the tokens that end a response.
        complete: the engine, a function from prompts, stop ids and `Sampling` to completions.
        model: the `PreTrainedModel` in memory; None if the engine does not expose it.
        positions: largest number of tokens of prompt and response together; None if unknown.
    """

    name: str
    tokenizer: "PreTrainedTokenizerBase"
    stop_ids: tuple[int, ...]
    # prompts, stop ids, sampling
    complete: Callable[[list[list[int]], Sequence[int], Sampling], list[Completion]]
    model: Any = None
    positions: int | None = None


def prompt_ids(
    tokenizer: "PreTrainedTokenizerBase", questions: Sequence[Question]
) -> list[list[int]]:
    """Return the token ids of each question's prompt, by the tokenizer's chat template.

    The ids end with the template's generation prompt, so the model continues with its answer.
    """
    conversations = [question.messages() for question in questions]
    if not conversations:
        return []
    with panics_as_errors(tokenizer.name_or_path):
        encoded = tokenizer.apply_chat_template(
            conversations, add_generation_prompt=True, tokenize=True, return_dict=True
        )
    return [list(ids) for ids in encoded["input_ids"]]


def generate(
    policy: Policy, questions: Sequence[Question], *, step: int | None = None, **sampling: Any
) -> list[Response]:
    """Sample responses to each question, and return them in the order of the questions.

    The same arguments give the same responses.

    Args:
        step: training step, which is stored in the responses; None outside training.
        sampling: fields of `Sampling`, such as `max_new_tokens` and `samples`.

    Raises:
        WorkbenchError: `samples` > 1 with `greedy`, or `max_new_tokens` < 1.
    """
    how = Sampling(**sampling)
    if how.max_new_tokens < 1:
        raise WorkbenchError(f"max_new_tokens is {how.max_new_tokens}: it must be at least 1")
    if how.greedy and how.samples != 1:
        raise WorkbenchError(
            f"samples is {how.samples}, but greedy decoding gives the same response each time: use"
            " samples=1, or greedy=False"
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
    tokenizer: "PreTrainedTokenizerBase",
    question: Question,
    ids: Sequence[int],
    stop_ids: Sequence[int],
    *,
    sample: int = 0,
    step: int | None = None,
    prompt_ids: Sequence[int] = (),
    logprobs: Sequence[float] = (),
) -> Response:
    """Return a `Response` to `question` from sampled token ids.

    The field `group` is the question's id or, with a `step`, "ID/STEP". The field `finish` is
    "stop" if the ids end with a stop id, else "length" (truncated).

    Args:
        ids: the sampled ids, with the end token if it was sampled.
        stop_ids: ids of the tokens that end a response.
        sample: number of the response among the samples for the question, from 0.
        step: training step; None outside training.
        prompt_ids: token ids of the prompt.
        logprobs: log-probability of each sampled id; () if not known.
    """
    group = question.id if step is None else f"{question.id}/{step}"
    # from the ids: encoding the text again may split it into other tokens
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
