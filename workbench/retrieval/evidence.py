"""Search passages for questions that have none, and report failed searches as failures."""

from collections.abc import Sequence

from workbench.retrieval.in_memory import Search
from workbench.types import Failure, Passage, Question, WorkbenchError

Evidence = Sequence[Passage] | Failure  # the passages for a query, or why there are none


def given_passages(question: Question) -> tuple[Passage, ...]:
    """Return the question's passages, without blank ones."""
    return tuple(passage for passage in question.passages if passage.text.strip())


def find_evidence(
    search: Search, queries: Sequence[tuple[Question, str]], k: int
) -> Sequence[Evidence]:
    """Return the `k` best passages for each query, or a `Failure` (`stage="retrieve"`).

    If the question of a query has a title, only pages with this title are searched. If there is no
    such page, the result is a failure. Without a title, the list is empty if nothing is found. If
    the search fails, every result is a failure.

    Args:
        queries: pairs of a question, whose title limits the search, and the text to search for.

    Raises:
        WorkbenchError: the search has wrong settings, which would fail for every batch.
    """
    titles = [question.title.strip() or None for question, _ in queries]
    try:
        # one search for all queries, since a search may be a request to a server
        results = search([text for _, text in queries], k, titles=titles) if queries else []
    except WorkbenchError:
        raise
    except (OSError, RuntimeError, ValueError) as error:  # the store's files, or a server behind it
        return [Failure("retrieve", "search", f"the search failed: {error}")] * len(queries)
    # with a title, no result means that the page is missing, whatever the text says
    remedy = "add it to the passages, or leave out the title"
    return [
        passages
        or ([] if title is None else no_passages(f"no page has the title '{title}': {remedy}"))
        for passages, title in zip(results, titles, strict=True)
    ]


def no_passages(message: str) -> Failure:
    return Failure("retrieve", "no_passages", message)
