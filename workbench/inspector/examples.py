"""A worked example (a short answer with claims and verdicts) for tests, notebook and inspector."""

import re
from pathlib import Path

from workbench.runs.store import iter_feedback
from workbench.types import Feedback, Spans


def words(text: str) -> Spans:
    """Split a text, for which no tokens were sampled, into words, punctuation and tags.

    Each span includes the white space before its word.
    """
    spans = [match.span() for match in re.finditer(r"\s*(?:</?\w+>|\w+|[^\w\s])", text)]
    if spans:
        spans[-1] = (spans[-1][0], len(text))
    return tuple(spans)


def worked_example() -> Feedback:
    """Return an answer with three claims: correct and crucial, wrong and minor, and hedged.

    The thinking has one correct claim. The row has no rewards: `rescore` it. RLFH by hand with the
    paper's constants: the truth of the answer's claims gives 1·1.2 − 2·1.0 + 0.5·1.1 = −0.25; the
    information of its two sentences gives ln(1 + 1.2 + 1.0) + ln(1 + 1.1) = 1.9051; together
    1.6551.
    """
    [feedback] = iter_feedback(Path(__file__).with_name("example"))
    return feedback
