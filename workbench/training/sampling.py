"""How trainers sample their rollouts, and what these are called: by the engine that evaluation
uses. A TRL trainer's own config says how it samples."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from workbench.policies import hf
from workbench.policies.decode import plain_model
from workbench.policies.generate import Sampling, as_response, prompt_ids
from workbench.types import Question, Response, WorkbenchError


def sample(trainer: Any, prompt_ids: Sequence[Sequence[int]]) -> list[list[int]]:
    """Sample a completion for each prompt, with its end token, from the current weights.

    Equal prompts are computed once. The seed comes from torch's global random state, which
    checkpoints store, so a resumed run samples the same tokens. Several processes share the seed of
    the first one, and each samples for its prompts what a single process would have sampled.

    Raises:
        WorkbenchError: several processes train a model that transformers alone can sample from,
        by random numbers that would be the same in all of them.
    """
    import torch
    from trl.models import unwrap_model_for_generation

    settings = trainer.generation_kwargs
    seed, rows = shares(trainer.accelerator, int(torch.randint(2**31, ())), prompt_ids)
    trainer.sampling_state = torch.get_rng_state()
    how = Sampling(
        settings["max_new_tokens"],
        temperature=settings["temperature"],
        top_p=settings["top_p"],
        seed=seed,
        batch_size=len(prompt_ids),
        rows=rows,
    )
    with unwrap_model_for_generation(
        trainer.model_wrapped, trainer.accelerator, generation_kwargs=settings
    ) as model:
        if rows and plain_model(model) is None:
            raise WorkbenchError(
                "several processes cannot sample from a model of this type: train it in one"
            )
        training = model.training
        # without dropout, and without gradient checkpointing, under which layers leave the cache
        # alone
        model.eval()
        try:
            drawn = hf.complete(
                model,
                settings["pad_token_id"],
                [list(ids) for ids in prompt_ids],
                [settings["eos_token_id"]],
                how,
            )
        finally:
            model.train(training)
    return [ids for ids, _ in drawn]


def shares(
    accelerator: Any, seed: int, prompts: Sequence[Sequence[int]]
) -> tuple[int, tuple[int, ...]]:
    """The seed of all processes, and this one's places among the prompts of all as they are
    begun; none where it is alone.
    """
    if accelerator.num_processes == 1:
        return seed, ()
    from accelerate.utils import gather_object

    told = gather_object([(seed, list(map(list, prompts)))])
    first = sum(len(own) for _, own in told[: accelerator.process_index])
    begun = hf.longest_first([prompt for _, own in told for prompt in own])
    places = {number: place for place, number in enumerate(begun)}
    return told[0][0], tuple(places[first + number] for number in range(len(prompts)))


def rollouts(
    model: Any,
    tokenizer: Any,
    questions: Sequence[Question],
    group_size: int,
    how: Sampling,
    step: int,
) -> list[Response]:
    """`group_size` responses to each question, from the weights as they are."""
    asked = [question for question in questions for _ in range(group_size)]
    stop = [tokenizer.eos_token_id]
    completions = hf.complete(
        model, tokenizer.pad_token_id, prompt_ids(tokenizer, asked), stop, how
    )
    return [
        named(as_response(tokenizer, question, ids, stop), group, number, step)
        for question, (ids, _), (group, number) in zip(
            asked, completions, grouped(asked, step, group_size), strict=True
        )
    ]


def grouped(
    questions: Iterable[Question],
    step: int | None,
    size: int | None = None,
    asked: Counter[str] | None = None,
) -> Iterator[tuple[str, int]]:
    """(group, sample) of each response to these questions, in order.

    A group is "question/step", or the question where no step is told. TRL samples a question
    `size` times in a row, and a step that asks it a second time makes another group of it,
    "question/step.2"; `asked` remembers the step's earlier calls. Where the size is not known,
    all responses to a question are one group.
    """
    asked = Counter() if asked is None else asked
    for position, question in enumerate(questions):
        sample = asked[question.id] if size is None else position % size
        if size is None or sample == 0:
            asked[question.id] += 1
        again = f".{asked[question.id]}" if size is not None and asked[question.id] > 1 else ""
        yield (question.id if step is None else f"{question.id}/{step}{again}"), sample


def named(response: Response, group: str, sample: int, step: int | None) -> Response:
    """The response under the id that its group and its number there make."""
    return replace(response, id=f"{group}/{sample}", group=group, sample=sample, step=step)
