"""Ask a judge about many rows in one call, and read the replies."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from workbench.judge import read as read_text
from workbench.types import Cost, Failure, Judge, Prompt, Reply


def ask(judge: Judge, prompts: Sequence[Sequence[Prompt]]) -> list[list[Reply]]:
    """The replies to each row's prompts; those of all rows go out in one call."""
    flat = [prompt for row in prompts for prompt in row]
    replies = judge(flat) if flat else []
    assert len(replies) == len(flat), (len(replies), len(flat))
    remaining = iter(replies)
    return [[next(remaining) for _ in row] for row in prompts]


def total(replies: Iterable[Reply]) -> Cost:
    return sum((reply.cost for reply in replies), Cost())


def name(judge: Judge) -> str:
    """What a verdict's `by` says of this judge."""
    return str(getattr(judge, "name", "judge"))


def read(task: str, reply: Reply, count: int | None = None) -> Any:
    """A reply as `workbench.judge.read` reads it, or the failure that it is or contains."""
    if reply.error is not None:
        return reply.error
    return read_text(task, reply.text or "", count)


def split(found: str | Failure) -> tuple[str | None, Failure | None]:
    """A read label as a verdict's `label` and `error`."""
    return (None, found) if isinstance(found, Failure) else (found, None)


def each(found: Sequence[str] | Failure, count: int) -> Iterator[str | Failure]:
    """One label per target; a failure is everyone's."""
    yield from [found] * count if isinstance(found, Failure) else found
