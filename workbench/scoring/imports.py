"""Completions that a trainer logged, as feedback rows: what `workbench score` takes and the
inspector shows.
"""

from __future__ import annotations

import ast
import hashlib
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from typing import Any

from workbench.credit.tokens import words
from workbench.data.files import Row, open_rows
from workbench.runs.rows import finite
from workbench.runs.store import Store
from workbench.scoring.rows import Malformed
from workbench.types import (
    Event,
    Failure,
    Feedback,
    JsonMapping,
    JsonObject,
    Question,
    Response,
    Reward,
    WorkbenchError,
)

BATCH = 500
SUFFIXES = (".jsonl", ".parquet")

# What TRL and verl call the columns that are not rewards.
TRL = {"step", "prompt", "completion", "images", "image"}
VERL = {"input", "output", "gts", "step", "uid", "request_id", "workbench_failed"}
_CHATML = re.compile(r"<\|im_start\|>user\n(.*?)<\|im_end\|>", re.S)
_LLAMA = re.compile(r"<\|start_header_id\|>user<\|end_header_id\|>\n\n(.*?)<\|eot_id\|>", re.S)
# The same without their marks, as both trainers decode them: from the first turn to the place
# where the assistant's turn begins.
# a template may begin the assistant's turn with an open or an empty thinking block
_OPENED = r"(?:<think>\s*(?:</think>)?)?\s*"
_PLAIN = re.compile(rf"(?:system\n.*?\n)?user\n(?:.*\nuser\n)?(.*)\nassistant\n{_OPENED}", re.S)
_PLAIN_GEMMA = re.compile(rf"user\n(?:.*\nuser\n)?(.*)\nmodel\n{_OPENED}", re.S)
_PLAIN_LLAMA = re.compile(r"(?:system\n\n.*?)?user\n\n(?:.*user\n\n)?(.*)assistant\n\n\s*", re.S)
_STRING = r"""(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")"""
# a list as Python or numpy prints it
_PRINTED = re.compile(rf"\[\s*(?:{_STRING}(?:[\s,]+{_STRING})*)?\s*\]")
# computed from the rewards of a group, so not imported as rewards
DERIVED = ("advantage", "advantages", "returns")


def import_completions(kind: str, path: Path, out: Path) -> JsonObject:
    """Convert logged completions to feedback rows without verdicts; return counts.

    * TRL (`log_completions`): columns step, prompt, completion, one for each reward function, and
      advantage. TRL logs one generation batch at a time: completions between two logs are missing
      unless `logging_steps=1`.
    * verl (`rollout_data_dir`): input, output, gts, score, step, and other values that the reward
      function returned.

    Questions: if a prompt is a decoded conversation, the last user turn is the question. It is
    found with chat marks (ChatML, Llama 3) or without (also Gemma). verl's `gts` are the gold
    answers if they are texts, a list as numpy prints it, or under `target`.

    Rewards: each logged number becomes a reward "trl:NAME" or "verl:NAME" at the end of the
    response; it is unscored if the row has no number. Equal prompts of a step form a group.
    Advantages are not imported: `workbench.credit.advantages` computes them from the rewards of a
    group.

    Args:
        kind: "trl" or "verl".
        path: a JSONL or Parquet file, or a folder of such files, read in the order of their steps.

    Raises:
        WorkbenchError: there are no rows, or not the columns that this trainer logs.
    """
    if out.suffix != ".jsonl" or out.exists():
        raise WorkbenchError(
            f"'{out}' exists, or is not a .jsonl file: name a new one with --out FILE"
        )
    problems: list[JsonObject] = []
    files = _files(path)
    rows = _feedback(kind, files, _numbers(kind, files), problems)
    if (first := next(rows, None)) is None:
        reason = problems[0]["problem"] if problems else "there are no rows"
        raise WorkbenchError(f"'{path}' is not what {kind} logs: {reason}")
    out.parent.mkdir(parents=True, exist_ok=True)
    count, rewards, remaining = 0, dict[str, None](), chain([first], rows)
    with Store(out) as store:
        while batch := list(islice(remaining, BATCH)):
            store.append(batch)
            count += len(batch)
            rewards.update(dict.fromkeys(name for row in batch for name in row.rewards))
    return {
        "out": str(out),
        "rows": count,
        "malformed": len(problems),
        "rewards": list(rewards),
        "problems": problems[:100],
    }


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]

    def step(file: Path) -> tuple[int, str]:
        return int("".join(filter(str.isdigit, file.stem)) or 0), file.name

    return sorted((file for file in path.iterdir() if file.suffix in SUFFIXES), key=step)


