"""Reward functions for TRL's and Unsloth's trainers (`workbench.trl_reward`).

`grader` and `question_from_row` are also used by `workbench.scoring.verl`.
"""

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.credit.tokens import words
from workbench.data.chat import text_of
from workbench.data.record import digest, question_of
from workbench.methods import METHODS, configure_method
from workbench.methods.bench import NAMES as BENCHES
from workbench.methods.bench import Bench
from workbench.methods.bench import bench as bench_of
from workbench.methods.method import MethodConfig
from workbench.policies.generate import as_response
from workbench.runs.store import append_feedback, locate
from workbench.text.sections import opened
from workbench.training.recorder import error_of, reason, reward_of
from workbench.training.sampling import grouped, named
from workbench.types import Checks, Feedback, Grade, JsonMapping, Question, Response, WorkbenchError
from workbench.util.config import override
from workbench.util.failures import check_failed
from workbench.util.jsonl import iter_rows
from workbench.verdicts.checks import local_checks, rule_checks
from workbench.verdicts.local import is_local, warn_of_training

# Optional columns of a data set with a question's reference data.
COLUMNS = tuple("id question answers answer title passages checklist kind".split())
# kind of failure of a row without an input -> the columns that can contain this input
INPUTS = {"no_gold": ("answers", "answer"), "no_checklist": ("checklist",)}
UNSCORED = "completions could not be scored"
# names that TRL passes to a reward function besides the columns of the data set
TRAINERS = frozenset("completion_ids trainer_state log_extra log_metric environments".split())
# Judges by name. "world" is a bench, which also sets the defaults of methods.
JUDGES: dict[str, Callable[[], Bench | Checks]] = {
    "world": lambda: bench_of("tiny"),
    "rules": rule_checks,
    "local": local_checks,
}

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

Text = str | Sequence[JsonMapping]  # a text, or the messages of a conversation


@dataclass(frozen=True)
class Grader:
    """The grading function of one method.

    Attributes:
        name: the method's name.
        grade: function from responses to feedback with verdicts and the method's rewards.
        recognise: function that adds reference data, such as gold answers, to a question, if the
            judge is the closed world (generated people and places). With any other judge, it
            returns the question unchanged.
        without_tokens: the setting with which the reward does not need the sampled tokens, such as
            "klcf.l_max=none"; "" if it does not need them.
    """

    name: str
    grade: Grade
    recognise: Callable[[Question], Question]
    without_tokens: str = ""


def grader(
    recipe: str | MethodConfig, judge: str | Bench | Checks | None, settings: Sequence[str] = ()
) -> Grader:
    """Return the grading function of a method, as a `Grader`.

    Args:
        recipe: a method's name or config.
        judge: the judge, which is required (None raises an error). It is one of these:

            * "local": rules and the local verifier, a small entailment model
            * "rules": rules for final answers only
            * "world": the facts of the closed world (generated people and places); the same as the
              bench "tiny"
            * `Checks`, such as `workbench.local_checks()`
            * a bench (questions, policy and judge) or its name. If `recipe` is a name, the bench
              also sets the method's defaults.
        settings: changes of the method's settings, such as "rlfh.alpha=2".

    Raises:
        WorkbenchError: the method, setting or judge does not exist, or the judge cannot give a
            verdict that the method needs.
    """
    name, config = configure_method(recipe)
    if isinstance(judge, str) and judge in (*JUDGES, *BENCHES):
        judge = JUDGES[judge]() if judge in JUDGES else bench_of(judge)
    if not isinstance(judge, Bench | Checks):
        # no default: the closed world would judge any other text by its own facts
        raise WorkbenchError(
            f"the reward '{name}' needs a judge, not {judge!r}: give workbench.local_checks() to"
            " judge by passages and gold answers, judge_checks(…) for a language model, or"
            " world_checks(…) for the closed world"
        )
    checks = judge if isinstance(judge, Checks) else judge.checks
    if isinstance(recipe, str) and not isinstance(judge, Checks):
        # a config given by the caller keeps its values
        config = METHODS[name].configure(judge.name)
    config = override(config, name, settings)
    if "fact" in METHODS[name].checks(config) and is_local(checks.verify.get("fact")):
        warn_of_training()
    without = METHODS[name].needs_tokens(config)
    return Grader(
        name,
        METHODS[name].grader(config, checks),
        checks.recognise or (lambda question: question),
        f"{name}.{without}" if without else "",
    )


