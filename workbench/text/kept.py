"""Readings that are kept: a policy says the same few things again and again, and what a text
says depends on the text alone.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Any, TypeVar, cast

# results of one function; characters of all its texts: what is longer seldom comes twice
COUNT, LONGEST = 4096, 400

Read = TypeVar("Read", bound=Callable[..., Any])


def kept(read: Read) -> Read:
    """`read`, a pure function of a text and other hashable values, which keeps its last `COUNT`
    results.

    Every caller is given the same result, which therefore has to be immutable. Texts of more
    than `LONGEST` characters together are read each time: so what is kept stays small, however
    long answers, questions and lists of gold answers are.
    """
    remembered = lru_cache(maxsize=COUNT)(read)

    @wraps(read)
    def run(*texts: Any, **named: Any) -> Any:
        return (remembered if _size((texts, *named.values())) <= LONGEST else read)(*texts, **named)

    return cast("Read", run)


def _size(value: Any) -> int:
    """The characters of a text, or of all texts of a tuple."""
    if isinstance(value, str):
        return len(value)
    return sum(map(_size, value)) if isinstance(value, tuple) else 0
