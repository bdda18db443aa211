"""Read the probabilities of a task's labels from the log-probabilities of a reply's tokens."""

import math
from typing import Any

from workbench.judge.wire import LABELS

MOST = 20  # alternatives of a token that are requested; OpenAI's servers and vLLM return no more


def label_probabilities(task: str, label: str, logprobs: Any) -> dict[str, float] | None:
    """Return the probability of each label of a task, from the log-probabilities of a reply.

    They are read at the token at which the reply's label begins. The probability of a label is the
    sum over the alternatives of this token that begin the label, such as "c" and "cor" for
    "correct". The probabilities sum to less than 1 if the model might have written other text.

    Args:
        task: a task whose reply is one label.
        label: the label of the reply.
        logprobs: the server's `logprobs`; its "content" is a list of objects with "token" and
            "top_logprobs".

    Returns:
        A dict from label to probability; None if the log-probabilities are missing or unreadable.
    """
    try:
        tokens = logprobs["content"]
        texts = [str(one["token"]) for one in tokens]
        start = "".join(texts).lower().rfind(label)
        if start < 0:
            return None
        number = 0
        while start >= len(texts[number]):
            start -= len(texts[number])
            number += 1
        before = texts[number][:start]  # such as a space and a quotation mark
        found = dict.fromkeys(LABELS[task], 0.0)
        for one in tokens[number]["top_logprobs"]:
            text = str(one["token"]).lower()
            rest = text[start:] if text.startswith(before.lower()) else ""
            for name in found:  # no two labels of a task begin with the same letter
                if rest and (name.startswith(rest) or rest.startswith(name)):
                    found[name] += math.exp(min(0.0, float(one["logprob"])))
    except (LookupError, TypeError, ValueError, AttributeError):
        return None
    return found if sum(found.values()) > 0 else None
