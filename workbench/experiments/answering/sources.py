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
    """A source of passages: a search function, and the judge of answers from these passages.

    Attributes:
        search: function of a list of questions and k. It returns the k best passages for each
            question, the best first.
        checks: function that loads the judge, and returns it as a `Checks` object.
        exact: True if the judge is the closed world's judge, which makes no errors.
        foreign: True if the passages are not pages of the closed world.
    """

    search: Callable[[Sequence[str], int], Sequence[Sequence[Passage]]]
    checks: Callable[[], Checks]
    exact: bool = False
    foreign: bool = False

    def question(self, text: str, checks: Checks) -> Question:
        """Convert a text to a `Question` whose answers are judged only by its passages.

        By default, the closed world's judge compares claims with all facts of the world. For this
        judge, the result therefore has the entry `meta["evidence"] = "passages"`. Other judges need
        no such entry.

        Args:
            text: the text of the question.
            checks: the judge, as returned by `self.checks`.
        """
        question = Question("answer", text)
        if not self.exact:
            return question
        known = checks.recognise(question) if checks.recognise else question
        return replace(known, meta={**known.meta, "evidence": BY_PASSAGES})


def closed_world() -> Sources:
    """Return a source whose passages are excerpts of the closed world's pages.

    BM25 ranks the excerpts by the words that they share with a question.
    """
    world = load_world()
    # not by vectors: the names are invented, and encoders do not know them
    return Sources(_excerpts(world).search, lambda: world_checks(world), exact=True)


def stored(name: str, mode: Mode | None = None, root: Path | str = ROOT) -> Sources:
    """Open an index of passages as a source.

    If the index has the pages of the closed world's current version, the judge is the closed
    world's exact judge. Otherwise it is the local verifier, a small entailment model.

    Args:
        name: name or path of the index.
        mode: "text" (search by words), "dense" (by vectors) or "hybrid" (both). None for "hybrid"
            if the index has vectors, else "text".
        root: folder of the indexes, in which `name` is looked up.

    Raises:
        WorkbenchError: the index does not exist or has no vectors for the mode, or the encoder of
            its vectors is not available.
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
    """Return the closed world whose pages an index has.

    Return None if the index has other pages, or pages of an earlier version of the world.
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