def _numbers(kind: str, files: Sequence[Path]) -> list[str]:
    """Return the columns that hold numbers in at least one row."""
    reserved = (*(TRL if kind == "trl" else VERL), *DERIVED)
    names: dict[str, None] = {}
    for _, row in _rows(files):
        for name, value in row.items() if isinstance(row, dict) else ():
            number = isinstance(value, (int, float)) and not isinstance(value, bool)
            if number and name not in reserved:
                names[name] = None
    return list(names)


def _rows(files: Sequence[Path]) -> Iterator[Row]:
    return chain.from_iterable(open_rows(file)[1] for file in files)


def _feedback(
    kind: str, files: Sequence[Path], numbers: Sequence[str], problems: list[JsonObject]
) -> Iterator[Feedback]:
    counts: Counter[tuple[Any, str]] = Counter()
    for number, (line, row) in enumerate(_rows(files), start=1):
        try:
            if isinstance(row, str):
                raise Malformed(row)
            response = _response(kind, row)
        except Malformed as problem:
            problems.append({"line": line, "problem": str(problem)})
            continue
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
    """Convert one row to a response without id and group.

    Raises:
        Malformed: the prompt or the completion is missing.
    """
    names = ("prompt", "completion") if kind == "trl" else ("input", "output")
    prompt, text = (_last_message(row.get(name)) for name in names)
    if prompt is None or text is None:
        columns = ", ".join(list(row)[:8]) or "nothing"
        raise Malformed(f'no "{names[0]}" or "{names[1]}"; the row has {columns}')
    gold = row.get("gts") if kind == "verl" else None
    # data sets of Search-R1
    gold = gold.get("target") if isinstance(gold, Mapping) else gold
    answers = _listed(gold) if isinstance(gold, str) else gold if isinstance(gold, list) else ()
    if not all(isinstance(answer, str) for answer in answers):
        answers = ()
    value = "\0".join((prompt, *answers)).encode("utf-8", "surrogatepass")
    identity = f"q-{hashlib.sha256(value).hexdigest()[:12]}"
    question, step = Question(identity, _last_turn(prompt), tuple(answers)), row.get("step")
    return Response(
        "",
        question,
        text,
        step=step if isinstance(step, int) else None,
        offsets=words(text),
        source="words",
    )


def _last_message(value: Any) -> str | None:
    """Return a text, or the text of a conversation's last message."""
    if isinstance(value, list) and value and isinstance(value[-1], Mapping):
        return _last_message(value[-1].get("content"))
    return value if isinstance(value, str) else None


def _last_turn(prompt: str) -> str:
    """Return the last user turn of a decoded conversation; return other prompts unchanged."""
    if marked := _CHATML.findall(prompt) or _LLAMA.findall(prompt):
        return str(marked[-1]).strip() or prompt
    plain = (
        _PLAIN.fullmatch(prompt) or _PLAIN_LLAMA.fullmatch(prompt) or _PLAIN_GEMMA.fullmatch(prompt)
    )
    return (plain[1].strip() if plain else "") or prompt


def _listed(gold: str) -> tuple[str, ...]:
    """Return the answers in a list such as "['Paris' 'Rome']"; another text is one answer."""
    if not _PRINTED.fullmatch(gold.strip()):
        return (gold,)
    try:
        return tuple(ast.literal_eval(part) for part in re.findall(_STRING, gold))
    except (SyntaxError, ValueError):  # an escape that Python does not know
        return (gold,)


def _reward(value: Any) -> Reward:
    number = finite(value)
    if number is None:  # TRL writes NaN where a reward function gave None
        return Reward(
            None, error=Failure("reward", "not_logged", "the trainer logged no number here")
        )
    return Reward(number, {"logged": number}, (Event("logged", number),), ())
