"""Where in its passages a claim finds its support: shown to people, not used by any reward."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from workbench.answers import sentences
from workbench.types import Passage

_WORD = re.compile(
    r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]|[^\W_\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]+"
)


def cite(claim: str, passages: Sequence[Passage]) -> tuple[Mapping[str, Any], ...]:
    """For each passage `{passage, span}`: its sentence that shares most words with the claim;
    span None if none shares any.
    """
    wanted = _words(claim)
    return tuple(
        {"passage": passage.id, "span": _best(wanted, passage.text)} for passage in passages
    )


def _best(wanted: frozenset[str], text: str) -> tuple[int, int] | None:
    scored = [
        (len(wanted & words), -(end - start), start, end) for start, end, words in _sentences(text)
    ]
    if not scored or max(scored)[0] == 0:
        return None
    return max(scored)[2:]


@lru_cache(maxsize=128)  # texts may be long
def _sentences(text: str) -> tuple[tuple[int, int, frozenset[str]], ...]:
    """Sentences with their words. Cached: all claims of a response are often held against the
    same passages.
    """
    return tuple((start, end, _words(text[start:end])) for start, end in sentences(text))


@lru_cache(maxsize=1024)
def _words(text: str) -> frozenset[str]:
    return frozenset(word.casefold() for word in _WORD.findall(text))
