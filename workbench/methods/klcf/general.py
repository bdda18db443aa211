"""The check "general" of KLCF (arXiv 2509.23765, section 2.3.3): a score of the answer as a whole.

Training from a base model has no KL penalty, since a base model is no example of how to answer;
this term keeps answers well formed instead. The paper uses the preference model
Skywork-Reward-V2-Llama-3.2-1B; see `preference.py`. Without a named model *(ours)*, a reward model
is trained to tell the base model's own answers from corrupted copies. Its score says whether an
answer is whole and keeps to its subject, not whether people prefer it.
"""

import random
from collections.abc import Sequence

from workbench.methods.klcf.truth import TextScorer, text_values
from workbench.text import answer_text, is_abstention, sentences
from workbench.training.scorer import Judged, as_whole
from workbench.types import Checked, Claims, Feedback, Response, Verdict, Verify

# Corruptions, used in turn.
CORRUPTIONS = ("said again", "cut off", "scrambled", "off subject")


def general(score: TextScorer, by: str, specials: Sequence[str] = ()) -> Verify:
    """Return the check "general", which gives each answer, without its thinking, a score p.

    An empty or too long answer has p = 0, not a failure: otherwise a response could avoid its
    reward.
    """

    def verify(batch: Sequence[tuple[Response, Claims]]) -> list[Checked]:
        texts = [
            (response.question, answer_text(response.text, response.prefill))
            for response, _ in batch
        ]
        values = text_values(score, texts, specials)
        return [Checked((Verdict("response", "general", p=p, by=by),)) for p in values]

    return verify


def quality_rows(
    samples: Sequence[Feedback], seed: int, specials: Sequence[str] = ()
) -> list[Judged]:
    """Return training rows for a model of good form: the base's whole answers (target 1), and a
    corrupted copy of each (target 0).

    An answer that repeats a sentence or was cut off also has target 0. Abstentions are left out.
    """
    good, bad = list[tuple[Response, str]](), list[tuple[Response, str]]()
    for sample in samples:
        response = sample.response
        text = answer_text(response.text, response.prefill)
        if sample.error is None and text.strip() and not is_abstention(text):
            whole = response.finish == "stop" and not has_repeated_sentence(text)
            (good if whole else bad).append((response, text))
    rng = random.Random(f"general-{seed}")
    for number, (response, text) in enumerate(good):
        # an answer to another question; "" if a few tries find none
        others = (rng.choice(good) for _ in range(8))
        other = next((t for r, t in others if r.question.id != response.question.id), "")
        copy = corrupt(text, other, CORRUPTIONS[number % len(CORRUPTIONS)], rng)
        if copy != text:
            bad.append((response, copy))
    return [
        as_whole(response.question, text, target, specials)
        for rows, target in ((good, 1.0), (bad, 0.0))
        for response, text in rows
    ]


def has_repeated_sentence(text: str) -> bool:
    """Whether a sentence occurs twice, ignoring case and white space."""
    texts = [" ".join(text[start:end].casefold().split()) for start, end in sentences(text)]
    return len(set(texts)) < len(texts)


def corrupt(text: str, other: str, how: str, rng: random.Random) -> str:
    """Return the text made worse; unchanged if it is too short for that.

    Args:
        other: an answer to another question.
        how: "said again": a sentence is repeated up to four times; "cut off": the last words are
            missing; "scrambled": a sentence's words are shuffled; "off subject": a sentence of
            `other` replaces one.
    """
    spans = sentences(text)
    if not spans:
        return text
    start, end = rng.choice(spans)
    if how == "said again":
        return " ".join([text, *[text[start:end]] * rng.randint(1, 4)])
    if how == "cut off":
        gap = " " if " " in text.strip() else ""  # some scripts have no spaces
        words = text.split(" ") if gap else list(text)
        left = gap.join(words[: len(words) - rng.randint(1, max(1, len(words) // 3))])
        return left if left.strip() else text
    if how == "scrambled":
        words = text[start:end].split(" ")
        return text[:start] + " ".join(rng.sample(words, len(words))) + text[end:]
    strange = [other[a:b] for a, b in sentences(other)]
    return text[:start] + rng.choice(strange) + text[end:] if strange else text
