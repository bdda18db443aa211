"""A worked example (a short answer with claims and verdicts) for tests, notebook and inspector."""

import re
from pathlib import Path

from workbench.runs.store import iter_feedback
from workbench.types import Feedback, Spans


def words(text: str) -> Spans:
    """Return the spans (start, end) of the words, punctuation marks and tags of a text.

    They replace token offsets if a text was not sampled by a policy. Each span includes the white
    space before its word.
    """
    spans = [match.span() for match in re.finditer(r"\s*(?:</?\w+>|\w+|[^\w\s])", text)]
    if spans:
        spans[-1] = (spans[-1][0], len(text))
    return tuple(spans)


def worked_example() -> Feedback:
    """Return an example: an answer with claims and verdicts, but without rewards.

    The answer has three claims: a correct, a wrong, and a hedged but correct one. The thinking has
    one correct claim. `pipeline.rescore` computes the rewards. With the paper's constants, RLFH's
    reward is 1.6551.
    """
    # truth × informativeness of the answer's claims: 1·1.2 − 2·1.0 + 0.5·1.1 = −0.25
    # information of its two sentences: ln(1 + 1.2 + 1.0) + ln(1 + 1.1) = 1.9051
    [feedback] = iter_feedback(Path(__file__).with_name("example"))
    return feedback
