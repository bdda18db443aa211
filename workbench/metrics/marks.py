"""Marks: a judge rates the coherence and the helpfulness of each answer from 1 to 5.

FoRAG (arXiv 2406.13779, section 6.1) reports the share of answers with a mark of at least 4. The
prompts are ours.
"""

from collections.abc import Sequence
from pathlib import Path

from workbench.judge import render
from workbench.judge.wire import MARKED
from workbench.metrics.bootstrap import collect, intervals
from workbench.metrics.claims import COUNTS
from workbench.metrics.pairs import ask, read_answers
from workbench.metrics.rows import check_one_policy
from workbench.types import JsonObject, Judge, Prompt

GOOD = 4  # least mark that counts as good, as in the paper
MEANS = tuple(f"{name}_mark" for name in MARKED)
NOT_SHARES = (*COUNTS, "sentences_per_fact", "length", *MEANS)  # metrics that are plain numbers
REASON = "no answer was marked"


def mark_prompts(path: Path | str) -> list[tuple[str, Prompt]]:
    """Return prompts that ask a judge to rate answers from 1 to 5: (question id, prompt) pairs.

    Each answer gets two prompts, on its coherence and on its helpfulness. A prompt contains the
    answer without its thinking and its outline.

    Args:
        path: a file of feedback rows, or a run's folder.

    Raises:
        WorkbenchError: the file is not feedback, the text of a question is not known, or the
            answers are from several training steps.
    """
    answers = read_answers(path)
    check_one_policy(path, (step for _, step, _ in answers))
    return [
        (key[0], render(aspect, question=question, response=text))
        for key, group in answers.items()
        for question, text in group
        for aspect in MARKED
    ]


def marks(
    judge: Judge, prompts: Sequence[tuple[str, Prompt]], seed: int, resamples: int
) -> JsonObject:
    """Ask the judge for marks from 1 to 5; return the shares of good answers and the mean marks.

    * "coherence", "helpfulness": the shares of answers with a mark of at least 4.
    * "coherence_mark", "helpfulness_mark": the mean marks.
    * "judge": the cost and the failures of the judge. Failed marks are left out of the metrics.

    Shares and means are `{value, low, high, n}`, with a 95 % bootstrap interval over n questions.

    Args:
        prompts: the result of `mark_prompts`.
    """
    labels, used = ask(judge, prompts)
    terms = [
        (
            question,
            {
                prompt.task: (float(int(label) >= GOOD), 1.0),
                f"{prompt.task}_mark": (float(label), 1.0),
            },
        )
        for (question, prompt), label in zip(prompts, labels, strict=True)
        if label is not None
    ]
    names = (*MARKED, *MEANS)
    cells = intervals(collect(terms, names), resamples, seed)
    undefined = {} if terms else {"reason": REASON}
    return {name: cells[name] | undefined for name in names} | {"judge": used}
