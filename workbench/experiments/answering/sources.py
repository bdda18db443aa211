"""What an answer is drawn from, and who judges it: the closed world's own pages, or an index."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from workbench.retrieval import Index, from_passages, open_index
from workbench.retrieval.encoder import load_encoder
from workbench.retrieval.in_memory import InMemoryIndex
from workbench.retrieval.index import ROOT, Mode
from workbench.retrieval.words import clean
from workbench.types import BY_PASSAGES, Checks, Passage, Question, WorkbenchError
from workbench.verdicts.checks import local_checks, world_checks
from workbench.world import load_world
from workbench.world.pages import Page
from workbench.world.two_facets import excerpt
from workbench.world.world import World

# of a page in an excerpt: as many as the tiny policy has learnt to read in one (ours)
SENTENCES = 3


@dataclass(frozen=True)
class Sources:
    """Passages by `search(questions, k)`, for each the best first, and how answers from them are
    judged.

    `checks` makes the judge at hand; with `exact` it is the closed world, which holds answers
    against the passages. `foreign` passages are not the closed world's.
    """

    search: Callable[[Sequence[str], int], Sequence[Sequence[Passage]]]
    checks: Callable[[], Checks]
    exact: bool = False
    foreign: bool = False

    def asked(self, text: str, checks: Checks) -> Question:
        """The question with what its judge knows of it; the answer is held against its passages,
        whatever the world knows.
        """
        question = Question("answer", text)
        if not self.exact:
            return question
        known = checks.recognise(question) if checks.recognise else question
        return replace(known, meta={**known.meta, "evidence": BY_PASSAGES})


def closed_world() -> Sources:
    """Excerpts of the closed world's pages, found by words: its names are invented, and no
    encoder has read them.
    """
    world = load_world()
    pages = _excerpts(world)
    return Sources(pages.search, lambda: world_checks(world), exact=True)


def stored(name: str, mode: Mode | None = None, root: Path | str = ROOT) -> Sources:
    """An index by name or path, searched by `mode`: by default hybrid where it has vectors, else
    by words.

    An index of the closed world's pages as they are now has the exact judge, any other the local
    verifier.

    Raises:
        WorkbenchError: there is no such index, or it cannot be searched so: it has no vectors,
        or they are of an encoder that
            is not within reach.
    """
    index = open_index(name, root)
    how: Mode = mode or ("hybrid" if index.card["encoder"] else "text")
    if how != "text" and index.card["encoder"]:
        _check_encoder(index)
    index.search([""], 1, mode=how)
    world = _world_of(index)

    def search(questions: Sequence[str], k: int) -> list[list[Passage]]:
        return _search(index, questions, k, how)

    if world is None:
        return Sources(search, local_checks, foreign=True)
    return Sources(search, lambda: world_checks(world), exact=True)


def _search(index: Index, questions: Sequence[str], k: int, mode: Mode) -> list[list[Passage]]:
    try:
        return index.search(questions, k, mode=mode)
    except WorkbenchError:
        raise
    except (OSError, RuntimeError, ValueError) as error:  # the index's files, or its vectors
        reason = " ".join(str(error).split())[:200]
        raise WorkbenchError(
            f"the index {index.folder} cannot be searched ({reason}): build it again"
        ) from error


def _check_encoder(index: Index) -> None:
    """Refuse vectors that no question can be compared with."""
    name, remedy = (
        index.card["encoder"],
        "search by words alone with --mode text, or build the index again",
    )
    try:
        width = load_encoder(name)(["a"]).shape[1]
    except WorkbenchError as error:
        raise WorkbenchError(
            f"the index {index.folder} was built with the encoder '{name}': {error}; or {remedy}"
        ) from None
    if width != index.width:
        raise WorkbenchError(
            f"the vectors of the index {index.folder} have {index.width} numbers and those of the"
            f" encoder '{name}', as it is now, {width}: {remedy}"
        )


def _world_of(index: Index) -> World | None:
    """The world whose pages an index holds; None where it holds other pages, or those that this
    world had once.
    """
    kind, _, seed = str(index.card["source"].get("spec")).partition(":")
    if kind != "world" or not seed.isdecimal():
        return None
    world = load_world(int(seed))
    return world if index.card["source"].get("fingerprint") == world.hash else None


@lru_cache(maxsize=2)
def _excerpts(world: World) -> InMemoryIndex:
    return from_passages([passage for page in world.pages for passage in _cut(page)])


def _cut(page: Page) -> list[Passage]:
    """A page in excerpts, each with the page's edition: what tells a former one from the one
    that corrects it.
    """
    # a former edition begins with what it has wrong, which is no fact
    count = len(page.fact_ids) + page.stale
    return [
        excerpt(page, range(first, min(count, first + SENTENCES)))
        for first in range(0, count, SENTENCES)
    ]


def question_text(text: str) -> str:
    """A question as it is asked.

    Raises:
        WorkbenchError: there is none.
    """
    if not (asked := " ".join(clean(text or "").split())):
        raise WorkbenchError("there is no question: write one")
    return asked