def question_from_row(prompt: Text | None, row: JsonMapping) -> Question:
    """Return the question of a data set's row.

    These columns are read, all of them optional: `id`, `question`, `answers` (or `answer`),
    `title`, `passages`, `checklist`, `kind`. Without `question`, the question is the last user
    message of the prompt, or the whole prompt if it is not a conversation. Without `id`, the id is
    a hash of these columns.

    Raises:
        WorkbenchError: a column has a value of another type.
    """
    row = {name: row[name] for name in COLUMNS if not _is_empty(row.get(name))}
    text = row.pop("question", "") or text_of(prompt, "user") or ""
    if "id" in row:
        identity = str(row["id"])
    else:  # equal rows get equal ids
        identity = digest(json.dumps([text, row], sort_keys=True, default=str))[:12]
    try:
        return question_of(row, identity, text)
    except ValueError as error:
        raise WorkbenchError(
            f"the row '{identity}' of the data set cannot be read: {error}: correct that column, or"
            " rename it"
        ) from error


def _is_empty(value: object) -> bool:
    """Return whether a cell of a data set is empty: None, "", or a list of empty values."""
    if isinstance(value, list | tuple):
        return all(map(_is_empty, value))
    return value is None or (isinstance(value, str) and not value)


def trl_reward(
    recipe: str | MethodConfig,
    bench: str | Bench | Checks | None = None,
    *,
    settings: Sequence[str] = (),
    tokenizer: "PreTrainedTokenizerBase | None" = None,
    out: Path | str | None = None,
    max_failed: float = 0.2,
) -> Callable[..., list[float | None]]:
    """Return a reward function for `GRPOTrainer(reward_funcs=…)`.

    The function returns one number for each completion, or None if it could not be scored. It reads
    these columns of the data set, all of them optional: `id`, `question` (by default the last user
    message of the prompt, or the whole prompt), `answers` (or `answer`), `title`, `passages`
    ({title, text} or text), `checklist`, `kind`.

    Args:
        recipe: a method's name, one of `workbench.methods.METHODS`, or its config.
        bench: the judge, which is required. It is one of these:

            * "local": rules and the local verifier, a small entailment model
            * "rules": rules for final answers only
            * "world": the facts of the closed world (generated people and places); the same as the
              bench "tiny"
            * `Checks`, such as `workbench.local_checks()`
            * a bench (questions, policy and judge) or its name. If `recipe` is a name, the bench
              also sets the method's defaults.
        settings: changes of the method's settings, such as "rlfh.alpha=2".
        tokenizer: the policy's tokenizer. With it, the stored rewards are per sampled token;
            without it, per word of the text. It is required for a reward that reads the number of
            tokens or whether a completion was cut off: "binary_rar" without `truncated`, and "klcf"
            with `l_max`.
        out: a folder in which every response is stored with its claims, verdicts and rewards, to be
            shown by `workbench inspect`; only for runs of one process. None: nothing is stored.
        max_failed: largest accepted share of failed completions in a batch. Above it, the function
            raises `TooManyFailures`. If a reward is None only because the cell of `answers` (or
            `checklist`) is empty, this is not a failure. If the column is missing, it is a failure.

    Raises:
        WorkbenchError: the method, setting or judge does not exist, the judge cannot give a verdict
            that the method needs, or the reward needs a tokenizer.
    """
    made = grader(recipe, bench, settings)
    if tokenizer is None:
        _check_tokens(made, "give the policy's tokenizer, trl_reward(…, tokenizer=TOKENIZER)")
    name, groups = made.name, _stored_groups(out)

    def reward(
        prompts: Sequence[Text], completions: Sequence[Text], **columns: Any
    ) -> list[float | None]:
        present = {name: columns[name] for name in COLUMNS if columns.get(name) is not None}
        rows = ({name: cells[i] for name, cells in present.items()} for i in range(len(prompts)))
        questions = [
            made.recognise(question_from_row(*pair)) for pair in zip(prompts, rows, strict=True)
        ]
        state, ids = columns.get("trainer_state"), columns.get("completion_ids")
        if ids is None:
            _check_tokens(made, "use a trainer that passes completion_ids, such as GRPOTrainer")
        # TRL counts the finished steps; our steps begin at 1
        step = None if state is None else state.global_step + 1
        responses = _responses(questions, prompts, completions, ids, tokenizer, step, groups)
        feedbacks = made.grade(responses)
        if out is not None:
            append_feedback(out, feedbacks)
        values = [reward_of(feedback, name) for feedback in feedbacks]
        lacking = [_lacks_input(feedback, name, columns) for feedback in feedbacks]
        failed = [
            reason(feedback, name)
            for feedback, value, lacks in zip(feedbacks, values, lacking, strict=True)
            if value is None and not lacks
        ]
        _log(name, feedbacks, len(failed), sum(lacking), columns)
        what = UNSCORED + _missing_columns(feedbacks, columns)
        check_failed(failed, len(values), max_failed, what)
        return values

    reward.__name__ = f"workbench_{name}"  # TRL logs rewards under this
    return reward


