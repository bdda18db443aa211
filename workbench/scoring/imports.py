"""Convert completions in a trainer's logs to feedback rows, for scoring and the inspector."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from typing import Any

from workbench.credit.tokens import words
from workbench.data.chat import text_of
from workbench.data.files import DELIMITERS, ROWS, open_rows, suffix_of
from workbench.data.record import cells, digest, question_of, whole_number
from workbench.runs.store import Store
from workbench.types import (
    Event,
    Failure,
    Feedback,
    JsonMapping,
    JsonObject,
    Response,
    Reward,
    WorkbenchError,
)
from workbench.util.jsonl import finite

BATCH = 500  # rows that are stored together

# Columns in the logs of TRL and verl that are not rewards.
TRL = frozenset("step prompt completion images image".split())
VERL = frozenset("input output gts step uid request_id workbench_failed".split())
# computed from the rewards of a group by `workbench.credit.advantages`, so not imported
DERIVED = ("advantage", "advantages", "returns")
# columns of the training data that belong to the question; trainers may log them too
FIELDS = ("answers", "answer", "title", "passages", "checklist", "kind")
# names of numbers that are not rewards, unless the name also has a word of `_REWARD`
_COUNTER = re.compile(
    "(?i)(unnamed.*)?$|(.*_)?(id|idx|index|row|rank|seed|num|n|count|steps?|epoch|iteration|len|lengths?"
    "|size|tokens?|turns?|pred|time|seconds|timestamp|lr|loss|kl|entropy|logprobs?|temperature"
    "|level|labels?|answer|target|year)(_.*)?$"
)
_REWARD = re.compile("(?i)reward|score|penalty|bonus|acc|correct|match|format")


def import_completions(kind: str, path: Path, out: Path) -> JsonObject:
    """Convert the completions that TRL or verl logged to feedback rows in the file `out`.

    A feedback row is a `Feedback` as JSON: a response with its rewards, here without verdicts.
    These logs are read:

    * TRL (`log_completions`): the columns prompt and completion. With `logging_steps` above 1, TRL
      logs only the last batch of each interval.
    * verl (`rollout_data_dir`): the columns input, output and gts.

    A row is converted as follows:

    * Question: the prompt or, if the prompt is a conversation, its last user turn.
    * Gold answers: the column `gts` (verl), `answers` or `answer`. The columns `title`, `passages`,
      `checklist` and `kind` are read too.
    * Rewards: each column of numbers becomes a reward "trl:NAME" or "verl:NAME", with None for a
      missing number. Columns with names such as "length" are not rewards.
    * Groups: equal prompts of a step form a group. Advantages are not imported.

    Args:
        kind: the trainer, "trl" or "verl".
        path: a JSONL, JSON, CSV, TSV or Parquet file, or a folder of such files. The files of a
            folder are read in the order of the numbers in their names.
        out: a new .jsonl file.

    Returns:
        `{out, rows, malformed, rewards, not_rewards, without_gold, problems}`. `rows` and
        `malformed` count the rows that were and were not converted. `rewards` has the names of the
        rewards, `not_rewards` the names of columns that were not imported: texts, and names such as
        "length". `without_gold` counts rows without gold answers; for TRL, it is left out if all
        rows lack them. `problems` has {line, problem} of the first 100 malformed rows.

    Raises:
        WorkbenchError: there are no rows, or they lack the columns that this trainer logs; `out`
            exists or has another suffix.
    """
    if out.suffix != ".jsonl" or out.exists():
        problem = "exists" if out.exists() else "does not end in .jsonl"
        raise WorkbenchError(f"'{out}' {problem}: name a new .jsonl file with --out FILE")
    problems: list[JsonObject] = []
    files = _files(path)
    numbers, others = _numbers(kind, files)
    rows = _feedback(kind, files, numbers, problems)
    if (first := next(rows, None)) is None:
        reason = problems[0]["problem"] if problems else "there are no rows"
        setting = "log_completions" if kind == "trl" else "rollout_data_dir"
        raise WorkbenchError(
            f"'{path}' has no completions logged by {kind} ({reason}): name the files that {kind}"
            f" writes with {setting}"
        )
    out.parent.mkdir(parents=True, exist_ok=True)
    count, without_gold, remaining = 0, 0, chain([first], rows)
    with Store(out) as store:
        while batch := list(islice(remaining, BATCH)):
            store.append(batch)
            count += len(batch)
            without_gold += sum(not row.response.question.answers for row in batch)
    return {
        "out": str(out),
        "rows": count,
        "malformed": len(problems),
        "rewards": list(first.rewards),
        "not_rewards": others,
        **({"without_gold": without_gold} if kind == "verl" or without_gold < count else {}),
        "problems": problems[:100],
    }


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]

    def step(file: Path) -> tuple[int, str]:
        return int("".join(filter(str.isdigit, file.stem)) or 0), file.name

    return sorted((file for file in path.iterdir() if suffix_of(file) in ROWS), key=step)


def _numbers(kind: str, files: Sequence[Path]) -> tuple[list[str], list[str]]:
    """Return the names of the columns that are rewards, and of the columns that are not imported.

    Columns with a known meaning, such as the prompt, are in neither list.
    """
    reserved = ("", *(TRL if kind == "trl" else VERL), *DERIVED, *FIELDS)
    numeric: dict[str, bool] = {}
    for file in files:
        in_text = suffix_of(file) in DELIMITERS
        for _, row in open_rows(file)[1]:
            for name, value in row.items() if isinstance(row, dict) else ():
                if value is not None and value != "" and name not in reserved:
                    number = isinstance(value, int | float) and not isinstance(value, bool)
                    number = number or (in_text and _cell_number(value) is not None)
                    numeric[name] = number and numeric.get(name, True)
    others = [
        name
        for name, number in numeric.items()
        if not number or (_COUNTER.match(name) and not _REWARD.search(name))
    ]
    return [name for name in numeric if name not in others], others


def _cell_number(value: Any) -> float | None:
    """Return a cell as a float, also if it is text; None if it is not a finite number."""
    with suppress(TypeError, ValueError, OverflowError):
        value = float(value)
    return finite(value)


def _feedback(
    kind: str, files: Sequence[Path], numbers: Sequence[str], problems: list[JsonObject]
) -> Iterator[Feedback]:
    counts: Counter[tuple[Any, str]] = Counter()
    rows = chain.from_iterable(open_rows(file)[1] for file in files)
    for number, (line, row) in enumerate(rows, start=1):
        try:
            if isinstance(row, str):
                raise ValueError(row)
            response = _response(kind, row)
        except ValueError as problem:
            problems.append({"line": line, "problem": str(problem)})
            continue
        # the logs name no groups: the equal prompts of a step form a group
        question = response.question.id
        key = response.step, question
        response = replace(
            response,
            id=f"{kind}-{number:06d}",
            group=f"{response.step}/{question}",
            sample=counts[key],
        )
        counts[key] += 1
        rewards = {f"{kind}:{name}": _reward(row.get(name)) for name in numbers}
        yield Feedback(response, rewards=rewards)


def _response(kind: str, row: JsonMapping) -> Response:
    """Convert one logged row to a response; its id and group are still empty.

    Raises:
        ValueError: the prompt or the completion is missing.
    """
    names = ("prompt", "completion") if kind == "trl" else ("input", "output")
    prompt, text = text_of(row.get(names[0]), "user"), text_of(row.get(names[1]), "assistant")
    if prompt is None or text is None:
        name, role = (names[0], "user") if prompt is None else (names[1], "assistant")
        if name in row:
            raise ValueError(
                f'"{name}" is neither a text nor a conversation with a message of the {role}'
            )
        columns = ", ".join(list(row)[:8]) or "nothing"
        raise ValueError(f'no "{name}"; the row has {columns}')
    step = whole_number(row, "step")
    gold = row.get("gts")
    fields = FIELDS if gold is None else FIELDS[2:]
    known = cells({"answers": gold, **{name: row.get(name) for name in fields}}, {})
    try:
        question = question_of(known, "", prompt)
    except ValueError:  # such as the tests of a program; `import_completions` counts them
        question = question_of({}, "", prompt)
    # a digest of the whole prompt: conversations with other turns may end with the same question
    identity = digest("\0".join((str(row[names[0]]), *question.answers)))[:12]
    question = replace(question, id=f"q-{identity}")
    return Response("", question, text, step=step, offsets=words(text), source="words")


def _reward(value: Any) -> Reward:
    number = _cell_number(value)
    if number is None:  # TRL writes NaN where a reward function gave None
        return Reward(
            None, error=Failure("reward", "not_logged", "no number logged for this reward")
        )
    return Reward(number, {"logged": number}, (Event("logged", number),))
