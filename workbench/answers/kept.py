"""Readings that are kept: a policy says the same few things again and again, and what a text says depends on the text alone."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Any, TypeVar, cast

COUNT, LONGEST = 4096, 400  # results of one function; characters of a text: a longer one seldom comes twice

Read = TypeVar("Read", bound=Callable[..., Any])


def kept(read: Read) -> Read:
    """`read`, a pure function of a text and other hashable values, which keeps its last `COUNT` results.

    Every caller is given the same result, which therefore has to be immutable. A text of more than `LONGEST` characters is read
    each time: so what is kept stays small, however long answers are.
    """
    remembered = lru_cache(maxsize=COUNT)(read)

    @wraps(read)
    def run(text: str, *rest: Any, **named: Any) -> Any:
        return remembered(text, *rest, **named) if len(text) <= LONGEST else read(text, *rest, **named)

    return cast("Read", run)
