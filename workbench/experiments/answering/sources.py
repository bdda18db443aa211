"""Sources of passages for answers: the closed world's pages or an index, each with its judge."""

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
from workbench.util.failures import error_line
from workbench.verdicts.checks import local_checks, world_checks
from workbench.world import load_world
from workbench.world.pages import Page
from workbench.world.two_facets import excerpt
from workbench.world.world import World

# sentences per excerpt of a page, as in the tiny policy's training (ours)
SENTENCES = 3


@dataclass(frozen=True)
class Sources:
    """A search for passages, and the judge of answers from these passages.

    Attributes:
        search: function from questions and k to the k best passages for each, the best first.
        checks: function that returns the checks of the judge.
        exact: True if the judge is that of the closed world, which makes no errors.
        foreign: True if the passages are not pages of the closed world.
    """

    search: Callable[[Sequence[str], int], Sequence[Sequence[Passage]]]
    checks: Callable[[], Checks]
    exact: bool = False
    foreign: bool = False

    def question(self, text: str, checks: Checks) -> Question:
        """Return `text` as a question, whose answers are judged by the passages only.

        The closed world's judge would otherwise use all facts of the world.
        """
        question = Question("answer", text)
        if not self.exact:
            return question
        known = checks.recognise(question) if checks.recognise else question
        return replace(known, meta={**known.meta, "evidence": BY_PASSAGES})


def closed_world() -> Sources:
    """Return the closed world's pages as a source, split into excerpts and searched by words."""
    world = load_world()
    # not by vectors: the names are invented, and encoders do not know them
    return Sources(_excerpts(world).search, lambda: world_checks(world), exact=True)


def stored(name: str, mode: Mode | None = None, root: Path | str = ROOT) -> Sources:
    """Open an index by name or path as a source; `mode` and `root` are as for `answer`.

    The judge is the closed world's if the index has the world's current pages, else the local
    verifier.

    Raises:
        WorkbenchError: there is no such index, or it has no vectors for the mode, or their encoder
            is not available.
    """
    index = open_index(name, root)
    chosen: Mode = mode or ("hybrid" if index.card["encoder"] else "text")
    if chosen != "text" and index.card["encoder"]:
        _check_encoder(index)
    index.search([""], 1, mode=chosen)

    def search(questions: Sequence[str], k: int) -> list[list[Passage]]:
        try:
            return index.search(questions, k, mode=chosen)
        except WorkbenchError:
            raise
        except (OSError, RuntimeError, ValueError) as error:  # damaged files or vectors
            raise WorkbenchError(
                f"the index {index.folder} cannot be searched ({error_line(error)}): build it again"
            ) from error

    if (world := _world_of(index)) is None:
        return Sources(search, local_checks, foreign=True)
    return Sources(search, lambda: world_checks(world), exact=True)


def _check_encoder(index: Index) -> None:
    """Raise a WorkbenchError if the encoder of the index's vectors is not available."""
    try:
        load_encoder(index.card["encoder"])
    except WorkbenchError as error:
        raise WorkbenchError(
            f"the index {index.folder} needs the encoder '{index.card['encoder']}' to search by"
            f" vectors: search by words with --mode text, or build the index again ({error})"
        ) from None


def _world_of(index: Index) -> World | None:
    """Return the closed world whose pages an index has; None for other pages, or outdated ones."""
    kind, _, seed = str(index.card["source"].get("spec")).partition(":")
    if kind != "world" or not seed.isdecimal():
        return None
    world = load_world(int(seed))
    return world if index.card["source"].get("fingerprint") == world.hash else None


@lru_cache(maxsize=2)
def _excerpts(world: World) -> InMemoryIndex:
    return from_passages([passage for page in world.pages for passage in _cut(page)])


def _cut(page: Page) -> list[Passage]:
    """Split a page into excerpts of `SENTENCES` sentences.

    Each excerpt begins with the edition of the page, which shows whether the page is outdated.
    """
    # an outdated edition begins with its error, which is not a fact
    count = len(page.fact_ids) + page.stale
    return [
        excerpt(page, range(first, min(count, first + SENTENCES)))
        for first in range(0, count, SENTENCES)
    ]


def question_text(text: str) -> str:
    """Return a question's text with normalised white space.

    Raises:
        WorkbenchError: the text is empty.
    """
    if not (question := " ".join(clean(text or "").split())):
        raise WorkbenchError("the question is empty: write one")
    return question
