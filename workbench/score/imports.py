"""Completions that a trainer logged, as feedback rows: what `workbench score` takes and the inspector shows."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from typing import Any

from workbench.credit.tokens import words
from workbench.score.source import Line, read
from workbench.store import Store
from workbench.types import Event, Failure, Feedback, Question, Response, Reward, WorkbenchError

BATCH = 500
SUFFIXES = (".jsonl", ".parquet")

# What TRL and verl call the columns that are not rewards.
TRL = {"step", "prompt", "completion", "images", "image"}
VERL = {"input", "output", "gts", "step", "uid", "request_id"}
DERIVED = ("advantage", "advantages", "returns")  # made from the rewards of a group, and no rewards themselves


def import_completions(kind: str, path: Path, out: Path) -> dict[str, Any]:
    """Write logged completions as feedback rows without verdicts; returns counts.

    * TRL (`log_completions`): columns step, prompt, completion, one for each reward function, advantage.
    * verl (`rollout_data_dir`): input, output, gts, score, step, and what else the reward function returned.

    `path` is a file, JSONL or Parquet, or a folder of such files, taken in the order of their steps. Every logged number
    becomes a reward "trl:NAME" or "verl:NAME" at the end of the response (unscored where it is none); equal prompts of a step
    are a group; verl's `gts`, where it is a text or several, are the gold answers. Advantages are left out, and named in
    `left_out`: they are no rewards, and `workbench.credit.advantages` makes them from the rewards of a group.

    Raises:
        WorkbenchError: there is nothing to read, or the rows are not what that trainer logs.
    """
    if out.suffix != ".jsonl" or out.exists():
        raise WorkbenchError(f"'{out}' is there already, or is not a .jsonl file: name a new one with --out FILE")
    problems: list[dict[str, Any]] = []
    files = _files(path)
    numbers = _numbers(kind, files)
    rows = _feedback(kind, files, [name for name in numbers if name not in DERIVED], problems)
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
        "left_out": [name for name in numbers if name in DERIVED],
        "problems": problems[:100],
    }


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    files = [file for file in path.iterdir() if file.suffix in SUFFIXES]
    return sorted(files, key=lambda file: (int("".join(filter(str.isdigit, file.stem)) or 0), file.name))


def _numbers(kind: str, files: Sequence[Path]) -> list[str]:
    """The columns that hold numbers: in a row without one, its reward function gave none."""
    reserved = TRL if kind == "trl" else VERL
    rows = (line.row for file in files for line in read(file) if line.row is not None)
    return list(
        dict.fromkeys(name for row in rows for name, value in row.items() if name not in reserved and _is_number(value))
    )


def _feedback(kind: str, files: Sequence[Path], numbers: Sequence[str], problems: list[dict[str, Any]]) -> Iterator[Feedback]:
    counts: dict[tuple[Any, str], int] = {}
    number = 0
    for file in files:
        for line in read(file):
            number += 1
            if isinstance(parsed := _parse(kind, line, numbers), str):
                problems.append({"line": line.number, "problem": parsed})
                continue
            question, text, step, rewards = parsed
            sample = counts[step, question.id] = counts.get((step, question.id), -1) + 1
            identity = f"{kind}-{number:06d}"
            yield _row(Response(identity, question, text, group=f"{step}/{question.id}", sample=sample, step=step), rewards)


def _row(response: Response, rewards: Mapping[str, Reward]) -> Feedback:
    return Feedback(replace(response, offsets=words(response.text), source="words"), rewards=rewards)


def _parse(kind: str, line: Line, numbers: Sequence[str]) -> tuple[Question, str, int | None, dict[str, Reward]] | str:
    """Question, response, step and logged numbers of one row; or what is wrong with it."""
    if line.row is None:
        return line.problem
    row = line.row
    prompt_name, text_name = ("prompt", "completion") if kind == "trl" else ("input", "output")
    prompt, text = _said(row.get(prompt_name)), _said(row.get(text_name))
    if prompt is None or text is None:
        return f'no "{prompt_name}" or "{text_name}"; the row has {", ".join(list(row)[:8]) or "nothing"}'
    step = row.get("step")
    gold = row.get("gts") if kind == "verl" else None
    answers = (gold,) if isinstance(gold, str) else tuple(gold or ()) if isinstance(gold, list) else ()
    if not all(isinstance(answer, str) for answer in answers):
        answers = ()
    rewards = {f"{kind}:{name}": _reward(row.get(name)) for name in numbers}
    identity = "q-" + hashlib.sha256("\0".join((prompt, *answers)).encode("utf-8", "surrogatepass")).hexdigest()[:12]
    return Question(identity, prompt, answers), text, step if isinstance(step, int) else None, rewards


def _said(value: Any) -> str | None:
    """A text, or the last message's text of a conversation."""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and value and isinstance(value[-1], Mapping):
        return _said(value[-1].get("content"))
    return None


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _reward(value: Any) -> Reward:
    if not _is_number(value) or not math.isfinite(value):  # TRL writes NaN where a reward function gave None
        return Reward(None, error=Failure("reward", "not_logged", "the trainer logged no number here"))
    return Reward(float(value), {"logged": float(value)}, (Event("logged", float(value)),), ())
