"""Sample rollouts for the trainers, and assign group names to them.

Evaluations use the same sampling engine, so trained and evaluated samples are comparable.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING

from workbench.policies import hf
from workbench.policies.decode import plain_model
from workbench.policies.generate import Sampling, as_response, prompt_ids
from workbench.training.recorder import reward_of
from workbench.types import Feedback, Question, Response, WorkbenchError
from workbench.util.grouping import split_batches

if TYPE_CHECKING:
    import trl
    from accelerate import Accelerator
    from transformers import PreTrainedModel, PreTrainedTokenizerBase


def sample(trainer: "trl.GRPOTrainer", prompt_ids: Sequence[Sequence[int]]) -> list[list[int]]:
    """Sample a completion for each prompt from the current weights; return the token ids.

    The ids include the end token if it was sampled. The seed comes from torch's global random
    state. Checkpoints store this state, so a resumed run samples the same tokens. Several processes
    together sample the same tokens as a single process.

    Raises:
        WorkbenchError: there are several processes, and the model needs transformers' `generate`,
            which can only be used in a single process.
    """
    import torch
    from trl.models import unwrap_model_for_generation

    settings = trainer.generation_kwargs
    seed, rows = shares(trainer.accelerator, int(torch.randint(2**31, ())), prompt_ids)
    trainer.sampling_state = torch.get_rng_state()  # see `RolloutTrainer._prepare_inputs`
    how = Sampling(
        settings["max_new_tokens"],
        temperature=settings["temperature"],
        top_p=settings["top_p"],
        seed=seed,
        batch_size=len(prompt_ids),
        rows=rows,
    )
    # our engine needs the model itself, not a wrapper such as DDP's
    with unwrap_model_for_generation(
        trainer.model_wrapped, trainer.accelerator, generation_kwargs=settings
    ) as model:
        # with transformers, all processes would draw the same random numbers
        if rows and plain_model(model) is None:
            raise WorkbenchError(
                f"several processes cannot sample from a {type(model).__name__}: train it in a"
                " single process"
            )
        training = model.training
        # without dropout, and without gradient checkpointing, which disables the cache
        model.eval()
        try:
            completions = hf.complete(
                model,
                settings["pad_token_id"],
                [list(ids) for ids in prompt_ids],
                [settings["eos_token_id"]],
                how,
            )
        finally:
            model.train(training)
    return [ids for ids, _ in completions]


def redrawn(
    trainer: "trl.GRPOTrainer", prompt_ids: list[list[int]], completions: list[list[int]]
) -> list[list[int]]:
    """Sample groups with equal rewards again, and return all completions.

    If all rewards of a group are equal, its advantages are 0. Such a group is replaced by new
    samples for the same question, up to `trainer.config.redraws` times. The old samples are not
    stored. DAPO (arXiv 2503.14476, section 3.2) instead takes a group of another question.

    A group with a failed reward is kept, so that the failure counts against `max_failed`. The
    grades of the returned completions are stored in `trainer.graded`, and are None for completions
    that were not graded.

    Args:
        trainer: our subclass of TRL's trainer (`RolloutTrainer`).
        prompt_ids: token ids of the prompt of each completion.
        completions: token ids of each completion; changed in place.
    """
    size, tokenizer = trainer.config.group_size, trainer.processing_class
    graded: list[Feedback | None] = [None] * len(completions)
    rows = list(range(len(completions)))  # the rows to grade next
    for _ in range(trainer.config.redraws):
        responses = [
            as_response(
                tokenizer,
                trainer.questions[trainer.numbers[row]],
                completions[row],
                [tokenizer.eos_token_id],
            )
            for row in rows
        ]
        with trainer.recorder.timed("grading"):
            feedbacks = trainer.recorder.grade(responses)
        groups = split_batches(list(zip(rows, feedbacks, strict=True)), size)
        flat = [group for group in groups if _is_flat(trainer, [one for _, one in group])]
        for row, feedback in chain.from_iterable(groups):
            graded[row] = feedback
        rows = [row for group in flat for row, _ in group]
        if not rows:
            break
        with trainer.recorder.timed("generation"):
            again = sample(trainer, [prompt_ids[row] for row in rows])
        for row, ids in zip(rows, again, strict=True):
            completions[row], graded[row] = ids, None
    trainer.graded = graded
    return completions


def _is_flat(trainer: "trl.GRPOTrainer", group: Sequence[Feedback]) -> bool:
    """Return whether all rewards of a group are known, and all its advantages would be 0."""
    method = trainer.recorder.method
    if any(reward_of(feedback, method) is None for feedback in group):
        return False
    # None: truncated, with mask_truncated
    return len({trainer.reward_value(feedback) for feedback in group} - {None}) < 2


def shares(
    accelerator: "Accelerator", seed: int, prompts: Sequence[Sequence[int]]
) -> tuple[int, tuple[int, ...]]:
    """Return a seed that all processes share, and the positions of this process's prompts.

    The seed is that of the first process. To find the positions, the prompts of all processes are
    sorted, longest first; a prompt's position is its index in this order. With seed and position,
    a process samples the same tokens for a prompt as a single process would. If there is only one
    process, the result is (`seed`, ()).
    """
    if accelerator.num_processes == 1:
        return seed, ()
    from accelerate.utils import gather_object

    by_process = gather_object([(seed, list(map(list, prompts)))])
    first = sum(len(own) for _, own in by_process[: accelerator.process_index])
    sampling_order = hf.longest_first([prompt for _, own in by_process for prompt in own])
    places = {number: place for place, number in enumerate(sampling_order)}
    return by_process[0][0], tuple(places[first + number] for number in range(len(prompts)))


def rollouts(
    model: "PreTrainedModel",
    tokenizer: "PreTrainedTokenizerBase",
    questions: Sequence[Question],
    group_size: int,
    how: Sampling,
    step: int,
) -> list[Response]:
    """Sample `group_size` responses to each question from `model`, and assign them to groups.

    Args:
        how: sampling settings.
        step: training step, which is stored in the responses.
    """
    repeated = [question for question in questions for _ in range(group_size)]
    stop = [tokenizer.eos_token_id]
    completions = hf.complete(
        model, tokenizer.pad_token_id, prompt_ids(tokenizer, repeated), stop, how
    )
    names = grouped(repeated, step, group_size)
    return named_responses(tokenizer, repeated, [ids for ids, _ in completions], names, step)


def named_responses(
    tokenizer: "PreTrainedTokenizerBase",
    questions: Iterable[Question],
    completions: Iterable[Sequence[int]],
    names: Iterable[tuple[str, int]],
    step: int,
) -> list[Response]:
    """Return completions as `Response` values.

    Args:
        questions: the question of each completion.
        completions: their token ids.
        names: the group and sample number of each completion, from `grouped`.
        step: training step, which is stored in the responses.
    """
    stop = [tokenizer.eos_token_id]
    return [
        named(as_response(tokenizer, question, ids, stop), group, number, step)
        for question, ids, (group, number) in zip(questions, completions, names, strict=True)
    ]


def grouped(
    questions: Iterable[Question],
    step: int | None,
    size: int | None = None,
    counts: Counter[str] | None = None,
) -> Iterator[tuple[str, int]]:
    """Yield (group name, sample number) for each of several responses.

    A group has the responses to one question in one step. Its name is "QUESTION/STEP", with the
    question's id, or "QUESTION" if `step` is None. If a step has several groups for a question, the
    later names end with ".2", ".3" and so on. Samples are numbered from 0 in each group.

    Args:
        questions: the question of each response.
        size: number of successive responses that form a group; None: all responses to a question.
        counts: number of groups that earlier calls have yielded, by name without ".2"; this call
            adds its groups. None: there were no earlier calls.
    """
    counts = Counter() if counts is None else counts
    seen = Counter[str]()
    for position, question in enumerate(questions):
        name = question.id if step is None else f"{question.id}/{step}"
        sample = seen[name] if size is None else position % size
        seen[name] += 1
        counts[name] += sample == 0  # a new group
        yield f"{name}.{counts[name]}" if counts[name] > 1 else name, sample


def named(response: Response, group: str, sample: int, step: int | None) -> Response:
    """Return the response with a new group, sample number, step, and id "GROUP/SAMPLE"."""
    return replace(response, id=f"{group}/{sample}", group=group, sample=sample, step=step)
