"""A worked example for tests, notebooks and inspector: an answer with claims and verdicts."""

import re
from pathlib import Path

from workbench.runs.store import iter_feedback
from workbench.types import Feedback, Spans


def words(text: str) -> Spans:
    """Return the spans (start, end) of the words, punctuation marks and tags of a text.

    Each span includes the white space before its word. These spans are used as token offsets for a
    text that a policy did not sample.
    """
    spans = [match.span() for match in re.finditer(r"\s*(?:</?\w+>|\w+|[^\w\s])", text)]
    if spans:
        spans[-1] = (spans[-1][0], len(text))
    return tuple(spans)


def worked_example() -> Feedback:
    """Return an example: an answer with claims and verdicts, but without rewards.

    The answer has three claims: one is correct, one is wrong, one is hedged but correct. The
    thinking has one correct claim. To compute rewards, call `pipeline.rescore`. With the paper's
    constants, RLFH's reward is 1.6551.
    """
    # truth × informativeness of the answer's claims: 1·1.2 − 2·1.0 + 0.5·1.1 = −0.25
    # information of its two sentences: ln(1 + 1.2 + 1.0) + ln(1 + 1.1) = 1.9051
    [feedback] = iter_feedback(Path(__file__).with_name("example"))
    return feedback