def _check_tokens(made: Grader, remedy: str) -> None:
    """Raise a WorkbenchError, which names a remedy, if the reward needs the sampled tokens."""
    if made.without_tokens:
        raise WorkbenchError(
            f"the reward '{made.name}' reads the number of tokens, or whether a completion was cut"
            f" off, and the text shows neither: {remedy}, or set {made.without_tokens}"
        )


def _missing_columns(feedbacks: Sequence[Feedback], columns: JsonMapping) -> str:
    """Return the end of an error message: which columns are missing, and which exist.

    It is "" if no failure is caused by a missing column.
    """
    kinds = {v.error.kind for feedback in feedbacks for v in feedback.verdicts if v.error}
    missing = [names for kind, names in INPUTS.items() if kind in kinds]
    absent = [names for names in missing if not any(name in columns for name in names)]
    given = ", ".join(name for name in columns if name not in TRAINERS) or "no others"
    return "".join(
        f" (no column {' or '.join(names)}; the data set has {given})" for names in absent
    )


def _lacks_input(feedback: Feedback, name: str, columns: JsonMapping) -> bool:
    """Return whether a row has no reward because its gold answers or checklist are empty.

    False if the data set lacks the whole column: then no row can be scored, which is a failure.
    """
    error = error_of(feedback, name)
    return error is not None and any(
        columns.get(column) is not None for column in INPUTS.get(error.kind, ())
    )


def _stored_groups(out: Path | str | None) -> Counter[str]:
    """Return the number of groups in the folder `out` by name, as the `counts` of `grouped`.

    A name is "QUESTION/STEP", or "QUESTION" without a step. Empty if `out` is None or has no rows.
    """
    if out is None or not (path := Path(*locate(out))).exists():
        return Counter()
    groups = {(row["question_id"], row["step"], row["group"]) for row in iter_rows(path)}
    return Counter(
        question if step is None else f"{question}/{step}" for question, step, _ in groups
    )


def _responses(
    questions: Sequence[Question],
    prompts: Sequence[Text],
    completions: Sequence[Text],
    ids: Sequence[Sequence[int]] | None,
    tokenizer: "PreTrainedTokenizerBase | None",
    step: int | None,
    groups: Counter[str],
) -> list[Response]:
    """Convert completions to responses; the responses to one question form a group.

    A tag such as "<think>" that a prompt leaves open becomes the response's `prefill`. It is read
    from the prompt if the prompt is a text. For a conversation, `as_response` reads it from the
    chat template.

    Args:
        groups: number of earlier groups by name (`counts` of `grouped`). It keeps names unique if
            a trainer evaluates within a step or repeats a step.
    """
    responses = []
    names = grouped(questions, step, counts=groups)
    rows = zip(questions, prompts, completions, ids or [()] * len(prompts), names, strict=True)
    for question, prompt, completion, own, (group, sample) in rows:
        if tokenizer is not None and ids is not None:
            response = as_response(tokenizer, question, own, [tokenizer.eos_token_id])
        else:
            text = text_of(completion, "assistant") or ""
            response = Response("", question, text, offsets=words(text), source="words")
        if isinstance(prompt, str):
            response = replace(response, prefill=opened(prompt))
        responses.append(named(response, group, sample, step))
    return responses


def _log(
    name: str, feedbacks: Sequence[Feedback], failed: int, lacking: int, columns: JsonMapping
) -> None:
    """Log metrics with the functions `log_metric` and `log_extra`, if TRL passes them.

    Every call logs the same names, because TRL averages each name over the processes.
    """
    rewards = [feedback.rewards[name] for feedback in feedbacks]
    if log_metric := columns.get("log_metric"):
        claims = sum(len(feedback.claims) for feedback in feedbacks)
        unplaced = sum(len(reward.unplaced) for reward in rewards)
        log_metric(f"{name}/failed", failed / len(feedbacks))
        log_metric(f"{name}/lacking", lacking / len(feedbacks))
        log_metric(f"{name}/claims", claims / len(feedbacks))
        log_metric(f"{name}/unplaced", unplaced / max(claims, 1))
    if log_extra := columns.get("log_extra"):
        log_extra(f"{name}_parts", [json.dumps(dict(reward.parts)) for reward in rewards])
        log_extra(f"{name}_error", [reason(feedback, name) for feedback in feedbacks])
